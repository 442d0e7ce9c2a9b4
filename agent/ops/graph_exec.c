/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: an open-addressed table from the driver's handle to parts. Changes hold the
 * lock; launches search without it. When a graph ends, its entry becomes a mark (GONE). Without the
 * mark, a search for another graph would stop too early.
 */
#include "agent/ops/graph.h"
#include "agent/ops/graph_part.h"
#include "agent/record/comms.h"

#define GONE 1u /* an executable graph was here, so a search goes on */

struct exec {
	uintptr_t exec; /* 0 = never used */
	uint16_t count;
	uint16_t parts[CW_GRAPH_COMMS];
};

static struct exec execs[CW_GRAPH_EXECS];
static bool has_conditions;

void cw_graph_has_condition(void)
{
	CW_STORE(has_conditions, true);
}

static unsigned place_of(const void *exec)
{
	return (uint32_t)((uintptr_t)exec >> 4) * 0x9e3779b1u >> 22;
}

_Static_assert(CW_GRAPH_EXECS == 1u << 10, "place_of() keeps ten bits");

static struct exec *find_exec(const void *exec)
{
	unsigned at = place_of(exec);

	for (unsigned n = 0; n < CW_GRAPH_EXECS; n++) {
		struct exec *e = &execs[(at + n) % CW_GRAPH_EXECS];
		uintptr_t key = __atomic_load_n(&e->exec, __ATOMIC_ACQUIRE);

		if (key == (uintptr_t)exec)
			return e;
		if (!key)
			return NULL;
	}
	return NULL;
}

unsigned cw_graph_execs_used(void)
{
	unsigned used = 0;

	for (unsigned i = 0; i < CW_GRAPH_EXECS; i++)
		used += __atomic_load_n(&execs[i].exec, __ATOMIC_RELAXED) != 0;
	return used;
}

const uint16_t *cw_graph_parts_of(void *exec, unsigned *ret_count)
{
	const struct exec *e = (uintptr_t)exec > GONE ? find_exec(exec) : NULL;

	if (!e)
		return NULL;
	*ret_count = e->count;
	return e->parts;
}

/*
 * Clears marks at the end of a run of entries, where no search needs them. Otherwise marks would
 * fill the table, and each launch of a graph without NCCL would search all of it.
 */
static void clear_gone(unsigned at)
{
	if (execs[(at + 1) % CW_GRAPH_EXECS].exec)
		return;
	for (unsigned n = 0; n < CW_GRAPH_EXECS && execs[at].exec == GONE; n++) {
		__atomic_store_n(&execs[at].exec, 0, __ATOMIC_RELEASE);
		at = (at + CW_GRAPH_EXECS - 1) % CW_GRAPH_EXECS;
	}
}

static void forget_exec(const void *exec)
{
	struct exec *e = find_exec(exec);

	if (!e)
		return;
	__atomic_store_n(&e->exec, GONE, __ATOMIC_RELEASE);
	for (unsigned i = 0; i < e->count; i++)
		cw_graph_parts[e->parts[i]].execs--;
	clear_gone((unsigned)(e - execs));
}

/*
 * Binds all parts of the graph to the executable graph. If the table is full, we stop counting the
 * replays of a part's communicator.
 */
static void bind_exec(void *exec, const void *graph)
{
	struct exec found = { .count = 0 };
	struct exec *e = NULL;

	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		struct cw_graph_part *part = &cw_graph_parts[i];

		if (!part->is_used || part->graph != (uintptr_t)graph ||
		    !cw_graph_replay_of(part)->ops)
			continue;
		if (found.count < CW_GRAPH_COMMS)
			found.parts[found.count++] = (uint16_t)i;
		else
			cw_graph_uncounted(cw_graph_comm_of(part));
	}
	for (unsigned n = 0; found.count && n < CW_GRAPH_EXECS && !e; n++) {
		e = &execs[(place_of(exec) + n) % CW_GRAPH_EXECS];
		if (e->exec > GONE)
			e = NULL;
	}
	for (unsigned i = 0; i < found.count; i++) {
		struct cw_graph_part *part = &cw_graph_parts[found.parts[i]];

		if (e)
			part->execs++;
		else
			cw_graph_uncounted(cw_graph_comm_of(part));
	}
	if (!e)
		return;
	e->count = found.count;
	for (unsigned i = 0; i < found.count; i++)
		e->parts[i] = found.parts[i];
	__atomic_store_n(&e->exec, (uintptr_t)exec, __ATOMIC_RELEASE);
}

void cw_graph_instantiated(void *exec, void *graph, bool can_launch_on_device)
{
	if ((uintptr_t)exec <= GONE || !graph)
		return;
	cw_graph_lock();
	forget_exec(exec); /* an older graph may have had this handle, and we missed its end */
	bind_exec(exec, graph);
	cw_graph_unlock();
	if (can_launch_on_device)
		cw_graph_exec_unknown(exec);
}

void cw_graph_updated(void *exec, void *graph)
{
	cw_graph_instantiated(exec, graph, false);
}

static bool copy_part(void *to, const struct cw_graph_part *from)
{
	const struct cw_rec_replay *replay = cw_graph_replay_of(from);
	struct cw_graph_part *part = cw_graph_part_find(to, cw_graph_comm_of(from));
	uint32_t at = replay->first_plus_1;

	/*
	 * With conditions, or a second part, the communicator's ops would come from two graphs, in
	 * an unknown order.
	 */
	if (part || CW_LOAD(has_conditions))
		return false;
	part = cw_graph_part_new(to, from->capture_id, cw_graph_comm_of(from));
	if (!part)
		return false;
	for (unsigned n = 0; at && n < CW_REC_TEMPLATES; n++) {
		struct cw_rec_template run = cw_record.templates[at - 1];

		at = run.next_plus_1;
		run.next_plus_1 = 0;
		if (!cw_graph_part_append(part, &run))
			return false;
	}
	return true;
}

void cw_graph_copied(void *to, void *from)
{
	if (!to || !from)
		return;
	cw_graph_lock();
	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		struct cw_graph_part *part = &cw_graph_parts[i];

		if (!part->is_used || part->graph != (uintptr_t)from ||
		    !cw_graph_replay_of(part)->ops)
			continue;
		/*
		 * The copy writes to the same progress words as long as it lives. Neither graph can
		 * then use them.
		 */
		CW_STORE(cw_graph_replay_of(part)->progress_slot, CW_REC_NO_SLOT);
		part->slot = CW_REC_NO_SLOT;
		if (!copy_part(to, part))
			cw_graph_uncounted(cw_graph_comm_of(part));
	}
	cw_graph_unlock();
}

void cw_graph_destroyed(void *graph)
{
	if (!graph)
		return;
	cw_graph_lock();
	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		if (cw_graph_parts[i].graph == (uintptr_t)graph)
			cw_graph_part_left(&cw_graph_parts[i]);
	}
	cw_graph_unlock();
}

void cw_graph_exec_destroyed(void *exec)
{
	if ((uintptr_t)exec <= GONE)
		return;
	cw_graph_lock();
	forget_exec(exec);
	cw_graph_unlock();
}

void cw_graph_exec_unknown(void *exec)
{
	unsigned count = 0;
	const uint16_t *parts = cw_graph_parts_of(exec, &count);

	for (unsigned i = 0; i < count; i++)
		cw_graph_uncounted(cw_graph_comm_of(&cw_graph_parts[parts[i]]));
}
