/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derives the pending ops of a comm and the progress of its collectives from the last ops and the
 * progress words.
 *
 * The comm's own ring holds its last 32 ops. If one of them has completed, all older ops have
 * completed, too. NCCL runs the ops of one communicator in launch order, on any streams. (Source:
 * "Using multiple streams within the same group", NCCL user guide, and one launch order per
 * communicator.) If no op in the ring has completed, we search further back in the bulk ring. If
 * the bulk ring has lost the answer as well, the progress words alone can give it. They suffice
 * only for a communicator that makes nothing but collectives. Otherwise the result is "unknown". To
 * say "completed" too early would turn the culprit of a hang into its victim.
 */
#include <errno.h>

#include "record/record_internal.h"

#define NCCL_SUCCESS 0
#define NCCL_IN_PROGRESS 7

struct tally {
	const struct cw_record *rec;
	const struct cw_record_comm *comm;
	bool has_first; /* true if we have found a pending op; the last one found is the oldest */
	uint64_t first_ticket;
	uint32_t n_pending, n_unreturned;
	/* Lowest coll_seq that is not completed, or not reached. UINT64_MAX = none. */
	uint64_t incomplete_seq, unreached_seq;
	/* Highest coll_seq that is completed, or reached. 0 = none. */
	uint64_t complete_seq, reached_seq;
	/* op_index and coll_seq of the oldest collective seen. 0 = none. */
	uint64_t oldest_index, oldest_seq;
	bool is_grounded; /* all older ops have completed, or there are none */
	bool is_blind;    /* a collective has unknown progress, and so have all later ones */
};

static bool has_failed(uint16_t flags, int16_t result)
{
	return (flags & CW_OPF_RETURNED) && result != NCCL_SUCCESS && result != NCCL_IN_PROGRESS;
}

/* Returns whether the device has to run this op at all. */
static bool is_launched(uint16_t flags)
{
	return !(flags & (CW_OPF_QUEUED | CW_OPF_DROPPED | CW_OPF_CAPTURED | CW_OPF_NO_COUNT));
}

static bool is_pending(unsigned kind, uint16_t flags, enum cw_progress progress)
{
	if (flags & (CW_OPF_QUEUED | CW_OPF_DROPPED))
		return false;
	if (!is_launched(flags) || cw_op_blocks_host(kind) || progress == CW_PROGRESS_UNKNOWN)
		return !(flags & CW_OPF_RETURNED);
	return progress != CW_PROGRESS_COMPLETED;
}

/*
 * Counts a collective. The caller passes ops newest first, so we have seen every later op already.
 */
static void count_collective(struct tally *t, uint64_t seq, enum cw_progress progress)
{
	/* The op's progress is unknown. If a later op has completed, this op has completed, too. */
	if (progress == CW_PROGRESS_UNKNOWN && t->is_grounded)
		progress = CW_PROGRESS_COMPLETED;
	switch (progress) {
	case CW_PROGRESS_UNKNOWN:
		t->is_blind = true;
		return;
	case CW_PROGRESS_COMPLETED:
		if (seq > t->complete_seq)
			t->complete_seq = seq;
		if (seq > t->reached_seq)
			t->reached_seq = seq;
		return;
	case CW_PROGRESS_REACHED:
		if (seq > t->reached_seq)
			t->reached_seq = seq;
		break;
	case CW_PROGRESS_ENQUEUED:
		if (seq < t->unreached_seq)
			t->unreached_seq = seq;
		break;
	}
	if (seq < t->incomplete_seq)
		t->incomplete_seq = seq;
}

/*
 * Counts a graph launch as `count` collectives from seq on. Returns whether all ops of the graph on
 * this comm have completed. Other work of the graph does not concern this comm.
 */
static bool count_replay(struct tally *t, const struct cw_record_bulk_op *op,
			 enum cw_progress progress)
{
	struct cw_record_replay replay;

	if (progress == CW_PROGRESS_UNKNOWN || progress == CW_PROGRESS_COMPLETED) {
		count_collective(t, op->seq + op->count - 1, progress);
		return progress == CW_PROGRESS_COMPLETED;
	}
	if (progress == CW_PROGRESS_ENQUEUED) {
		count_collective(t, op->seq, progress);
		return false;
	}
	cw_record_replay_of(t->rec, t->comm, op->root_or_peer, progress, &replay);
	if (!replay.is_known || replay.reached_colls > op->count) {
		t->is_blind = true;
		return false;
	}
	if (replay.reached_colls < op->count)
		count_collective(t, op->seq + replay.reached_colls, CW_PROGRESS_ENQUEUED);
	if (replay.reached_colls > replay.completed_colls) {
		count_collective(t, op->seq + replay.reached_colls - 1, CW_PROGRESS_REACHED);
		count_collective(t, op->seq + replay.completed_colls, CW_PROGRESS_REACHED);
	}
	if (replay.completed_colls)
		count_collective(t, op->seq + replay.completed_colls - 1, CW_PROGRESS_COMPLETED);
	return replay.entry->colls == op->count && replay.completed_ops >= replay.entry->ops;
}

/* Counts the op, and returns whether it is pending. */
static bool count_op(struct tally *t, const struct cw_record_bulk_op *op, uint16_t flags)
{
	enum cw_progress progress =
		cw_record_progress_of(t->rec, t->comm, op->progress_slot, flags, op->op_index);
	bool pending = is_pending(op->kind, flags, progress);
	uint64_t op_index = op->op_index;

	if (cw_op_is_collective(op->kind) && op->seq && is_launched(flags)) {
		count_collective(t, op->seq, progress);
		t->oldest_index = op_index;
		t->oldest_seq = op->seq;
	}
	if (op->kind == CW_OP_GRAPH_LAUNCH && op->seq && op->count && is_launched(flags))
		pending = !count_replay(t, op, progress) && pending;
	if (progress == CW_PROGRESS_COMPLETED || op_index == 1)
		t->is_grounded = true;
	if (!(flags & CW_OPF_RETURNED))
		t->n_unreturned++;
	if (pending)
		t->n_pending++;
	return pending;
}

static bool on_bulk_op(void *user, uint64_t ticket, const struct cw_record_bulk_op *op)
{
	struct tally *t = user;

	if (count_op(t, op, op->flags)) {
		t->has_first = true;
		t->first_ticket = ticket;
	}
	return !t->is_grounded;
}

/*
 * Returns whether a walk over the bulk ring can add facts. A walk adds nothing if the progress is
 * unknown anyway and the comm's own ring holds all unreturned calls. Without this test, each sample
 * of a comm without progress words would walk the whole bulk ring in vain.
 */
static bool is_more_to_learn(const struct tally *t)
{
	const struct cw_rec_comm *e = &t->comm->entry;

	return !t->is_grounded && (!t->is_blind || e->op_index - e->op_returned > t->n_unreturned);
}

/*
 * Converts the oldest incomplete op of a graph launch. If that op is unknown, converts the launch
 * itself.
 */
static void convert_pending(const struct cw_record *rec, const struct cw_record_comm *comm,
			    const struct cw_rec_op *op, struct cw_record_op *to)
{
	struct cw_record_replay replay;

	cw_record_convert(rec, comm, op, to);
	if (op->kind != CW_OP_GRAPH_LAUNCH)
		return;
	cw_record_replay_of(rec, comm, op->root_or_peer, to->progress, &replay);
	if (replay.is_known)
		(void)cw_record_replay_expand(rec, comm, op, replay.completed_ops, to, 1);
}

static void convert_last(const struct cw_record *rec, const struct cw_record_comm *comm,
			 const struct cw_rec_op *op, struct cw_record_op *to)
{
	(void)cw_record_replay_expand(rec, comm, op, cw_record_replay_count(rec, comm, op) - 1, to,
				      1);
}

/* Walks the ops that are older than `before` until one of them has completed. */
static int look_into_bulk_ring(struct cw_record *rec, struct tally *t, uint64_t before,
			       struct cw_record_state *state)
{
	struct cw_rec_op op;
	int r;

	r = cw_record_bulk_walk(rec, t->comm, before, on_bulk_op, t);
	if (r < 0 || !t->has_first)
		return r;
	if (cw_record_bulk_read(rec, t->first_ticket, &op) && cw_record_op_is_of(t->comm, &op)) {
		convert_pending(rec, t->comm, &op, &state->pending);
		state->has_pending = true;
	}
	return 0;
}

/*
 * Returns the comm's only slot, or NULL if the comm has none or several. With several slots, the
 * progress word of a slot covers only some of the comm's ops.
 */
static const struct cw_record_slot *only_slot(const struct cw_record *rec,
					      const struct cw_record_comm *comm)
{
	const struct cw_record_slot *found = NULL;

	for (uint32_t i = 0; i < rec->n_slots; i++) {
		const struct cw_record_slot *s = &rec->slots[i];

		if (s->comm_plus_1 != comm->index + 1 ||
		    s->comm_generation != comm->entry.generation)
			continue;
		if (found)
			return NULL;
		found = s;
	}
	return found;
}

/*
 * Returns a slot whose words alone give the number of the collective: coll_seq is op_index -
 * slot->base. NULL if there is no such slot.
 *
 * We check the oldest collective that we have seen: its op_index and coll_seq must differ by
 * slot->base. A message, a host call, an empty call or a failed call in between would have
 * increased op_index alone. Graph launches increase coll_seq, so they could hide such a call.
 */
static const struct cw_record_slot *slot_that_numbers(const struct tally *t)
{
	const struct cw_rec_comm *e = &t->comm->entry;
	const struct cw_record_slot *s;

	if (t->is_blind || !t->oldest_seq || t->rec->n_replays || t->rec->rereads_left == 0 ||
	    t->rec->header.progress_untracked ||
	    (e->flags & (CW_REC_COMM_PROGRESS_LOST | CW_REC_COMM_UNCOUNTED)))
		return NULL;
	s = only_slot(t->rec, t->comm);
	return s && s->reached <= e->op_index && s->completed >= s->base &&
			       s->completed < t->oldest_index &&
			       t->oldest_index - t->oldest_seq == s->base
		       ? s
		       : NULL;
}

/*
 * Fills in the oldest pending op if both rings have lost it, but the progress words give its
 * number. Its kind and size are lost. state->pending has the oldest op that the rings still have.
 * The call of the lost op began before that op's call.
 */
static void number_lost_op(struct tally *t, struct cw_record_state *state)
{
	const struct cw_record_slot *s = slot_that_numbers(t);
	uint64_t lost = s ? s->completed + 1 : 0;
	enum cw_progress progress;

	if (!s || !state->has_pending || state->pending.op_index < t->oldest_index)
		return;
	t->is_grounded = true;
	if (lost == t->oldest_index)
		return;
	progress = s->reached >= lost ? CW_PROGRESS_REACHED : CW_PROGRESS_ENQUEUED;
	count_collective(t, lost - s->base, progress);
	if (progress == CW_PROGRESS_REACHED && s->reached + 1 < t->oldest_index)
		count_collective(t, s->reached + 1 - s->base, CW_PROGRESS_ENQUEUED);
	t->n_pending += (uint32_t)(t->oldest_index - lost);
	state->pending = (struct cw_record_op){
		.kind = CW_OP_NONE,
		.dtype = CW_DTYPE_NONE,
		.redop = CW_REDOP_NONE,
		.progress = (uint8_t)progress,
		.flags = CW_OPF_RETURNED,
		.root = CW_PEER_NONE,
		.peer = CW_PEER_NONE,
		.coll_seq = lost - s->base,
		.op_index = lost,
		.enter_mono_ns = state->pending.enter_mono_ns,
		.return_mono_ns = state->pending.enter_mono_ns,
	};
}

static uint64_t highest_done(uint64_t lowest_open, uint64_t highest_seen, uint64_t returned)
{
	if (lowest_open != UINT64_MAX)
		return lowest_open - 1;
	/* If we have seen no collective, all collectives are older than the ops that we read. */
	return highest_seen ? highest_seen : returned;
}

static uint64_t at_most(uint64_t v, uint64_t limit)
{
	return v < limit ? v : limit;
}

static void conclude(const struct tally *t, struct cw_record_state *state)
{
	const struct cw_rec_comm *e = &t->comm->entry;
	bool known = t->rec->n_slots > 0 && t->is_grounded && !t->is_blind;

	state->pending_count = t->n_pending;
	state->completed_known = known;
	state->reached_known = known;
	if (!known)
		return;
	/*
	 * The counters are from the last refresh, and the ops are from now. Limit the result to the
	 * counters.
	 */
	state->coll_completed =
		at_most(highest_done(t->incomplete_seq, t->complete_seq, e->coll_returned),
			e->coll_entered);
	state->coll_reached = at_most(
		highest_done(t->unreached_seq, t->reached_seq, e->coll_returned), e->coll_entered);
}

int cw_record_state(struct cw_record *rec, const struct cw_record_comm *comm,
		    struct cw_record_state *ret)
{
	struct tally t = {
		.rec = rec,
		.comm = comm,
		.incomplete_seq = UINT64_MAX,
		.unreached_seq = UINT64_MAX,
		.is_grounded = comm->entry.op_index == 0,
	};
	struct cw_rec_op ops[CW_REC_COMM_OPS];
	struct cw_record_state state = { 0 };
	size_t n;
	int r;

	r = cw_record_read_comm_ring(rec, comm, ops, &n);
	if (r < 0)
		return r;
	if (n) {
		state.has_last = true;
		convert_last(rec, comm, &ops[n - 1], &state.last);
	}
	for (size_t i = n; i-- > 0;) {
		/* A failed call never reached the device, so we treat the call as dropped. */
		uint16_t flags = has_failed(ops[i].flags, ops[i].result)
					 ? ops[i].flags | CW_OPF_DROPPED
					 : ops[i].flags;
		const struct cw_record_bulk_op op = { .op_index = ops[i].op_index,
						      .seq = ops[i].seq,
						      .count = ops[i].count,
						      .root_or_peer = ops[i].root_or_peer,
						      .progress_slot = ops[i].progress_slot,
						      .kind = ops[i].kind };

		if (!count_op(&t, &op, flags))
			continue;
		state.has_pending = true;
		convert_pending(rec, comm, &ops[i], &state.pending);
	}
	if (is_more_to_learn(&t)) {
		r = look_into_bulk_ring(rec, &t, n ? ops[0].op_index : UINT64_MAX, &state);
		if (r < 0)
			return r;
		if (!t.is_grounded)
			number_lost_op(&t, &state);
	}
	conclude(&t, &state);
	*ret = state;
	return 0;
}
