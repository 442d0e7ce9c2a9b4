/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All parts take their runs of equal ops from one pool, and give them back as a list. We reuse a
 * part only when no graph can launch it any more and the device is done with it.
 */
#include "agent/ops/graph_part.h"

#include <sched.h>

#include "agent/base/state.h"
#include "agent/cuda/progress.h"
#include "model/op.h"

struct cw_graph_part cw_graph_parts[CW_REC_REPLAYS];

/* For each communicator: result + 1 of the last search, which we try first. */
static uint16_t last_part[CW_REC_COMMS];
static uint32_t free_run_plus_1, runs_used;
static unsigned char lock_word;

/*
 * Programs that change graphs call this function outside any wrapper. While depth > 0, calls from a
 * signal handler bypass the agent. Otherwise such a call could wait for the thread that it
 * interrupted.
 */
void cw_graph_lock(void)
{
	cw_tls.depth++;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	while (__atomic_test_and_set(&lock_word, __ATOMIC_ACQUIRE))
		(void)sched_yield();
}

void cw_graph_unlock(void)
{
	__atomic_clear(&lock_word, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	cw_tls.depth--;
}

bool cw_graph_is_idle(const struct cw_graph_part *part, int c)
{
	uint16_t slot = part->launch_slot;

	if (slot == CW_REC_NO_SLOT || !part->launch_op)
		return part->launch_op == 0 || part->slot == CW_REC_NO_SLOT;
	/*
	 * Another owner of the slot means that we freed it, after the program shut down the
	 * communicator properly.
	 */
	if (CW_LOAD(cw_record.progress_info[slot].comm_plus_1) != (uint32_t)c + 1)
		return true;
	return (int32_t)(CW_LOAD(cw_record.progress[slot].completed) - (uint32_t)part->launch_op) >=
	       0;
}

static void free_runs(struct cw_rec_replay *replay)
{
	uint32_t at = replay->first_plus_1;

	for (unsigned n = 0; at && n < CW_REC_TEMPLATES; n++) {
		struct cw_rec_template *run = &cw_record.templates[at - 1];
		uint32_t next = run->next_plus_1;

		CW_STORE(run->repeat, 0u);
		CW_STORE(run->next_plus_1, free_run_plus_1);
		free_run_plus_1 = at;
		at = next;
	}
	CW_STORE(replay->first_plus_1, 0u);
}

/*
 * Frees the part for reuse. Returns false if a graph can still launch it, or if its last launch
 * still runs.
 */
static bool reclaim(struct cw_graph_part *part)
{
	struct cw_rec_replay *replay = cw_graph_replay_of(part);
	uint32_t generation = replay->generation;

	if (part->graph || part->execs || !cw_graph_is_idle(part, cw_graph_comm_of(part)))
		return false;
	CW_STORE(replay->generation, 0u);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	free_runs(replay);
	if (part->slot != CW_REC_NO_SLOT)
		cw_progress_give_back(part->slot);
	*part = (struct cw_graph_part){ .generation = generation };
	return true;
}

struct cw_graph_part *cw_graph_part_new(void *graph, uint64_t capture_id, int c)
{
	struct cw_rec_comm *rc = &cw_record.comms[c];

	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		struct cw_graph_part *part = &cw_graph_parts[i];
		struct cw_rec_replay *replay = cw_graph_replay_of(part);
		uint32_t generation;

		if (part->is_used && !reclaim(part))
			continue;
		generation = part->generation + 1;
		*part = (struct cw_graph_part){ .graph = (uintptr_t)graph,
						.capture_id = capture_id,
						.slot = CW_REC_NO_SLOT,
						.launch_slot = CW_REC_NO_SLOT,
						.is_used = true };
		*replay = (struct cw_rec_replay){ .comm_plus_1 = (uint32_t)c + 1,
						  .comm_generation = rc->generation,
						  .progress_slot = CW_REC_NO_SLOT,
						  .graph = (uintptr_t)graph };
		__atomic_store_n(&replay->generation, generation, __ATOMIC_RELEASE);
		(void)__atomic_fetch_or(&cw_record.header->has, CW_REC_HAS_REPLAYS,
					__ATOMIC_RELAXED);
		return part;
	}
	return NULL;
}

static bool is_part_of(const struct cw_graph_part *part, const void *graph, int c)
{
	return part->is_used && part->graph == (uintptr_t)graph && cw_graph_comm_of(part) == c &&
	       cw_graph_replay_of(part)->comm_generation == cw_record.comms[c].generation;
}

struct cw_graph_part *cw_graph_part_find(const void *graph, int c)
{
	unsigned guess = last_part[c];

	if (guess && is_part_of(&cw_graph_parts[guess - 1], graph, c))
		return &cw_graph_parts[guess - 1];
	for (unsigned i = 0; i < CW_REC_REPLAYS; i++) {
		if (is_part_of(&cw_graph_parts[i], graph, c)) {
			last_part[c] = (uint16_t)(i + 1);
			return &cw_graph_parts[i];
		}
	}
	return NULL;
}

/* ---- runs of equal ops ---- */

static uint32_t take_run(void)
{
	uint32_t at = free_run_plus_1;

	if (at) {
		free_run_plus_1 = cw_record.templates[at - 1].next_plus_1;
		return at;
	}
	return runs_used < CW_REC_TEMPLATES ? ++runs_used : 0;
}

static bool is_same(const struct cw_rec_template *a, const struct cw_rec_template *b)
{
	/* Two groups of equal ops are two steps, so we must not join them. */
	return !(a->flags & CW_REC_TEMPLATE_GROUP_END) && a->count == b->count &&
	       a->root_or_peer == b->root_or_peer && a->kind == b->kind && a->dtype == b->dtype &&
	       a->redop == b->redop && a->flags == b->flags;
}

bool cw_graph_part_append(struct cw_graph_part *part, const struct cw_rec_template *op)
{
	struct cw_rec_template *last =
		part->last_plus_1 ? &cw_record.templates[part->last_plus_1 - 1] : NULL;
	struct cw_rec_replay *replay = cw_graph_replay_of(part);
	uint32_t at;

	if (last && is_same(last, op)) {
		CW_STORE(last->repeat, last->repeat + op->repeat);
	} else {
		at = take_run();
		if (!at)
			return false;
		cw_record.templates[at - 1] = *op;
		if (last)
			CW_STORE(last->next_plus_1, at);
		else
			CW_STORE(replay->first_plus_1, at);
		part->last_plus_1 = at;
	}
	CW_STORE(replay->ops, replay->ops + op->repeat);
	if (cw_op_is_collective(op->kind))
		CW_STORE(replay->colls, replay->colls + op->repeat);
	return true;
}

static void remove_last(struct cw_graph_part *part)
{
	struct cw_rec_replay *replay = cw_graph_replay_of(part);
	struct cw_rec_template *last = &cw_record.templates[part->last_plus_1 - 1];
	uint32_t before = 0;

	CW_STORE(replay->ops, replay->ops - 1);
	if (cw_op_is_collective(last->kind))
		CW_STORE(replay->colls, replay->colls - 1);
	CW_STORE(last->repeat, last->repeat - 1);
	if (last->repeat)
		return;
	for (uint32_t at = replay->first_plus_1; at && at != part->last_plus_1;
	     at = cw_record.templates[at - 1].next_plus_1)
		before = at;
	CW_STORE(last->next_plus_1, free_run_plus_1);
	free_run_plus_1 = part->last_plus_1;
	part->last_plus_1 = before;
	if (before)
		CW_STORE(cw_record.templates[before - 1].next_plus_1, 0u);
	else
		CW_STORE(replay->first_plus_1, 0u);
}

void cw_graph_part_take_back(struct cw_graph_part *part, uint32_t count)
{
	while (count-- && part->last_plus_1)
		remove_last(part);
}
