/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A launch of a CUDA graph is one op in the rings. The launch stands for all ops of the graph on
 * its communicator. While the graph runs, the graph's own pair of progress words counts how many of
 * these ops are reached and completed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_internal.h"

/* Number of entries per read. */
#define REPLAYS_AT_ONCE 128u

static int read_templates(struct cw_record *rec)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_TEMPLATES];

	if (!rec->templates) {
		rec->templates = malloc(sizeof(*rec->templates) +
					s->count * sizeof(rec->templates->runs[0]));
		if (!rec->templates)
			return -ENOMEM;
	}
	rec->templates->looks_left = CW_RECORD_TEMPLATE_LOOKS;
	rec->templates->count = s->count;
	if (!s->count)
		return 0;
	return cw_record_read_table(rec, s, 0, s->count, sizeof(rec->templates->runs[0]),
				    rec->templates->runs);
}

/* Returns how many of n entries are used. The agent fills the table from the front. */
static uint32_t used_of(const struct cw_rec_replay *entries, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (entries[i].generation == 0 && entries[i].comm_plus_1 == 0)
			return i;
	return n;
}

int cw_record_read_replays(struct cw_record *rec, uint32_t has)
{
	const struct cw_record_section *s = &rec->sections[CW_REC_SECTION_REPLAYS];
	struct cw_rec_replay again[REPLAYS_AT_ONCE];
	uint32_t first = 0, n, used;
	int r;

	rec->n_replays = 0;
	if (!(has & CW_REC_HAS_REPLAYS) || s->count == 0)
		return 0;
	if (!rec->replays)
		rec->replays = calloc(s->count, sizeof(*rec->replays));
	if (!rec->replays)
		return -ENOMEM;
	do {
		struct cw_rec_replay *entries = &rec->replays[first];

		n = s->count - first < REPLAYS_AT_ONCE ? s->count - first : REPLAYS_AT_ONCE;
		r = cw_record_read_table(rec, s, first, n, sizeof(*entries), entries);
		used = r == 0 ? used_of(entries, n) : 0;
		if (used)
			r = cw_record_read_table(rec, s, first, used, sizeof(again[0]), again);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < used; i++)
			if (again[i].generation != entries[i].generation)
				entries[i].generation = 0;
		first += used;
	} while (used == n && first < s->count);
	memset(&rec->replays[first], 0, (s->count - first) * sizeof(*rec->replays));
	r = read_templates(rec);
	if (r < 0)
		return r;
	rec->n_replays = s->count;
	return 0;
}

static const struct cw_rec_replay *entry_of(const struct cw_record *rec,
					    const struct cw_record_comm *comm, int32_t ref)
{
	uint32_t index = (uint32_t)ref & 0xffff;
	const struct cw_rec_replay *entry;

	if (ref < 0 || index >= rec->n_replays)
		return NULL;
	entry = &rec->replays[index];
	if (entry->generation == 0 || cw_rec_replay_ref(index, entry->generation) != ref ||
	    entry->comm_plus_1 != comm->index + 1 ||
	    entry->comm_generation != comm->entry.generation || entry->colls > entry->ops)
		return NULL;
	return entry;
}

typedef void (*run_fn)(void *user, uint64_t first, const struct cw_rec_template *run);

/*
 * Calls fn for each run of equal ops, with the number of ops before the run. Returns false if the
 * chain of runs is invalid.
 */
static bool each_run(const struct cw_record *rec, const struct cw_rec_replay *entry, run_fn fn,
		     void *user)
{
	struct cw_record_templates *t = rec->templates;
	uint32_t at = entry->first_plus_1;
	uint64_t ops = 0;

	while (at && ops < entry->ops) {
		const struct cw_rec_template *run;

		if (at > t->count || t->looks_left == 0)
			return false;
		t->looks_left--;
		run = &t->runs[at - 1];
		if (run->repeat == 0 || run->repeat > entry->ops - ops)
			return false;
		fn(user, ops, run);
		ops += run->repeat;
		at = run->next_plus_1;
	}
	return ops == entry->ops;
}

struct colls_below {
	uint64_t reached_ops, completed_ops;
	uint64_t reached, completed;
};

static uint64_t below(uint64_t first, uint64_t repeat, uint64_t limit)
{
	if (limit <= first)
		return 0;
	return limit - first < repeat ? limit - first : repeat;
}

static void count_colls(void *user, uint64_t first, const struct cw_rec_template *run)
{
	struct colls_below *c = user;

	if (!cw_op_is_collective(run->kind))
		return;
	c->reached += below(first, run->repeat, c->reached_ops);
	c->completed += below(first, run->repeat, c->completed_ops);
}

void cw_record_replay_of(const struct cw_record *rec, const struct cw_record_comm *comm,
			 int32_t ref, enum cw_progress launch, struct cw_record_replay *ret)
{
	const struct cw_record_slot *slot;
	struct colls_below c = { 0 };

	*ret = (struct cw_record_replay){ .entry = entry_of(rec, comm, ref) };
	if (!ret->entry)
		return;
	switch (launch) {
	case CW_PROGRESS_UNKNOWN:
		return;
	case CW_PROGRESS_ENQUEUED:
		ret->is_known = true;
		return;
	case CW_PROGRESS_COMPLETED:
		c.reached_ops = c.completed_ops = ret->entry->ops;
		break;
	case CW_PROGRESS_REACHED:
		if ((ret->entry->flags & CW_REC_REPLAY_MIXED) ||
		    ret->entry->progress_slot >= rec->n_slots)
			return;
		slot = &rec->slots[ret->entry->progress_slot];
		if (slot->comm_plus_1 != ((comm->index + 1) | CW_REC_SLOT_OF_GRAPH) ||
		    slot->comm_generation != comm->entry.generation ||
		    slot->reached > ret->entry->ops)
			return;
		c.reached_ops = slot->reached;
		c.completed_ops = slot->completed;
		break;
	}
	if (!each_run(rec, ret->entry, count_colls, &c))
		return;
	ret->is_known = true;
	ret->reached_ops = c.reached_ops;
	ret->completed_ops = c.completed_ops;
	ret->reached_colls = c.reached;
	ret->completed_colls = c.completed;
}

/* ---- expansion into single ops ---- */

struct expansion {
	const struct cw_record_replay *replay;
	const struct cw_record_op *launch;
	uint64_t first_seq;
	uint64_t from, to;        /* range of ops wanted; `to` is exclusive */
	uint64_t colls;           /* number of collectives before the current run */
	uint64_t groups;          /* number of groups that ended before the current run */
	struct cw_record_op *ops; /* output; ops[0] is op number `from` */
};

static uint8_t progress_at(const struct expansion *e, uint64_t at)
{
	if (!e->replay->is_known)
		return e->launch->progress == CW_PROGRESS_ENQUEUED ? CW_PROGRESS_ENQUEUED
								   : CW_PROGRESS_UNKNOWN;
	if (at < e->replay->completed_ops)
		return CW_PROGRESS_COMPLETED;
	if (at < e->replay->reached_ops)
		return CW_PROGRESS_REACHED;
	return e->launch->flags & CW_OPF_RETURNED ? CW_PROGRESS_ENQUEUED : CW_PROGRESS_UNKNOWN;
}

static void fill(struct expansion *e, uint64_t at, uint64_t in_run,
		 const struct cw_rec_template *run, struct cw_record_op *to)
{
	bool is_p2p = cw_op_is_p2p(run->kind);
	bool is_coll = cw_op_is_collective(run->kind);

	*to = *e->launch;
	to->kind = run->kind;
	to->dtype = run->dtype;
	to->redop = run->redop;
	to->count = run->count;
	to->bytes = run->count * cw_dtype_bytes(run->dtype);
	to->root = !is_p2p && run->root_or_peer >= 0 ? run->root_or_peer : CW_PEER_NONE;
	to->peer = is_p2p && run->root_or_peer >= 0 ? run->root_or_peer : CW_PEER_NONE;
	to->coll_seq = is_coll ? e->first_seq + e->colls + in_run : 0;
	to->progress = progress_at(e, at);
	to->flags &= (uint16_t)~CW_OPF_NO_COUNT;
	if (run->flags & CW_REC_TEMPLATE_GROUPED) {
		to->flags |= CW_OPF_GROUPED;
		to->group_id = e->launch->op_index << 20 | (e->groups + 1);
	}
	if (!is_coll)
		to->flags |= CW_OPF_NO_COUNT;
}

static void expand_run(void *user, uint64_t first, const struct cw_rec_template *run)
{
	struct expansion *e = user;

	uint64_t at = e->from > first ? e->from : first;

	for (; at < first + run->repeat && at < e->to; at++)
		fill(e, at, at - first, run, &e->ops[at - e->from]);
	if (cw_op_is_collective(run->kind))
		e->colls += run->repeat;
	if (run->flags & CW_REC_TEMPLATE_GROUP_END)
		e->groups++;
}

uint64_t cw_record_replay_count(const struct cw_record *rec, const struct cw_record_comm *comm,
				const struct cw_rec_op *launch)
{
	const struct cw_rec_replay *entry;

	if (launch->kind != CW_OP_GRAPH_LAUNCH)
		return 1;
	entry = entry_of(rec, comm, launch->root_or_peer);
	return entry && entry->ops && entry->colls == launch->count ? entry->ops : 1;
}

size_t cw_record_replay_expand(const struct cw_record *rec, const struct cw_record_comm *comm,
			       const struct cw_rec_op *launch, uint64_t first,
			       struct cw_record_op *ops, size_t max)
{
	uint64_t n = cw_record_replay_count(rec, comm, launch);
	struct cw_record_replay replay;
	struct cw_record_op whole;
	struct expansion e = { .replay = &replay, .launch = &whole, .from = first, .ops = ops };

	if (max == 0 || first >= n)
		return 0;
	cw_record_convert(rec, comm, launch, &whole);
	cw_record_replay_of(rec, comm, launch->root_or_peer, whole.progress, &replay);
	e.first_seq = launch->seq;
	e.to = n - first < max ? n : first + max;
	if (replay.entry && replay.entry->ops == n && n > 0 && launch->kind == CW_OP_GRAPH_LAUNCH &&
	    each_run(rec, replay.entry, expand_run, &e))
		return (size_t)(e.to - e.from);
	ops[0] = whole;
	return 1;
}
