/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stall/patience.h"

#include <stdlib.h>

#include "analysis/stall/stall.h"
#include "model/signature.h"
#include "record/record_layout.h"

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- T, the stall limit of an op ---- */

static bool is_first_or_init(const struct cw_snap_member *m)
{
	if (m->state == CW_COMM_INIT)
		return true;
	if (!m->pending)
		return false;
	return cw_op_blocks_host(m->pending->kind) || m->pending->coll_seq == 1 ||
	       m->pending->op_index == 1;
}

/* Returns 4 × bytes divided by the worst bandwidth; 0 if no bandwidth is configured. */
static int64_t transfer_ns(const struct cw_thresholds *t, const struct cw_op *op)
{
	double ns;

	if (!op || !t->bytes_per_s)
		return 0;
	ns = 4e9 * (double)op->bytes / (double)t->bytes_per_s;
	return ns < 1e18 ? (int64_t)ns : INT64_C(1000000000000000000);
}

int64_t cw_stall_limit_ns(const struct cw_snapshot *snap, uint32_t comm, uint32_t member)
{
	const struct cw_thresholds *t = &snap->thresholds;
	const struct cw_snap_comm *c;
	const struct cw_snap_member *m;
	int64_t limit;

	if (comm >= snap->n_comms || member >= snap->comms[comm].nranks)
		return t->stall_max_ns;
	c = &snap->comms[comm];
	m = &c->members[member];
	if (is_first_or_init(m)) {
		limit = t->first_op_ns + t->first_op_per_rank_ns * (int64_t)c->nranks;
	} else {
		/*
		 * We divide, because the interval is untrusted and may be enormous. A product could
		 * overflow.
		 */
		limit = t->stall_factor && m->interval_ns > t->stall_max_ns / t->stall_factor
				? t->stall_max_ns
				: m->interval_ns * t->stall_factor;
		limit = max_ns(limit, t->stall_min_ns);
	}
	return max_ns(limit, transfer_ns(t, m->pending));
}

/* Returns the limit T of a rank that waits directly for the culprit. */
static int64_t limit_of(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	uint32_t first = CW_SNAP_NONE, waiter = CW_SNAP_NONE;

	if (!v->n_sides || !v->sides[0].n_ranks || v->comm >= snap->n_comms)
		return snap->thresholds.stall_max_ns;
	for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++) {
		const struct cw_snap_member *member = &snap->comms[v->comm].members[m];

		if (member->rank == v->sides[0].ranks[0])
			first = m;
		if (v->coll_seq && member->pending && waiter == CW_SNAP_NONE &&
		    member->pending->coll_seq == v->coll_seq)
			waiter = m;
	}
	/*
	 * The first rank may have completed the call. The limit of a rank that is still inside is
	 * better.
	 */
	if (waiter != CW_SNAP_NONE)
		first = waiter;
	return first == CW_SNAP_NONE ? snap->thresholds.stall_max_ns
				     : cw_stall_limit_ns(snap, v->comm, first);
}

/* ---- facts about the ranks that others wait for ---- */

#define S INT64_C(1000000000)

/*
 * True if a person holds the rank and knows it: a debugger or a freezer holds it. A stop by a
 * signal does not count, because it may be an accident.
 */
static bool is_held_knowingly(const struct cw_snap_rank *r)
{
	enum cw_detail by = cw_rank_held_by(r);

	return by == CW_DETAIL_TRACED || by == CW_DETAIL_FROZEN;
}

/*
 * True if a person holds some member of the comm. In a collective such a member blocks the others
 * even if its own part is done, because its proxy thread moves their data.
 */
static bool is_member_held(const struct cw_snapshot *snap, uint32_t comm)
{
	const struct cw_snap_comm *c = &snap->comms[comm];

	for (uint32_t m = 0; m < c->nranks; m++)
		if (c->members[m].rank != CW_SNAP_NONE &&
		    is_held_knowingly(&snap->ranks[c->members[m].rank]))
			return true;
	return false;
}

static bool is_held(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (is_held_knowingly(&snap->ranks[v->culprits[i].rank]))
			return true;
	return v->verdict_class == CW_CLASS_IN_COLLECTIVE && is_member_held(snap, v->comm);
}

/*
 * Marks the ranks that made progress on another comm at or after since_ns. The caller frees the
 * array. NULL = out of memory.
 */
static bool *who_moved_elsewhere(const struct cw_snapshot *snap, uint32_t comm, int64_t since_ns)
{
	bool *has_moved = calloc(snap->n_ranks + 1u, sizeof(*has_moved));

	for (uint32_t c = 0; has_moved && c < snap->n_comms; c++)
		for (uint32_t m = 0; c != comm && m < snap->comms[c].nranks; m++) {
			const struct cw_snap_member *member = &snap->comms[c].members[m];

			if (member->rank != CW_SNAP_NONE && member->progress_ns >= since_ns)
				has_moved[member->rank] = true;
		}
	return has_moved;
}

/*
 * True if no waiting rank is blocked: all ranks that have long waited in the call still make
 * progress on other comms. The call then has a stream of its own, like a receive that is posted
 * long before its send. A hung rank can at most enqueue a few more calls before the first
 * evaluation. If we are out of memory, we assume that the ranks are blocked.
 */
static bool nobody_is_held_up(const struct cw_snapshot *snap, const struct cw_verdict *v,
			      int64_t limit_ns)
{
	int64_t since = max_ns(v->waiting_since_ns + limit_ns,
			       snap->now_ns - snap->thresholds.no_progress_after_ns);
	bool *has_moved, all;

	if (!v->waiting_since_ns || since > snap->now_ns || !v->n_sides || !v->sides[0].n_ranks ||
	    !v->sides[0].has_op)
		return false;
	has_moved = who_moved_elsewhere(snap, v->comm, since);
	all = has_moved != NULL;
	for (uint32_t i = 0; all && i < v->sides[0].n_ranks; i++)
		all = has_moved[v->sides[0].ranks[i]];
	free(has_moved);
	return all;
}

/* All facts that the condition of a row (see `rows`) may use. */
struct matter {
	const struct cw_snapshot *snap;
	const struct cw_verdict *v;
	/* The rank that others wait for, one of the culprits; NULL = none. */
	const struct cw_snap_rank *w;
	uint32_t w_index;
	int64_t limit_ns; /* T, the stall limit */
	/* L, the longest wait at this site that the job has survived; 0 = none */
	int64_t longest_ns;
	int64_t timeout_ns; /* J, the time-out of the job's own watchdog; 0 = none */
	int64_t retry_ns;   /* the network's own retry time */
	uint32_t notices;   /* notices so far at this wait site about a source of work */
	/* True if the job looks like a server at this wait site, and no notice has said so yet. */
	bool is_like_server;
	/*
	 * The fields below describe all culprits together. We compute them once, because there may
	 * be thousands of culprits and each may use them.
	 */
	bool is_held;          /* a debugger or freezer holds some culprit */
	bool is_clean_exit;    /* all culprits have ended without fault */
	int64_t last_come_ns;  /* when the last waiting rank arrived; 0 = unknown */
	int64_t last_ended_ns; /* when the last culprit ended; 0 = none has ended */
};

/* Returns the time since which other ranks need this rank and it has shown no activity. */
static int64_t quiet_since(const struct matter *m)
{
	return m->w ? max_ns(m->w->host_activity_ns, m->v->waiting_since_ns)
		    : m->v->waiting_since_ns;
}

/*
 * True if the rank has shown no activity for long while other ranks need it. Its activity before
 * that does not matter. If its host activity is unknown, it does not count as idle.
 */
static bool is_quiet(const struct matter *m)
{
	return m->w && m->w->host_activity_ns &&
	       m->snap->now_ns - quiet_since(m) >= m->snap->thresholds.no_progress_after_ns;
}

static bool is_outside(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_NEVER_ENTERED ||
	       m->v->verdict_class == CW_CLASS_INIT_STUCK ||
	       (m->v->verdict_class == CW_CLASS_P2P_UNMATCHED && m->v->detail != CW_DETAIL_SIZE);
}

static bool all_ended_cleanly(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	/*
	 * A program that gets an NCCL error and exits without fault still abandons the other ranks.
	 */
	if (v->verdict_class != CW_CLASS_PROCESS_DEAD || !v->n_culprits || v->has_failed_call)
		return false;
	for (uint32_t i = 0; i < v->n_culprits; i++) {
		const struct cw_snap_rank *r = &snap->ranks[v->culprits[i].rank];

		if (r->liveness != CW_LIVE_EXITED || r->exit_code)
			return false;
	}
	return true;
}

static int64_t last_end(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	int64_t last = 0;

	for (uint32_t i = 0; i < v->n_culprits; i++)
		last = max_ns(last, snap->ranks[v->culprits[i].rank].ended_ns);
	return last;
}

static int64_t last_come(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	int64_t last = 0;

	if (v->verdict_class != CW_CLASS_NEVER_ENTERED || v->comm >= snap->n_comms)
		return 0;
	for (uint32_t i = 0; i < snap->comms[v->comm].nranks; i++) {
		const struct cw_snap_member *m = &snap->comms[v->comm].members[i];

		/*
		 * In a rooted call some members finish their part at once, and then wait in a later
		 * call.
		 */
		if (m->rank != CW_SNAP_NONE && (m->known & CW_KNOWN_ENTERED) &&
		    m->coll_entered >= v->coll_seq && m->pending)
			last = max_ns(last, m->pending->enter_ns);
	}
	return last;
}

static bool fits_clean_exit(const struct matter *m)
{
	return m->is_clean_exit;
}

/*
 * True if the rank ended together with its node, or on a request that reached no other rank. The
 * rank may be the cause, or only the first of many ranks that are stopped.
 */
static bool fits_ended_with_node(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_PROCESS_DEAD && !m->v->is_proof && m->w &&
	       m->w->flags & CW_RANKF_SHUTDOWN;
}

static bool fits_held(const struct matter *m)
{
	return m->is_held;
}

static bool fits_stopped(const struct matter *m)
{
	return m->w && m->w->liveness == CW_LIVE_STOPPED;
}

static bool fits_closed_wait(const struct matter *m)
{
	return is_outside(m) && m->w && m->w->host_activity_ns &&
	       cw_host_wait_is_closed(m->w->host_wait);
}

static bool fits_all_inside(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_IN_COLLECTIVE ||
	       m->v->verdict_class == CW_CLASS_MISMATCH ||
	       (m->v->verdict_class == CW_CLASS_P2P_UNMATCHED && m->v->detail == CW_DETAIL_SIZE);
}

static bool fits_device(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_DEVICE_STALLED;
}

static bool fits_busy(const struct matter *m)
{
	return is_outside(m) && m->w && !is_quiet(m);
}

static bool fits_storage(const struct matter *m)
{
	return is_outside(m) && m->w &&
	       (m->w->host_wait == CW_HOST_WAIT_STORAGE || m->w->flags & CW_RANKF_D_STATE);
}

/*
 * True if `rank` is the awaited rank or another rank of its process. While the thread of the
 * process waits for one rank, it cannot serve another.
 */
static bool is_its_process(const struct matter *m, uint32_t rank)
{
	return rank < m->snap->n_ranks && cw_snap_rank_shares_process(&m->snap->ranks[rank], m->w);
}

/*
 * True if the awaited rank's process is the root of this op and hands out data that no other member
 * has.
 */
static bool gives(const struct matter *m, const struct cw_snap_comm *c, const struct cw_op *op)
{
	return (op->kind == CW_OP_BROADCAST || op->kind == CW_OP_SCATTER) && op->root >= 0 &&
	       (uint32_t)op->root < c->nranks && is_its_process(m, c->members[op->root].rank);
}

/*
 * True if the others wait for the rank as the root of a call. The rank then decides what they do
 * next.
 */
static bool is_root(const struct matter *m)
{
	const struct cw_snap_comm *c =
		m->v->comm < m->snap->n_comms ? &m->snap->comms[m->v->comm] : NULL;

	for (uint32_t i = 0; c && i < m->v->n_sides; i++)
		if (m->v->sides[i].has_op && gives(m, c, &m->v->sides[i].op))
			return true;
	return false;
}

/* True if the device or the host waits in this op. */
static bool is_waited_in(const struct cw_op *op)
{
	return op && (op->progress == CW_PROGRESS_REACHED || !(op->flags & CW_OPF_RETURNED));
}

/*
 * True if other members are in a collective that this member has not entered, and the member does
 * not hand out work by it. The other members wait in the collective or have finished their part.
 * The leaves of a gather, for example, finish at once.
 */
static bool is_missed_in(const struct matter *m, const struct cw_snap_comm *c, uint32_t own)
{
	uint64_t entered = c->members[own].coll_entered;

	for (uint32_t k = 0; k < c->nranks; k++) {
		const struct cw_snap_member *other = &c->members[k];
		const struct cw_op *op = other->pending;

		if (is_its_process(m, other->rank))
			continue;
		if (other->known & CW_KNOWN_COMPLETED && other->coll_completed > entered)
			return true;
		if (is_waited_in(op) && cw_op_is_collective(op->kind) && op->coll_seq > entered &&
		    !gives(m, c, op))
			return true;
	}
	return false;
}

/*
 * True if other members miss this process in a call that it owes them, whether it is idle or not.
 */
static bool is_missed_elsewhere(const struct matter *m)
{
	for (uint32_t i = 0; i < m->snap->n_comms; i++) {
		const struct cw_snap_comm *c = &m->snap->comms[i];

		for (uint32_t k = 0; k < c->nranks; k++)
			if (is_its_process(m, c->members[k].rank) &&
			    c->members[k].known & CW_KNOWN_ENTERED && is_missed_in(m, c, k))
				return true;
	}
	return false;
}

/*
 * True if the rank hands out work by the very call that the others wait in, and has no work to hand
 * out.
 */
static bool has_no_work(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_NEVER_ENTERED &&
	       cw_host_wait_is_open(m->w->host_wait) && is_root(m) && !is_missed_elsewhere(m);
}

/*
 * True if the rank is a source of work that has none. A rank that waits at a terminal is such a
 * source too, in any call: a person types slowly.
 */
static bool fits_source(const struct matter *m)
{
	return is_outside(m) && m->w && m->v->comm < m->snap->n_comms &&
	       (m->w->host_wait == CW_HOST_WAIT_TTY || has_no_work(m));
}

static bool fits_init(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_INIT_STUCK;
}

static bool fits_outside(const struct matter *m)
{
	return is_outside(m);
}

static bool fits_restarting(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_UNKNOWN &&
	       m->v->detail == CW_DETAIL_DAEMON_RESTARTING;
}

static bool fits_unknown(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_UNKNOWN;
}

/*
 * True if the age of the rank's last digest is at most one digest interval plus the time that a
 * digest may take.
 */
static bool was_seen_lately(const struct cw_snapshot *snap, uint32_t rank)
{
	uint32_t node = rank < snap->n_ranks ? snap->ranks[rank].node : CW_SNAP_NONE;

	return node >= snap->n_nodes || snap->now_ns - snap->nodes[node].last_digest_ns <
						snap->thresholds.confirm_ns / 4 * 3;
}

/*
 * True for a cycle without proof if the node of some rank in it has not reported lately. A newer
 * digest, or an answer about the node's calls, may break the cycle.
 */
static bool fits_unseen_cycle(const struct matter *m)
{
	const struct cw_verdict *v = m->v;

	if (v->verdict_class != CW_CLASS_DEADLOCK || v->is_proof)
		return false;
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (!was_seen_lately(m->snap, v->culprits[i].rank))
			return true;
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; k < v->sides[i].n_ranks; k++)
			if (!was_seen_lately(m->snap, v->sides[i].ranks[k]))
				return true;
	return false;
}

/*
 * True for a cycle without proof if we do not know the calls of some waiting ranks. From counters
 * we then guess that a message is behind the call in which its sender or receiver waits, and the
 * guess may be wrong.
 */
static bool fits_guessed_cycle(const struct matter *m)
{
	const struct cw_verdict *v = m->v;

	if (v->verdict_class != CW_CLASS_DEADLOCK || v->is_proof || v->comm >= m->snap->n_comms)
		return false;
	for (uint32_t i = 0; i < m->snap->comms[v->comm].nranks; i++) {
		const struct cw_snap_member *member = &m->snap->comms[v->comm].members[i];

		if (member->rank != CW_SNAP_NONE && member->pending && !member->n_window)
			return true;
	}
	return false;
}

/* True if the record shows the fault, but no rank has waited for it. */
static bool fits_left_behind(const struct matter *m)
{
	return m->v->is_left_behind;
}

/* True if some rank waits and we do not know since when. Dumps may lack the time. */
static bool somebody_waits(const struct matter *m)
{
	const struct cw_snap_comm *c;

	if (m->v->comm >= m->snap->n_comms)
		return false;
	c = &m->snap->comms[m->v->comm];
	for (uint32_t i = 0; i < c->nranks; i++)
		if (c->members[i].pending && !c->members[i].pending->enter_ns)
			return true;
	return false;
}

static bool fits_slow(const struct matter *m)
{
	return m->v->verdict_class == CW_CLASS_SLOW ||
	       (!m->v->waiting_since_ns && !somebody_waits(m));
}

static bool fits_anything(const struct matter *m)
{
	(void)m;
	return true;
}

/* ---- computed times ---- */

/*
 * Returns the time at which we report a wait before the job's time-out ends the job. It is 30 s
 * before the time-out, or two thirds of a time-out below 90 s.
 */
static int64_t before_timeout(const struct matter *m)
{
	return m->timeout_ns < 90 * S ? m->timeout_ns / 3 * 2 : m->timeout_ns - 30 * S;
}

/*
 * The patience with a working rank: the longest wait that we remember of a job, plus 900 s. An
 * operation that is meant to take four hours takes a little longer.
 */
#define BUSY_PAGE_NS (WAIT_SITES_LONGEST_NS + 900 * S)
/*
 * The longest time-out shortly before which we send a notice. For a longer one the notice would
 * come too late.
 */
#define SHORT_TIMEOUT_NS (3600 * S)
/* Users who set a longer time-out mean none. */
#define LONGEST_TIMEOUT_NS (24 * 3600 * S)
/*
 * The maximum delay of the job's watchdog after its time-out. The watchdog checks only once in a
 * while, writes its report, and aborts. All this may take minutes.
 */
#define TIMEOUT_LATE_NS (900 * S)

/* True if the job's own watchdog will end the job. */
static bool has_watchdog(const struct matter *m)
{
	return m->timeout_ns > 0;
}

/* Scales a time of the table below. The table assumes the default of no_progress_after, 60 s. */
static int64_t scaled(const struct matter *m, int64_t ns)
{
	return (int64_t)((double)ns / (60 * S) * (double)m->snap->thresholds.no_progress_after_ns);
}

static int64_t at_limit(const struct matter *m)
{
	return m->limit_ns;
}

static int64_t still_notice(const struct matter *m)
{
	return max_ns(m->limit_ns, m->snap->thresholds.in_collective_ns);
}

/*
 * A network may retry by itself, and we let it finish its retries. NCCL's own 34 s are 4.096 us x
 * 2^20 x 8.
 */
static int64_t still_page(const struct matter *m)
{
	return max_ns(max_ns(still_notice(m), scaled(m, 60 * S)), m->retry_ns / 2 * 3);
}

static int64_t device_page(const struct matter *m)
{
	return max_ns(scaled(m, 300 * S), 3 * m->longest_ns);
}

static int64_t busy_notice(const struct matter *m)
{
	return has_watchdog(m) && m->timeout_ns <= SHORT_TIMEOUT_NS ? before_timeout(m) : 600 * S;
}

/*
 * Returns the time to page for a working rank. Activity does not show whether the rank will ever
 * finish. Only the job knows how long its work may take. If the job's watchdog has not ended the
 * job in time, the watchdog does not watch this call.
 */
static int64_t busy_page(const struct matter *m)
{
	int64_t ns = max_ns(BUSY_PAGE_NS, 3 * m->longest_ns);

	/*
	 * A server may set a longer time-out in its code than we assume, and it may be idle all
	 * night.
	 */
	if (has_watchdog(m) && is_root(m))
		return PATIENCE_NEVER;
	return has_watchdog(m) && m->timeout_ns <= LONGEST_TIMEOUT_NS
		       ? max_ns(ns, m->timeout_ns + TIMEOUT_LATE_NS)
		       : ns;
}

static int64_t storage_page(const struct matter *m)
{
	return max_ns(300 * S, 3 * m->longest_ns);
}

/*
 * Returns the time of the next notice about a source of work. The first notice comes soon. Further
 * notices on a rank that waits for work again and again become ever rarer. One more notice comes
 * soon if it can say that the job looks like a server.
 */
static int64_t source_notice(const struct matter *m)
{
	static const int64_t after_ns[] = { 75 * S, 1800 * S, 4 * 3600 * S };

	if (m->is_like_server && has_no_work(m))
		return after_ns[0];
	return after_ns[m->notices < 2 ? m->notices : 2];
}

/*
 * True if some member has not come. An unregistered member is no culprit, because we know nothing
 * about it, not even its rank.
 */
static bool is_somebody_absent(const struct matter *m)
{
	const struct cw_snap_comm *c =
		m->v->comm < m->snap->n_comms ? &m->snap->comms[m->v->comm] : NULL;

	for (uint32_t i = 0; c && i < c->nranks; i++)
		if (c->members[i].rank == CW_SNAP_NONE)
			return true;
	return m->v->n_culprits != 0;
}

/* If all members have come, our limit is the time that it takes to make a communicator. */
static int64_t init_page(const struct matter *m)
{
	int64_t ns = is_somebody_absent(m) ? 600 * S : 300 * S;

	if (m->v->n_crossed)
		return m->v->is_crossed_behind ? max_ns(m->limit_ns, 300 * S) : m->limit_ns;

	return max_ns(m->limit_ns, max_ns(scaled(m, ns), 3 * m->longest_ns));
}

/*
 * Returns the time to page for an idle rank. We do not see all activity of the host, such as bytes
 * that arrive on a socket. A page after four minutes was false for 42 of 60 drawn healthy waits of
 * this kind, and a page after ten minutes for 22.
 */
static int64_t idle_page(const struct matter *m)
{
	int64_t ns = max_ns(scaled(m, 600 * S), 3 * m->longest_ns);

	return has_watchdog(m) && before_timeout(m) < ns ? before_timeout(m) : ns;
}

static int64_t idle_notice(const struct matter *m)
{
	int64_t ns = scaled(m, 75 * S), page = idle_page(m);

	return ns < page ? ns : page;
}

static int64_t unknown_notice(const struct matter *m)
{
	return max_ns(m->limit_ns, m->snap->thresholds.host_activity_alert_ns);
}

/* ---- the table ---- */

enum since { SINCE_WAITING, SINCE_QUIET, SINCE_ENDED };

struct row {
	const char *name;
	bool (*fits)(const struct matter *m);
	enum since since;
	enum cw_hang hang, at_page;
	enum cw_confidence confidence; /* upper limit */
	/* A fixed time, or a function that computes the time. 0 without a function = never. */
	int64_t notice_ns, page_ns;
	int64_t (*notice)(const struct matter *m);
	int64_t (*page)(const struct matter *m);
	bool is_scaled;   /* the times scale with no_progress_after */
	bool is_training; /* pages with COLLWATCH_POLICY=training only */
	bool is_no_proof, is_source, is_held;
	bool is_busy, is_idle;
};

/*
 * The table of patience. We use the first row that fits. Proofs and lost nodes are handled without
 * the table (analysis/stall/stall.c, patience_with_node()).
 */
static const struct row rows[] = {
	/* A message that no rank will ever receive is worth a notice, but no page. */
	{ "left behind", fits_left_behind, SINCE_WAITING, CW_HANG_NONE, CW_HANG_NONE,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 5 * S },
	/* The waiting ranks make progress on other comms: no rank is blocked. */
	{ "it moves", fits_slow, SINCE_WAITING, CW_HANG_NONE, CW_HANG_NONE, CW_CONFIDENCE_CERTAIN },
	/* The rank ended as intended. The other ranks may still have work to do. */
	{ "ended without fault", fits_clean_exit, SINCE_ENDED, CW_HANG_LIKELY, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 10 * S, .page_ns = 60 * S, .is_no_proof = true },
	/*
	 * A scheduler that cancels a job gives its ranks half a minute to end. The cancel reaches
	 * other nodes within that time, too.
	 */
	{ "ended with its node, or on request", fits_ended_with_node, SINCE_ENDED, CW_HANG_LIKELY,
	  CW_HANG_LIKELY, CW_CONFIDENCE_LIKELY, .notice_ns = 10 * S, .page_ns = 60 * S },
	/* A person holds the rank and knows it. */
	{ "held by a debugger or freezer", fits_held, SINCE_WAITING, CW_HANG_POSSIBLE,
	  CW_HANG_POSSIBLE, CW_CONFIDENCE_CERTAIN, .notice_ns = 75 * S, .is_held = true },
	/* A signal stopped the rank, and we know of no person who will continue it. */
	{ "stopped", fits_stopped, SINCE_QUIET, CW_HANG_LIKELY, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 30 * S, .page_ns = 60 * S, .is_scaled = true,
	  .is_held = true },
	/*
	 * The rank waits for a lock that only its own process can release, and the process does
	 * nothing.
	 */
	{ "in a lock", fits_closed_wait, SINCE_QUIET, CW_HANG_LIKELY, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 30 * S, .page_ns = 60 * S, .is_scaled = true },
	/* All members have entered, or some have finished. The progress words do not move. */
	{ "nothing moves", fits_all_inside, SINCE_WAITING, CW_HANG_LIKELY, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice = still_notice, .page = still_page },
	/*
	 * A kernel of the program itself may be running on the device; we do not see such kernels.
	 */
	{ "the device stands", fits_device, SINCE_WAITING, CW_HANG_POSSIBLE, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 75 * S, .page = device_page, .is_scaled = true,
	  .is_training = true },
	/*
	 * The rank evaluates, writes a checkpoint or compiles. The job's own watchdog knows best
	 * how long that may take.
	 */
	{ "it shows host activity", fits_busy, SINCE_WAITING, CW_HANG_POSSIBLE, CW_HANG_POSSIBLE,
	  CW_CONFIDENCE_LIKELY, .notice = busy_notice, .page = busy_page, .is_training = true,
	  .is_busy = true },
	/* The rank waits for storage. A server that is down may come back or not. */
	{ "in storage", fits_storage, SINCE_QUIET, CW_HANG_POSSIBLE, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice_ns = 60 * S, .page = storage_page, .is_training = true },
	/* An idle server looks like this row all night. */
	{ "source of work", fits_source, SINCE_QUIET, CW_HANG_POSSIBLE, CW_HANG_POSSIBLE,
	  CW_CONFIDENCE_CERTAIN, .notice = source_notice, .is_source = true },
	/* The processes of a job may start minutes apart. */
	{ "making a communicator", fits_init, SINCE_WAITING, CW_HANG_POSSIBLE, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice = at_limit, .page = init_page, .is_training = true },
	/*
	 * Examples are a data loader that died, and a rank that left the step. An idle rank of a
	 * server is normal.
	 */
	{ "idle", fits_outside, SINCE_QUIET, CW_HANG_POSSIBLE, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice = idle_notice, .is_training = true, .page = idle_page,
	  .is_idle = true },
	/* The daemon announced its restart. It comes back, or its node becomes unreachable. */
	{ "a daemon restarts", fits_restarting, SINCE_WAITING, CW_HANG_POSSIBLE, CW_HANG_POSSIBLE,
	  CW_CONFIDENCE_POSSIBLE },
	/* We do not page for a rank that we cannot see. */
	{ "not visible", fits_unknown, SINCE_WAITING, CW_HANG_POSSIBLE, CW_HANG_POSSIBLE,
	  CW_CONFIDENCE_POSSIBLE, .notice = unknown_notice },
	/* Soon the node will report again, or count as lost. */
	{ "a cycle with a node that was not seen lately", fits_unseen_cycle, SINCE_WAITING,
	  CW_HANG_POSSIBLE, CW_HANG_POSSIBLE, CW_CONFIDENCE_POSSIBLE },
	/* If this is a real cycle, nothing will move in it. */
	{ "a cycle of which not all calls are seen", fits_guessed_cycle, SINCE_WAITING,
	  CW_HANG_POSSIBLE, CW_HANG_LIKELY, CW_CONFIDENCE_LIKELY, .notice = still_notice,
	  .page = still_page },
	/* Examples are one dead rank among several, and a cycle without proof. */
	{ "waiting", fits_anything, SINCE_WAITING, CW_HANG_LIKELY, CW_HANG_LIKELY,
	  CW_CONFIDENCE_CERTAIN, .notice = at_limit, .page = at_limit },
};

static const struct row *row_for(const struct matter *m)
{
	const struct row *row = rows;

	while (!row->fits(m))
		row++;
	return row;
}

/*
 * True if the rank may wait for its turn. Such a rank sleeps and checks again while other missing
 * ranks still work, or arrived long after the first. The ranks may share a file that only one may
 * write, or be in a store barrier that all of them enter. The host wait is unknown if we may not
 * inspect the process, or if it waits for a file lock. Then the rank may wait for its turn too.
 */
static bool may_wait_its_turn(const struct matter *m, const struct row *row)
{
	return row->is_idle && m->w &&
	       (m->w->host_wait == CW_HOST_WAIT_QUEUE || m->w->host_wait == CW_HOST_WAIT_SOCKET ||
		m->w->host_wait == CW_HOST_WAIT_UNKNOWN);
}

static int64_t since_of(const struct matter *m, const struct row *row)
{
	int64_t since_ns = quiet_since(m);

	if (may_wait_its_turn(m, row) &&
	    m->last_come_ns - m->v->waiting_since_ns >= m->snap->thresholds.no_progress_after_ns)
		since_ns = max_ns(since_ns, m->last_come_ns);
	if (row->since == SINCE_QUIET)
		return since_ns;
	if (row->since == SINCE_ENDED)
		return max_ns(m->v->waiting_since_ns, m->last_ended_ns);
	return m->v->waiting_since_ns;
}

static int64_t time_of(const struct matter *m, const struct row *row, int64_t ns,
		       int64_t (*fn)(const struct matter *m))
{
	if (fn)
		return fn(m);
	if (!ns)
		return PATIENCE_NEVER;
	return row->is_scaled ? scaled(m, ns) : ns;
}

static struct patience patience_of(const struct matter *m)
{
	const struct row *row = row_for(m);
	bool is_served = m->snap->policy == CW_POLICY_TRAINING ||
			 (m->snap->policy == CW_POLICY_SERVING && !row->is_training);
	struct patience p = {
		.name = row->name,
		.since_ns = since_of(m, row),
		.notice_ns = time_of(m, row, row->notice_ns, row->notice),
		.page_ns = time_of(m, row, row->page_ns, row->page),
		.stall_ns = m->limit_ns,
		.hang = row->hang,
		.hang_at_page = row->at_page,
		.confidence = row->confidence,
		.is_no_proof = row->is_no_proof,
		.is_source = row->is_source,
		.is_held = row->is_held,
		.is_pause = row->is_held,
	};

	p.may_page = is_served && p.page_ns != PATIENCE_NEVER;
	/*
	 * A person at a debugger's prompt is a source of work too, but the prompt does not make the
	 * job a server.
	 */
	p.gives_work = row->is_source && has_no_work(m);
	p.proposes_serving = p.gives_work && m->is_like_server;
	return p;
}

static bool somebody_is_busy(struct matter *m)
{
	for (uint32_t i = 0; i < m->v->n_culprits; i++) {
		m->w_index = m->v->culprits[i].rank;
		m->w = &m->snap->ranks[m->w_index];
		if (row_for(m)->is_busy)
			return true;
	}
	return false;
}

/* True if we report the culprit with patience `a` before the culprit with patience `b`. */
static bool is_sooner(const struct patience *a, const struct patience *b)
{
	int64_t pa = a->may_page ? a->page_ns : PATIENCE_NEVER;
	int64_t pb = b->may_page ? b->page_ns : PATIENCE_NEVER;

	return pa != pb ? pa < pb : a->notice_ns < b->notice_ns;
}

/*
 * True if every other missing rank on a reporting node has been sampled since the waiting began. A
 * rank without a sample may be stopped or dead, and would then be the better culprit. We do not
 * wait for a node that has been quiet long enough to count as silent.
 */
static bool others_were_looked_at(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	if (snap->now_ns - v->waiting_since_ns >= snap->thresholds.node_silent_ns)
		return true;
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; !v->sides[i].has_op && k < v->sides[i].n_ranks; k++) {
			const struct cw_snap_rank *r = &snap->ranks[v->sides[i].ranks[k]];

			if (r->node < snap->n_nodes &&
			    snap->nodes[r->node].state == CW_NODE_REPORTING &&
			    r->sampled_ns < v->waiting_since_ns)
				return false;
		}
	return true;
}

/*
 * Returns the patience with an unreachable node. It has no notice, because the leader has already
 * waited for the node and tried to reconnect.
 */
static struct patience patience_with_node(const struct matter *m)
{
	const struct cw_snapshot *snap = m->snap;
	const struct cw_thresholds *t = &snap->thresholds;
	uint32_t node = m->v->n_culprits ? snap->ranks[m->v->culprits[0].rank].node : CW_SNAP_NONE;

	return (struct patience){
		.name = "node unreachable",
		.since_ns = m->v->waiting_since_ns,
		.notice_ns = PATIENCE_NEVER,
		.stall_ns = m->limit_ns,
		.hang = CW_HANG_LIKELY,
		.hang_at_page = CW_HANG_LIKELY,
		.confidence = CW_CONFIDENCE_LIKELY,
		.may_page = snap->policy == CW_POLICY_TRAINING && node < snap->n_nodes &&
			    snap->now_ns - snap->nodes[node].last_digest_ns >= t->node_silent_ns &&
			    others_were_looked_at(snap, m->v),
		.is_held = true,
	};
}

/* The longest plausible retry time of a network. InfiniBand's settings allow up to 20 hours. */
#define RETRY_MAX_NS (24 * 3600 * S)

static void note_members(struct matter *m)
{
	const struct cw_snap_comm *c;

	if (m->v->comm >= m->snap->n_comms)
		return;
	c = &m->snap->comms[m->v->comm];
	for (uint32_t i = 0; i < c->nranks; i++) {
		const struct cw_snap_rank *r;

		if (c->members[i].rank == CW_SNAP_NONE)
			continue;
		r = &m->snap->ranks[c->members[i].rank];
		if (r->job_timeout_ns > 0 && (!m->timeout_ns || r->job_timeout_ns < m->timeout_ns))
			m->timeout_ns = r->job_timeout_ns;
		if (r->net_retry_ns <= RETRY_MAX_NS)
			m->retry_ns = max_ns(m->retry_ns, r->net_retry_ns);
	}
}

static int64_t min3(int64_t a, int64_t b, int64_t c)
{
	int64_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

struct patience cw_patience(const struct cw_snapshot *snap, const struct cw_verdict *v,
			    const struct wait_sites *sites)
{
	struct wait_site like = wait_site_of(snap, v);
	const struct wait_site *site = sites ? wait_sites_find(sites, &like) : NULL;
	struct matter m = { .snap = snap,
			    .v = v,
			    .limit_ns = limit_of(snap, v),
			    .longest_ns = site ? site->longest_ns : 0,
			    .notices = site ? site->notices : 0,
			    .is_like_server = snap->policy == CW_POLICY_TRAINING && sites &&
					      wait_sites_should_propose(sites, site),
			    .is_held = is_held(snap, v),
			    .is_clean_exit = all_ended_cleanly(snap, v),
			    .last_come_ns = last_come(snap, v),
			    .last_ended_ns = last_end(snap, v) };
	struct patience best = { 0 }, p;
	bool is_one_busy, has_best = false;

	if (nobody_is_held_up(snap, v, m.limit_ns))
		return (struct patience){ .name = "those who wait get on",
					  .since_ns = v->waiting_since_ns,
					  .read_after_ns = m.limit_ns / 2,
					  .stall_ns = m.limit_ns,
					  .notice_ns = PATIENCE_NEVER,
					  .page_ns = PATIENCE_NEVER,
					  .confidence = CW_CONFIDENCE_CERTAIN };
	note_members(&m);
	if (v->verdict_class == CW_CLASS_NODE_UNREACHABLE && !fits_held(&m))
		return patience_with_node(&m);
	if (!v->n_culprits)
		best = patience_of(&m);
	is_one_busy = v->n_culprits > 1 && somebody_is_busy(&m);
	for (uint32_t i = 0; i < v->n_culprits; i++) {
		m.w_index = v->culprits[i].rank;
		m.w = &snap->ranks[m.w_index];
		if (is_one_busy && may_wait_its_turn(&m, row_for(&m)))
			continue;
		p = patience_of(&m);
		if (!has_best || is_sooner(&p, &best))
			best = p;
		has_best = true;
	}
	best.read_after_ns = min3(best.stall_ns, best.notice_ns, best.page_ns) / 2;
	return best;
}

/* ---- evidence ---- */

static uint64_t hash_progress(uint64_t h, const struct cw_snap_member *m)
{
	h = cw_hash_step(cw_hash_step(h, m->coll_reached), m->coll_completed);
	/* Sends and receives complete without moving the counters above. */
	return cw_hash_step(h, m->pending ? m->pending->op_index : 0);
}

/* Hashes only facts of the rank that are equal in all snapshots. An index may change. */
static uint64_t hash_rank(uint64_t h, const struct cw_snap_rank *r)
{
	h = cw_hash_step(h, (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)r->pid);
	return cw_hash_step(h, r->start_ticks);
}

/*
 * Hashes the culprits. A single culprit must also not have entered another call between the two
 * readings, so we include its counters.
 */
static uint64_t hash_culprits(uint64_t h, const struct cw_snapshot *snap,
			      const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		h = hash_rank(h, &snap->ranks[v->culprits[i].rank]);
	if (v->comm >= snap->n_comms || v->n_culprits != 1)
		return h;
	for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++) {
		const struct cw_snap_member *member = &snap->comms[v->comm].members[m];

		if (member->rank == v->culprits[0].rank)
			h = cw_hash_step(hash_progress(h, member), member->coll_entered);
	}
	return h;
}

uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, v->verdict_class);

	h = cw_hash_step(hash_culprits(h, snap, v), v->coll_seq);
	if (v->comm >= snap->n_comms)
		return h;
	h = cw_hash_step(h, snap->comms[v->comm].id);
	if (v->verdict_class == CW_CLASS_IN_COLLECTIVE || v->verdict_class == CW_CLASS_UNKNOWN ||
	    v->verdict_class == CW_CLASS_MISMATCH)
		for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++)
			h = hash_progress(h, &snap->comms[v->comm].members[m]);
	return h;
}
