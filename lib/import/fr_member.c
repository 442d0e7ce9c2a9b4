/* SPDX-License-Identifier: Apache-2.0 */
#include "import/fr_member.h"

#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "import/fr_exchange.h"
#include "import/fr_time.h"
#include "record/record_layout.h"

/*
 * The maximum number of completed calls per member. So many calls show where two histories diverge.
 */
#define WINDOW_OPS 256u
/*
 * A number in pg_status may exceed the other members' numbers by at most this much. A larger number
 * does not count collectives.
 */
#define STATUS_AHEAD 64

static bool is_collective(const struct cw_fr_op *op)
{
	return !(op->flags & CW_FR_P2P) && !cw_op_is_p2p(op->kind);
}

/* True for an open receive that accepts any sender, or for a call whose name shows no peer. */
static bool is_for_anybody(const struct cw_fr_op *op)
{
	return cw_op_is_p2p(op->kind) && op->peer == CW_FR_NONE && op->state != CW_FR_COMPLETED;
}

/*
 * True for a send or receive that gets a number. If the dumps contain all sends and receives, we
 * number all of them from the first one ever. Otherwise we number only those that have not
 * completed.
 */
static bool is_numbered_p2p(const struct fr_comm *comm, const struct cw_fr_op *op)
{
	return cw_op_is_p2p(op->kind) && op->peer >= 0 && (uint32_t)op->peer < comm->n_ranks &&
	       (comm->is_p2p_whole || op->state != CW_FR_COMPLETED);
}

/* ---- facts from the calls of all members ---- */

static int vagueness(const struct cw_fr_op *op)
{
	if (op->kind == CW_OP_NONE)
		return 3;
	return op->flags & CW_FR_NO_SHAPE ? 2 : !!(op->flags & CW_FR_ODD_DTYPE);
}

/*
 * Compares two calls for sorting by number. Of several calls with the same number, the best known
 * comes first.
 */
static int compare_calls(const void *a, const void *b)
{
	const struct cw_fr_op *const *oa = a, *const *ob = b;
	int va = vagueness(*oa), vb = vagueness(*ob);

	if ((*oa)->coll_seq != (*ob)->coll_seq)
		return (*oa)->coll_seq > (*ob)->coll_seq ? 1 : -1;
	return va - vb;
}

static void note_first(int64_t *first_ns, int64_t time_ns)
{
	if (time_ns && (!*first_ns || time_ns < *first_ns))
		*first_ns = time_ns;
}

/*
 * True if the collective has ended on the member's device. A watchdog that is held up with its rank
 * notes no ends. But another member may have completed a later call that needs all members, and the
 * calls of a communicator run one after the other. We allow a margin of one call: if calls differ,
 * NCCL may let some ranks leave a call that needs all members.
 */
static bool has_ended(const struct fr_comm *comm, const struct cw_fr_op *op)
{
	return op->state == CW_FR_COMPLETED ||
	       (is_collective(op) && op->coll_seq && op->coll_seq + 1 < comm->had_all);
}

/* Finds the oldest open collective. fr_comm.had_all must be known. */
static void find_pending(struct fr_comm *comm)
{
	for (uint32_t i = 0; i < comm->n_calls; i++) {
		const struct cw_fr_op *op = comm->calls[i];

		if (has_ended(comm, op) || !op->coll_seq)
			continue;
		if (!comm->lowest_pending) {
			comm->lowest_pending = op->coll_seq;
			comm->pending_kind = op->kind;
		}
		if (op->coll_seq != comm->lowest_pending)
			return;
		note_first(&comm->pending_ns, op->created_ns);
	}
}

static void look_at_p2p(struct fr_comm *comm, const struct cw_fr_op *op)
{
	if (op->state != CW_FR_COMPLETED && op->peer >= 0 && (uint32_t)op->peer < comm->n_ranks)
		note_first(&comm->asked_ns[op->peer], op->created_ns);
}

/* ---- pairs of which both halves are open ---- */

/* An open send or receive. */
struct half {
	uint32_t sender, receiver; /* ranks in the group */
	uint64_t number;           /* number among the messages from sender to receiver */
	const struct cw_fr_op *op;
	const struct cw_fr_dump *dump;
};

static int compare_halves(const void *a, const void *b)
{
	const struct half *x = a, *y = b;

	if (x->sender != y->sender)
		return x->sender < y->sender ? -1 : 1;
	if (x->receiver != y->receiver)
		return x->receiver < y->receiver ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->op->kind > y->op->kind) - (x->op->kind < y->op->kind);
}

static int compare_ops(const void *a, const void *b)
{
	const struct cw_fr_op *const *x = a, *const *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_one_launch(const struct cw_fr_op *a, const struct cw_fr_op *b)
{
	return a == b || (a->group == b->group && a->p2p_seq == b->p2p_seq &&
			  a->flags & b->flags & CW_FR_P2P && a->flags & b->flags & CW_FR_COALESCED);
}

/* True if the rank has an older open call, in the order in which the rank itself made its calls. */
static bool has_older_open(const struct half *h)
{
	const struct cw_fr_op *oldest = h->dump->oldest_open;

	return oldest && oldest->order < h->op->order && !is_one_launch(oldest, h->op);
}

/* Lists the open halves of the member at `place`. `counts` has two zeros per member. */
static void list_halves(const struct fr_comm *comm, uint32_t place, uint64_t *counts,
			struct half *halves, uint32_t *n)
{
	const struct fr_place *p = &comm->places[place];
	const struct cw_fr_op *ops = p->group ? &p->dump->ops[p->group->first_op] : NULL;

	for (uint32_t i = 0; ops && i < p->group->n_ops; i++) {
		const struct cw_fr_op *op = &ops[i];
		bool is_send = op->kind == CW_OP_SEND;
		uint64_t number;

		if (!is_numbered_p2p(comm, op))
			continue;
		number = ++counts[2 * (size_t)op->peer + is_send];
		if (op->state == CW_FR_COMPLETED)
			continue;
		halves[(*n)++] = (struct half){
			.sender = is_send ? place : (uint32_t)op->peer,
			.receiver = is_send ? (uint32_t)op->peer : place,
			.number = number,
			.op = op,
			.dump = p->dump,
		};
	}
	for (uint32_t i = 0; ops && i < p->group->n_ops; i++)
		if (is_numbered_p2p(comm, &ops[i]))
			counts[2 * (size_t)ops[i].peer] = counts[2 * (size_t)ops[i].peer + 1] = 0;
}

/*
 * Finds the halves that are behind an older call of their rank, and whose counterpart is open too.
 * Both halves are posted, so the message stands because of one of the two ranks: the rank that has
 * an older open call. If neither rank has one, the engine cannot tell them apart. The order is that
 * of each rank's own calls. Times of different ranks show nothing.
 */
static void find_behind(struct fr_comm *comm, struct cw_arena *arena)
{
	uint64_t *counts;
	struct half *halves;
	uint32_t n = 0;

	for (uint32_t p = 0; comm->has_p2p && p < comm->n_ranks; p++)
		n += comm->places[p].group ? comm->places[p].group->n_ops : 0;
	if (!n)
		return;
	halves = cw_or_exit(cw_arena_new_array(arena, struct half, n));
	counts = cw_or_exit(cw_arena_new_array(arena, uint64_t, 2 * (size_t)comm->n_ranks));
	n = 0;
	for (uint32_t p = 0; p < comm->n_ranks; p++)
		list_halves(comm, p, counts, halves, &n);
	if (n > 1)
		qsort(halves, n, sizeof(*halves), compare_halves);
	comm->behind = cw_or_exit(cw_arena_new_array(arena, const struct cw_fr_op *, n));
	for (uint32_t i = 1; i < n; i++) {
		const struct half *a = &halves[i - 1], *b = &halves[i];

		if (a->sender != b->sender || a->receiver != b->receiver ||
		    a->number != b->number || a->op->kind == b->op->kind)
			continue;
		if (has_older_open(a))
			comm->behind[comm->n_behind++] = a->op;
		if (has_older_open(b))
			comm->behind[comm->n_behind++] = b->op;
	}
	if (comm->n_behind > 1)
		qsort(comm->behind, comm->n_behind, sizeof(*comm->behind), compare_ops);
}

static bool is_behind(const struct fr_comm *comm, const struct cw_fr_op *op)
{
	return comm->n_behind && bsearch(&op, comm->behind, comm->n_behind, sizeof(*comm->behind),
					 compare_ops) != NULL;
}

/* True if the dump contains all of the member's calls on the group, from the first one on. */
static bool has_all_p2p(const struct fr_place *place)
{
	const struct cw_fr_op *ops;
	uint64_t highest = 0;

	if (!place->group)
		return true;
	ops = &place->dump->ops[place->group->first_op];
	if (place->dump->n_bad_entries)
		return false;
	if (!place->group->n_ops)
		return place->group->has_status && place->group->last_enqueued <= 0;
	for (uint32_t i = 0; i < place->group->n_ops; i++) {
		if (!cw_op_is_p2p(ops[i].kind))
			continue;
		if (ops[i].p2p_seq != highest && ops[i].p2p_seq != highest + 1)
			return false;
		highest = ops[i].p2p_seq;
	}
	/*
	 * A collective carries the number of the last p2p call before it. 0 means that there was no
	 * p2p call.
	 */
	return highest || ops[0].coll_seq == 1 || ops[place->group->n_ops - 1].p2p_seq == 0;
}

/*
 * Returns the number of completed calls before the oldest pending call in the list. The buffer may
 * have lost these calls. Then we use pg_status, if pg_status counts only collectives.
 */
static uint64_t completed_before(const struct fr_comm *comm, const struct fr_place *place,
				 uint64_t lowest_pending)
{
	const struct cw_fr_group *g = place->group;
	const struct cw_fr_op *ops = &place->dump->ops[g->first_op];
	bool is_counted = g->has_status && !comm->has_p2p && g->last_enqueued > 0 &&
			  (uint64_t)g->last_enqueued >= lowest_pending;

	for (uint32_t i = 0; i < g->n_ops; i++)
		if (is_collective(&ops[i]) && ops[i].coll_seq == lowest_pending - 1)
			return lowest_pending - 1;
	if (is_counted && g->last_completed < (int64_t)lowest_pending - 1)
		return g->last_completed > 0 ? (uint64_t)g->last_completed : 0;
	return lowest_pending - 1;
}

static uint64_t last_completed(const struct fr_comm *comm, const struct fr_place *place)
{
	uint64_t lowest_pending = 0, highest = 0;

	for (uint32_t i = 0; place->group && i < place->group->n_ops; i++) {
		const struct cw_fr_op *op = &place->dump->ops[place->group->first_op + i];

		if (!is_collective(op))
			continue;
		if (op->coll_seq > highest)
			highest = op->coll_seq;
		if (op->state != CW_FR_COMPLETED &&
		    (!lowest_pending || op->coll_seq < lowest_pending))
			lowest_pending = op->coll_seq;
	}
	return lowest_pending ? completed_before(comm, place, lowest_pending) : highest;
}

/*
 * True if no member can finish the call before all members have entered it. An all_to_all is no
 * such call. A member may finish it without a missing member that has no data for it.
 */
static bool needs_all(const struct cw_fr_op *op)
{
	return !(op->flags & CW_FR_COALESCED) &&
	       (op->kind == CW_OP_ALL_REDUCE || op->kind == CW_OP_ALL_GATHER ||
		op->kind == CW_OP_REDUCE_SCATTER);
}

/* The position of the slowest members among the members that list calls. */
struct last {
	uint64_t coll_seq;
	int64_t taken_ns; /* time of the youngest dump at this position; INT64_MAX = unknown */
};

static struct last find_last(const struct fr_comm *comm)
{
	struct last last = { .coll_seq = UINT64_MAX };

	for (uint32_t p = 0; p < comm->n_ranks; p++) {
		const struct fr_place *place = &comm->places[p];
		uint64_t highest = 0;
		int64_t taken_ns;

		for (uint32_t i = 0; place->group && i < place->group->n_ops; i++)
			if (place->dump->ops[place->group->first_op + i].coll_seq > highest)
				highest = place->dump->ops[place->group->first_op + i].coll_seq;
		if (!highest || highest > last.coll_seq)
			continue;
		taken_ns = place->dump->taken_ns ? place->dump->taken_ns : INT64_MAX;
		if (highest < last.coll_seq || taken_ns > last.taken_ns)
			last = (struct last){ highest, taken_ns };
	}
	return last;
}

/*
 * True if the call counts as completed but may have ended by its time-out. Such a call needs all
 * members, and by their dumps not all of them had entered it.
 */
static bool may_have_failed(const struct cw_fr_op *op, const struct last *last)
{
	return op->flags & CW_FR_ENDED && op->coll_seq > last->coll_seq &&
	       op->created_ns <= last->taken_ns && needs_all(op);
}

/* Finds the last call that all members have entered. The calls must be sorted. */
static void find_what_all_came_to(struct fr_comm *comm)
{
	struct last last = find_last(comm);
	uint64_t completed = 0;

	for (uint32_t p = 0; p < comm->n_ranks; p++) {
		uint64_t n = last_completed(comm, &comm->places[p]);

		completed = n > completed ? n : completed;
	}
	for (uint32_t i = comm->n_calls; i-- > 0;) {
		const struct cw_fr_op *op = comm->calls[i];

		if (may_have_failed(op, &last))
			comm->n_unconfirmed++;
		else if (!comm->had_all && op->coll_seq <= completed && needs_all(op))
			comm->had_all = op->coll_seq;
	}
}

void fr_comm_prepare(struct fr_comm *comm, struct cw_arena *arena)
{
	size_t n = 0;

	for (uint32_t p = 0; p < comm->n_ranks; p++)
		if (comm->places[p].group)
			n += comm->places[p].group->n_ops;
	comm->calls = cw_or_exit(cw_arena_new_array(arena, const struct cw_fr_op *, n));
	comm->asked_ns = cw_or_exit(cw_arena_new_array(arena, int64_t, comm->n_ranks));
	comm->peers = cw_or_exit(cw_arena_new_array(arena, uint32_t, comm->n_ranks));
	for (uint32_t p = 0; p < comm->n_ranks; p++) {
		const struct fr_place *place = &comm->places[p];

		comm->lacks_dump = comm->lacks_dump || !place->dump;
		if (place->dump && place->dump->has_completed)
			comm->has_completed = true;
		for (uint32_t i = 0; place->group && i < place->group->n_ops; i++) {
			const struct cw_fr_op *op = &place->dump->ops[place->group->first_op + i];

			if (is_collective(op))
				comm->calls[comm->n_calls++] = op;
			else
				look_at_p2p(comm, op);
			/*
			 * p2p_seq shows that there was a p2p call before, which the dump may have
			 * lost.
			 */
			if (!is_collective(op) || op->p2p_seq)
				comm->has_p2p = true;
			if (op->coll_seq > comm->highest)
				comm->highest = op->coll_seq;
		}
	}
	comm->is_p2p_whole = comm->has_p2p;
	for (uint32_t p = 0; p < comm->n_ranks; p++)
		if (comm->places[p].dump && !has_all_p2p(&comm->places[p]))
			comm->is_p2p_whole = false;
	if (comm->n_calls > 1)
		qsort(comm->calls, comm->n_calls, sizeof(*comm->calls), compare_calls);
	find_what_all_came_to(comm);
	find_pending(comm);
	find_behind(comm, arena);
	fr_exchange_compare(comm, arena);
}

/* Returns the best known call with the number of `op`. It may be `op` itself. */
static const struct cw_fr_op *best_call(const struct fr_comm *comm, const struct cw_fr_op *op)
{
	uint32_t low = 0, high = comm->n_calls;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (comm->calls[mid]->coll_seq < op->coll_seq)
			low = mid + 1;
		else
			high = mid;
	}
	return comm->calls[low];
}

/* ---- ops ---- */

static uint8_t progress_of(const struct cw_fr_dump *dump, const struct cw_fr_op *op)
{
	switch (op->state) {
	case CW_FR_COMPLETED:
		return CW_PROGRESS_COMPLETED;
	case CW_FR_STARTED:
		return CW_PROGRESS_REACHED;
	default:
		return dump->is_timed ? CW_PROGRESS_ENQUEUED : CW_PROGRESS_UNKNOWN;
	}
}

static struct cw_op make_op(const struct cw_fr_dump *dump, const struct cw_fr_op *op)
{
	return (struct cw_op){ .kind = op->kind,
			       .dtype = op->dtype,
			       .redop = CW_REDOP_NONE,
			       .progress = progress_of(dump, op),
			       .flags = CW_OPF_RETURNED,
			       .root = CW_PEER_NONE,
			       .peer = CW_PEER_NONE,
			       .count = op->count,
			       .bytes = op->bytes,
			       .stack = op->stack ? dump->stacks.numbers[op->stack - 1] : 0,
			       .enter_ns = fr_common_time(dump, op->created_ns),
			       .return_ns = fr_common_time(dump, op->created_ns) };
}

static struct cw_op make_collective(struct fr_comm *comm, const struct cw_fr_dump *dump,
				    const struct cw_fr_op *op)
{
	struct cw_op out = make_op(dump, op);

	out.coll_seq = op->coll_seq;
	if (op->flags & (CW_FR_NO_SHAPE | CW_FR_ODD_DTYPE)) {
		const struct cw_fr_op *best = best_call(comm, op);

		/*
		 * We keep the member's own properties in two cases. No other member shows this
		 * call. Or the other members use a known type, which this unknown type cannot be.
		 */
		if (!(op->flags & CW_FR_NO_SHAPE))
			return out;
		/*
		 * A different kind is a difference even if the sizes are unknown, because the
		 * member certainly made another call.
		 */
		if (op->kind != CW_OP_NONE && op->kind != best->kind &&
		    !(op->flags & CW_FR_COALESCED))
			return out;
		/*
		 * An unknown property must not look like a difference, so we copy the properties of
		 * the best known call.
		 */
		out.kind = best->kind;
		out.dtype = best->dtype;
		out.count = best->count;
		out.bytes = best->bytes;
		if (best->kind == CW_OP_NONE) {
			out.kind = CW_OP_ALL_REDUCE;
			comm->n_unnamed_ops++;
		}
	}
	return out;
}

/*
 * Counts the sends or receives of the peer. Returns the new count, which is the number of the op.
 */
static uint64_t count_p2p(const struct fr_comm *comm, struct cw_snap_member *m,
			  const struct cw_fr_op *op)
{
	uint32_t *number = &comm->peers[op->peer];
	struct cw_p2p_peer *e;

	if (!*number) {
		m->p2p[m->n_p2p++].peer = (uint32_t)op->peer;
		*number = m->n_p2p;
	}
	e = &m->p2p[*number - 1];
	if (op->kind == CW_OP_SEND) {
		m->sends++;
		return ++e->sends;
	}
	m->recvs++;
	return ++e->recvs;
}

static struct cw_op make_p2p(const struct fr_comm *comm, struct cw_snap_member *m,
			     const struct cw_fr_dump *dump, const struct cw_fr_op *op)
{
	struct cw_op out = make_op(dump, op);

	out.peer = op->peer;
	out.p2p_seq = count_p2p(comm, m, op);
	/*
	 * NCCL buffers small sends, so a send may complete before its receive does. Our pairs are
	 * then shifted by one. The shift does not change which ranks wait, but sizes of shifted
	 * pairs would differ. So we do not compare sizes.
	 */
	if (!comm->is_p2p_whole)
		out.bytes = 0;
	if (op->flags & CW_FR_COALESCED) {
		out.flags |= CW_OPF_GROUPED;
		out.group_id = op->p2p_seq;
		/*
		 * This half of an open batch may be done while the list lacks the other half. Or
		 * the batch waits for a rank that has no dump.
		 */
		if ((!comm->is_p2p_whole || comm->lacks_dump) &&
		    out.progress == CW_PROGRESS_REACHED)
			out.progress = CW_PROGRESS_UNKNOWN;
	}
	if (is_behind(comm, op))
		out.progress = CW_PROGRESS_ENQUEUED;
	return out;
}

/* ---- a member ---- */

static void make_room(const struct fr_comm *comm, const struct fr_place *place,
		      struct cw_arena *arena, struct cw_snap_member *m)
{
	uint32_t n = place->group ? place->group->n_ops : 0, n_p2p = 0;

	for (uint32_t i = 0; i < n; i++)
		n_p2p += is_numbered_p2p(comm, &place->dump->ops[place->group->first_op + i]);
	m->window = cw_or_exit(cw_arena_new_array(arena, struct cw_op, n));
	m->p2p = cw_or_exit(cw_arena_new_array(arena, struct cw_p2p_peer, n_p2p));
}

static void note_progress(struct cw_snap_member *m, const struct cw_fr_dump *dump,
			  const struct cw_fr_op *op)
{
	int64_t newest_ns = op->completed_ns > op->created_ns ? op->completed_ns : op->created_ns;

	newest_ns = fr_common_time(dump, newest_ns);
	if (newest_ns > m->progress_ns)
		m->progress_ns = newest_ns;
}

static void forget_progress(struct cw_snap_member *m)
{
	for (uint32_t i = 0; i < m->n_window; i++)
		if (m->window[i].progress == CW_PROGRESS_ENQUEUED &&
		    !cw_op_is_p2p(m->window[i].kind))
			m->window[i].progress = CW_PROGRESS_UNKNOWN;
}

/* Derives the counters and the window from the member's own calls. */
static void read_calls(struct fr_comm *comm, const struct fr_place *place, struct cw_snap_member *m)
{
	const struct cw_fr_op *ops = &place->dump->ops[place->group->first_op];
	uint64_t lowest_pending = 0;

	/*
	 * op_index counts this rank's calls from the first listed call on. The value 1 must mean
	 * the first call ever, because such a call gets more patience.
	 */
	if (ops[0].coll_seq > 1)
		m->op_index = ops[0].coll_seq - 1;
	for (uint32_t i = 0; i < place->group->n_ops; i++) {
		const struct cw_fr_op *op = &ops[i];
		struct cw_op out;

		note_progress(m, place->dump, op);
		if (op->coll_seq > m->coll_entered)
			m->coll_entered = op->coll_seq;
		if (is_collective(op)) {
			out = make_collective(comm, place->dump, op);
			if (op->state != CW_FR_SCHEDULED && op->coll_seq > m->coll_reached)
				m->coll_reached = op->coll_seq;
			if (has_ended(comm, op))
				out.progress = CW_PROGRESS_COMPLETED;
			else if (!lowest_pending || op->coll_seq < lowest_pending)
				lowest_pending = op->coll_seq;
		} else if (is_numbered_p2p(comm, op)) {
			out = make_p2p(comm, m, place->dump, op);
		} else if (is_for_anybody(op)) {
			out = make_op(place->dump, op);
		} else {
			continue;
		}
		out.op_index = ++m->op_index;
		m->window[m->n_window++] = out;
	}
	for (uint32_t i = 0; i < m->n_p2p; i++)
		comm->peers[m->p2p[i].peer] = 0;
	m->coll_completed =
		lowest_pending ? completed_before(comm, place, lowest_pending) : m->coll_entered;
	/*
	 * A call before the oldest listed call has not completed either, so the rank may be in the
	 * earlier call.
	 */
	if (lowest_pending > m->coll_completed + 1)
		forget_progress(m);
	if (m->coll_reached < m->coll_completed)
		m->coll_reached = m->coll_completed;
	m->known |= CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_COMPLETED;
	if (place->dump->is_timed && lowest_pending <= m->coll_completed + 1)
		m->known |= CW_KNOWN_REACHED;
}

static bool all_take_part(unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE || kind == CW_OP_ALL_GATHER ||
	       kind == CW_OP_REDUCE_SCATTER || kind == CW_OP_ALL_TO_ALL;
}

/*
 * True if a member lists no call on the group, but the dump may lack its current call. If dumps
 * list only open calls, the member is in no call. Otherwise the buffer may have lost the call. A
 * reset of the recorder is also possible if the member must have made calls before.
 */
static bool may_have_lost_calls(const struct fr_comm *comm, const struct fr_place *place)
{
	return comm->has_completed && (place->dump->is_cut || comm->lowest_pending > 1);
}

/* Infers the position of a member that lists no call on the group. */
static void infer_position(const struct fr_comm *comm, const struct fr_place *place,
			   struct cw_snap_member *m)
{
	const struct cw_fr_group *g = place->group;
	bool has_status = g && g->has_status;
	uint64_t enqueued = has_status && g->last_enqueued > 0 ? (uint64_t)g->last_enqueued : 0;

	/* If no rank waits in a collective, any number will do. Sends and receives are known. */
	if (!comm->lowest_pending)
		m->coll_entered = comm->highest;
	else if (!g || (has_status && g->last_enqueued < 0))
		m->coll_entered = 0;
	else if (has_status && !comm->has_p2p && enqueued <= comm->highest + STATUS_AHEAD)
		m->coll_entered = enqueued;
	else if (all_take_part(comm->pending_kind) && !may_have_lost_calls(comm, place))
		m->coll_entered = comm->lowest_pending - 1;
	else
		return;
	m->coll_completed = m->coll_reached = m->coll_entered;
	m->known |= CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_COMPLETED | CW_KNOWN_REACHED;
}

/* Records that the device has reached none of the pending calls. */
static void put_behind(struct cw_snap_member *m)
{
	for (uint32_t i = 0; i < m->n_window; i++)
		if (m->window[i].progress == CW_PROGRESS_UNKNOWN)
			m->window[i].progress = CW_PROGRESS_ENQUEUED;
	m->coll_reached = m->coll_completed;
	m->known |= CW_KNOWN_REACHED;
}

static void choose_ops(struct cw_snap_member *m)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < m->n_window; i++) {
		if (m->window[i].progress == CW_PROGRESS_COMPLETED)
			continue;
		if (!m->pending) {
			m->pending = &m->window[i];
			first = i;
		}
		m->pending_count++;
	}
	if (m->n_window)
		m->last = &m->window[m->n_window - 1];
	if (!m->pending || m->n_window - first < WINDOW_OPS)
		first = m->n_window > WINDOW_OPS ? m->n_window - WINDOW_OPS : 0;
	if (m->n_window - first > WINDOW_OPS * 4)
		m->n_window = first + WINDOW_OPS * 4;
	m->window += first;
	m->n_window -= first;
	m->window_lost = first;
	if (m->n_window && m->window[0].coll_seq > 1)
		m->window_lost += m->window[0].coll_seq - 1;
	if (!m->n_window)
		m->window = NULL;
}

/*
 * True if other members completed calls that this member must have entered after its dump. We allow
 * a margin of one call. If calls differ, NCCL may let some ranks leave a call before all members
 * have come. A member that entered these calls, and lists their ends late, is slow.
 */
static bool was_dumped_earlier(const struct fr_comm *comm, const struct cw_snap_member *m)
{
	return m->known & CW_KNOWN_ENTERED && m->coll_entered + 1 < comm->had_all;
}

/*
 * True if the member may have made the awaited call after its dump was taken. We assume that all
 * clocks agree.
 */
static bool was_dumped_before(const struct fr_comm *comm, uint32_t at,
			      const struct cw_snap_member *m)
{
	int64_t taken_ns = comm->places[at].dump->taken_ns;

	if (!taken_ns)
		return false;
	return comm->asked_ns[at] > taken_ns ||
	       (comm->pending_ns > taken_ns && m->known & CW_KNOWN_ENTERED &&
		m->coll_entered < comm->lowest_pending);
}

void fr_member_make(struct fr_comm *comm, uint32_t at, struct cw_arena *arena,
		    struct cw_snap_member *ret)
{
	const struct fr_place *place = &comm->places[at];
	struct cw_snap_member m = { .state = CW_COMM_READY };

	*ret = m;
	if (!place->dump || !place->dump->has_entries)
		return;
	make_room(comm, place, arena, &m);
	m.known = CW_KNOWN_P2P;
	if (place->group && place->group->n_ops)
		read_calls(comm, place, &m);
	else
		infer_position(comm, place, &m);
	if (place->is_behind)
		put_behind(&m);
	if (was_dumped_earlier(comm, &m)) {
		comm->n_earlier++;
		return;
	}
	if (was_dumped_before(comm, at, &m)) {
		comm->n_before++;
		return;
	}
	choose_ops(&m);
	*ret = m;
}
