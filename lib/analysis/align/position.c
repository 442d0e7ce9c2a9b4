/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We compute a position from a member's counters and its pending op. Without progress writes we see
 * an op on the host only (POS_SOFT). If an op has returned and the device has not reached it,
 * earlier work of its stream is in front of it (POS_BEHIND). For a dead rank only the ops that its
 * device had completed count.
 */
#include "analysis/align/position.h"

#include "record/record_layout.h"

static uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool has_left(uint32_t state)
{
	return state == CW_COMM_DESTROYED || state == CW_COMM_ABORTED || state == CW_COMM_REVOKED ||
	       state == CW_COMM_FAILED;
}

static void read_collective(const struct cw_snap_member *m, const struct cw_op *op,
			    struct position *p)
{
	bool returned = op->flags & CW_OPF_RETURNED;
	bool reached = op->progress == CW_PROGRESS_REACHED ||
		       ((m->known & CW_KNOWN_REACHED) && m->coll_reached >= op->coll_seq);
	bool tracked = op->progress != CW_PROGRESS_UNKNOWN || (m->known & CW_KNOWN_REACHED);

	p->op = op;
	if (reached) {
		p->flags |= POS_WAITS;
	} else if (!returned) {
		/*
		 * The host itself is blocked in the call. It connects to peers, which must enter
		 * the call too.
		 */
		p->flags |= POS_WAITS;
	} else if (tracked) {
		p->flags |= POS_BEHIND;
	} else {
		p->flags |= POS_WAITS | POS_SOFT;
	}
	if (p->flags & POS_WAITS)
		p->arrived = max_u64(p->arrived, op->coll_seq);
}

static void read_pending(const struct cw_snap_member *m, struct position *p)
{
	const struct cw_op *op = m->pending;

	/*
	 * The order of the device does not include an op that blocks the host. Agents mark such an
	 * op CW_OPF_NO_COUNT.
	 */
	if (cw_op_blocks_host(op->kind)) {
		if (!(op->flags & (CW_OPF_RETURNED | CW_OPF_QUEUED | CW_OPF_DROPPED))) {
			p->op = op;
			p->flags |= POS_WAITS;
		}
		return;
	}
	if (!position_op_counts(op) || op->progress == CW_PROGRESS_COMPLETED)
		return;
	if (position_is_step(op) || position_is_replay(op) || position_is_lost(op)) {
		read_collective(m, op, p);
	} else if (cw_op_is_p2p(op->kind)) {
		bool behind = op->progress == CW_PROGRESS_ENQUEUED && (op->flags & CW_OPF_RETURNED);

		p->op = op;
		p->flags |= behind ? POS_BEHIND : POS_WAITS;
		if (op->progress == CW_PROGRESS_UNKNOWN && (op->flags & CW_OPF_RETURNED))
			p->flags |= POS_SOFT;
	}
}

struct position position_of(const struct cw_snapshot *snap, const struct cw_snap_member *m)
{
	bool knows_completed = m->known & CW_KNOWN_COMPLETED;
	const struct cw_op *op = m->pending, *last = m->last;
	struct position p = { 0 };
	const struct cw_snap_rank *rank;

	if (m->rank >= snap->n_ranks)
		return p;
	rank = &snap->ranks[m->rank];
	if (cw_liveness_is_dead(rank->liveness)) {
		/*
		 * The member's part ends with the ops that its device had completed: the other
		 * ranks cannot use an op that it had only entered. Without progress words we do not
		 * know whether an entered op had completed.
		 */
		p.flags = POS_DEAD;
		if (m->known & CW_KNOWN_ENTERED)
			p.flags |= POS_SEEN;
		if (knows_completed)
			p.arrived = m->coll_completed;
		else
			p.flags |= POS_SOFT;
	} else if (m->known & CW_KNOWN_REACHED && m->known & CW_KNOWN_ENTERED) {
		p.flags = POS_SEEN;
		p.arrived = max_u64(m->coll_reached, m->coll_completed);
	} else if (m->known & CW_KNOWN_ENTERED) {
		p.flags = POS_SEEN | POS_SOFT;
		p.arrived = m->coll_entered;
		/*
		 * The calls of a comm run one after the other. So the member is not beyond its
		 * oldest call that has not completed.
		 */
		if (knows_completed && op && position_is_step(op) &&
		    op->progress != CW_PROGRESS_COMPLETED && op->coll_seq > m->coll_completed &&
		    op->coll_seq < m->coll_entered)
			p.arrived = op->coll_seq;
	}
	if (has_left(m->state))
		p.flags |= POS_LEFT;
	/*
	 * The member may have given up a comm that never existed for it: it made no call on the
	 * comm, and NCCL never reported the comm as ready.
	 */
	if (m->state == CW_COMM_FAILED ||
	    (has_left(m->state) && !m->making_ns && !m->coll_entered && !m->sends && !m->recvs))
		p.flags |= POS_UNMADE;
	if (m->state == CW_COMM_INIT)
		p.flags |= POS_INIT;
	if (rank->node < snap->n_nodes && snap->nodes[rank->node].state == CW_NODE_UNREACHABLE) {
		p.flags |= POS_STALE;
		/*
		 * The node is lost. An op that the rank had reached but not completed may be lost
		 * too, and other ranks may wait in it. So we count completed ops only.
		 */
		if (knows_completed)
			p.arrived = m->coll_completed;
	}
	if (!(p.flags & POS_SEEN) || (p.flags & (POS_DEAD | POS_LEFT | POS_STALE)))
		return p;
	if (p.flags & POS_INIT) {
		p.flags |= POS_WAITS;
		p.op = op;
	} else if (op) {
		read_pending(m, &p);
		/*
		 * The device has not reached the oldest pending op. The ops between the newest
		 * completed op and the pending op had no progress writes (COLLWATCH_PROGRESS=auto),
		 * and the device may be in any of them. We guess that the member waits in the
		 * pending op if another member is missing there.
		 */
		if (!knows_completed && p.flags & POS_BEHIND)
			p.flags |= cw_op_is_p2p(p.op->kind)
					   ? POS_UNOBSERVED
					   : POS_UNOBSERVED | POS_WAITS | POS_GUESSED | POS_SOFT;
	} else if (!knows_completed && last &&
		   (position_is_step(last) || position_is_replay(last)) &&
		   last->flags & CW_OPF_RETURNED) {
		/*
		 * Without progress words we do not see whether the newest op has completed. But if
		 * a member is missing in that op, the op cannot have completed. So we guess that
		 * this member waits in it.
		 */
		p.op = last;
		p.flags |= POS_WAITS | POS_GUESSED | POS_SOFT;
		if (last->flags & CW_OPF_UNTRACKED)
			p.flags |= POS_UNOBSERVED;
	}
	return p;
}
