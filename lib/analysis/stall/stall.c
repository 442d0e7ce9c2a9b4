/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patience: from verdicts to stalls and hangs. A verdict says where the waiting would end if
 * nothing moved any more. This file decides how long nothing must have moved before we alert a
 * person.
 *
 * A proof can never resolve. It needs only three seconds, in case the snapshot was taken in motion.
 * Any other wait must be old, its evidence must be equal in two readings, and the rank at its end
 * must have shown no activity. If that rank is active (a checkpoint, an evaluation, a compilation),
 * we leave the wait to the job's own time-out. A job without a time-out gets four hours.
 *
 * A matter is one trouble of the job (cw_verdict_key()). Each matter has an entry, because two
 * matters may take turns as the worst. Time counts against patience only while the leader evaluates
 * the job. A leader that was held up for five minutes (cw_snapshot.held_ns) has not seen any rank
 * stand still for five minutes. We only shorten ages: the instants in our documents do not move.
 *
 * The table in patience.c gives the times: first for a notice, then for a hang. A hang is a
 * decision that stands until the matter resolves, and it may page.
 *
 * An entry lives until its op is no longer pending. If the entry was a stall, we then report once
 * that it has resolved, and remember its length. A job that recovered from a stall of half an hour
 * at some site gets an hour and a half there.
 */
#include "analysis/stall/stall.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stall/patience.h"
#include "model/signature.h"
#include "say/english.h"

#define S INT64_C(1000000000)
/* The number of entries: twice the verdicts of an evaluation, because matters take turns. */
#define MAX_ENTRIES (2 * CW_VERDICT_LIST_MAX)
#define WINDOW_EVERY_NS (1 * S)
#define MESSAGES_EVERY_NS (10 * S)
/*
 * The patience with a proof while its call is awaited. We request windows once a second, and a
 * loaded node sends them in the next iteration of its loop.
 */
#define CALL_AWAITED_NS (1 * S)
#define EVALUATE_EVERY_NS (1 * S)
#define EVALUATE_SOONEST_NS (S / 10)
/*
 * The interval of samples. While we try to prove a cycle, we evaluate at every sample of its ranks.
 */
#define SAMPLE_EVERY_NS (S / 4)
#define UNPROVEN_FOR_NS (5 * S)
/* The maximum delay of an evaluation. After a longer gap the evidence counts as new. */
#define READ_AGAIN_NS (10 * S)
/*
 * How long a proof that blocks no rank stays open without being seen. It is not visible at every
 * evaluation, because the points to compare come and go.
 */
#define SILENT_FOR_NS (30 * S)
/*
 * How many hold-ups of the leader we remember separately. If there are more, we merge the two
 * oldest.
 */
#define MAX_HOLDS 8u

/* For each entry we remember at most this many of the ranks that others wait for. */
#define MAX_WHO 8u

/* The identity of a rank: facts that are equal in all snapshots. */
struct who {
	uint64_t start_ticks;
	int32_t rank, pid;
};

/*
 * A time of length ns in which the leader was held up (cw_snapshot.held_ns). It ended at or before
 * at_ns.
 */
struct hold {
	int64_t at_ns, ns;
};

struct entry {
	struct cw_verdict_key key; /* not set = the entry is free */
	uint64_t comm_id;
	uint32_t comm_instance;
	/* Kind of the op that ranks wait in; we compare it if there is no coll_seq. */
	uint32_t op_kind;
	uint64_t coll_seq, p2p_seq;
	int64_t since_ns;
	int64_t seen_ns; /* time of the last step that concerned this entry */
	/* Since when the matter has been a proof; 0 = it is none. */
	int64_t proof_ns;
	int64_t reading_ns;   /* since when all readings are equal; 0 = not read yet */
	uint64_t reading;     /* hash of the evidence at the last reading */
	int64_t read_ns;      /* time of the last reading */
	int64_t stall_ns;     /* when the wait became a stall; 0 = not yet */
	int64_t noticed_ns;   /* when we sent a notice of this stall; 0 = not yet */
	int64_t confirmed_ns; /* when the wait became a hang; 0 = not yet */
	uint32_t confidence;  /* confidence when the hang was confirmed */
	int64_t windows_ns;   /* when we last requested windows */
	/*
	 * True for a fault that no rank waits for, such as wrong data. Wrong data stay wrong, so
	 * the entry ends only with its comm.
	 */
	bool is_silent;
	/* True if the matter has resolved, and we have not reported that yet. */
	bool is_over;
	/* True if a culprit was held, or its node was lost. We learn nothing from such a wait. */
	bool is_held;
	int64_t paused_ns;       /* when we last saw a culprit held; 0 = never */
	bool is_idle;            /* the source of work was idle for WAIT_SITES_IDLE_NS */
	bool proposes_serving;   /* the entry's notice proposes COLLWATCH_POLICY=serving */
	struct who who[MAX_WHO]; /* the ranks that others wait for, as of the last evaluation */
	uint32_t n_who;
	/* Since when we see no rank in the call; 0 = some rank is in it. */
	int64_t left_ns;
	struct wait_site site;
	/* Summary of the last verdict while the matter was a stall. */
	char what[256];
	int64_t over_after_ns;
};

struct cw_stall {
	struct entry entries[MAX_ENTRIES];
	int64_t now_ns;
	/* held_ns of the last snapshot; -1 = there was no snapshot. */
	int64_t held_ns;
	struct hold holds[MAX_HOLDS]; /* in order of time */
	unsigned n_holds;
	struct wait_sites sites;
	int64_t healthy_windows_ns; /* when we last requested windows while no rank was waiting */
	struct cw_stall_decision last[CW_VERDICT_LIST_MAX];
};

struct cw_stall *cw_stall_new(void)
{
	struct cw_stall *s = calloc(1, sizeof(*s));

	if (s)
		s->held_ns = -1;
	return s;
}

struct cw_stall *cw_stall_free(struct cw_stall *s)
{
	free(s);
	return NULL;
}

/* ---- time ---- */

static void note_hold(struct cw_stall *s, const struct cw_snapshot *snap)
{
	int64_t ns = s->held_ns < 0 ? 0 : snap->held_ns - s->held_ns;

	s->held_ns = snap->held_ns;
	if (ns <= 0)
		return;
	if (s->n_holds == MAX_HOLDS) {
		s->holds[1].ns += s->holds[0].ns;
		memmove(&s->holds[0], &s->holds[1], (MAX_HOLDS - 1) * sizeof(s->holds[0]));
		s->n_holds--;
	}
	s->holds[s->n_holds++] = (struct hold){ .at_ns = snap->now_ns, .ns = ns };
}

/*
 * Returns since_ns, moved later by the times in which the leader was held up. So only time in which
 * we evaluated the job counts.
 */
static int64_t evaluated_since(const struct cw_stall *s, int64_t since_ns)
{
	int64_t ns = since_ns;

	for (unsigned i = s->n_holds; i-- > 0 && s->holds[i].at_ns > since_ns;) {
		int64_t most = s->holds[i].at_ns - since_ns;

		ns += s->holds[i].ns < most ? s->holds[i].ns : most;
	}
	return ns < s->now_ns ? ns : s->now_ns;
}

/* ---- entries ---- */

static bool is_same_op(const struct entry *e, const struct cw_op *op)
{
	if (!op)
		return false;
	if (e->coll_seq)
		return op->coll_seq == e->coll_seq;
	return op->kind == e->op_kind && op->p2p_seq == e->p2p_seq;
}

static struct who who_is(const struct cw_snapshot *snap, uint32_t rank)
{
	const struct cw_snap_rank *r = &snap->ranks[rank];

	return (struct who){ .start_ticks = r->start_ticks, .rank = r->rank, .pid = r->pid };
}

static bool is_among(const struct entry *e, struct who w)
{
	for (uint32_t i = 0; i < e->n_who; i++)
		if (w.start_ticks == e->who[i].start_ticks && w.rank == e->who[i].rank &&
		    w.pid == e->who[i].pid)
			return true;
	return false;
}

/* True if some rank is still in the entry's op. */
static bool is_pending(const struct cw_stall *s, const struct cw_snapshot *snap,
		       const struct entry *e, bool is_healthy)
{
	uint32_t comm = cw_snapshot_find_comm(snap, e->comm_id, e->comm_instance);

	if (comm == CW_SNAP_NONE)
		return false;
	if (e->is_silent)
		return e->confirmed_ns ||
		       snap->now_ns - evaluated_since(s, e->seen_ns) < SILENT_FOR_NS;
	for (uint32_t i = 0; i < snap->comms[comm].nranks; i++) {
		const struct cw_snap_member *m = &snap->comms[comm].members[i];

		if (m->rank == CW_SNAP_NONE)
			continue;
		if (is_same_op(e, m->pending))
			return true;
		/* Without progress words an op that returned may still be pending. */
		if (!is_healthy && !(m->known & CW_KNOWN_COMPLETED) && is_same_op(e, m->last))
			return true;
	}
	return false;
}

/*
 * Closes an entry. is_learnt: the wait ended because the call went on. If its communicator is gone,
 * we do not learn from the wait.
 */
static void close_entry(struct cw_stall *s, struct entry *e, int64_t now_ns, bool is_learnt)
{
	bool is_habit = is_learnt && !e->is_held;

	if (is_habit && e->is_idle)
		wait_sites_idle(&s->sites, &e->site, now_ns);
	if (e->is_silent || (!e->stall_ns && !e->confirmed_ns)) {
		*e = (struct entry){ 0 };
		return;
	}
	e->is_over = true;
	e->over_after_ns = now_ns - e->since_ns;
	if (is_habit)
		wait_sites_learn(&s->sites, &e->site, e->over_after_ns, now_ns);
}

static bool is_about(const struct entry *e, const struct cw_verdict_key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (cw_verdict_key_is_same(&keys[i], &e->key))
			return true;
	return false;
}

/* True if some of the ranks that others waited for have still not entered the call. */
static bool is_still_missed(const struct entry *e, const struct cw_snapshot *snap, uint32_t comm)
{
	for (uint32_t i = 0; i < snap->comms[comm].nranks; i++) {
		const struct cw_snap_member *m = &snap->comms[comm].members[i];

		if (m->rank != CW_SNAP_NONE && (m->known & CW_KNOWN_ENTERED) &&
		    m->coll_entered < e->coll_seq && is_among(e, who_is(snap, m->rank)))
			return true;
	}
	return false;
}

/*
 * True if the wait may go on in the next call: no rank is in the entry's call, but an awaited rank
 * has not entered it. The waiting ranks are then in the next call, and their nodes report that
 * within a second.
 */
static bool may_go_on(struct entry *e, const struct cw_snapshot *snap)
{
	uint32_t comm = cw_snapshot_find_comm(snap, e->comm_id, e->comm_instance);

	if (!e->left_ns)
		e->left_ns = snap->now_ns;
	return e->noticed_ns && e->coll_seq && comm != CW_SNAP_NONE &&
	       snap->now_ns - e->left_ns <= snap->thresholds.confirm_ns &&
	       is_still_missed(e, snap, comm);
}

static void close_resolved(struct cw_stall *s, const struct cw_snapshot *snap,
			   const struct cw_verdict *v, const struct cw_verdict_key *keys,
			   uint32_t n)
{
	bool is_healthy = v->verdict_class == CW_CLASS_HEALTHY;

	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		struct entry *e = &s->entries[i];

		if (!e->key.is_set || e->is_over)
			continue;
		if (is_about(e, keys, n) || is_pending(s, snap, e, is_healthy))
			e->left_ns = 0;
		else if (!may_go_on(e, snap))
			close_entry(s, e, snap->now_ns,
				    cw_snapshot_find_comm(snap, e->comm_id, e->comm_instance) !=
					    CW_SNAP_NONE);
	}
}

static void report_resolved(struct cw_stall *s, struct cw_stall_decision *ret)
{
	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		struct entry *e = &s->entries[i];

		if (!e->is_over)
			continue;
		ret->resolved_key = e->key;
		ret->resolved_after_ns = e->over_after_ns;
		memcpy(ret->resolved_what, e->what, sizeof(e->what));
		*e = (struct entry){ 0 };
		return; /* one per step; later steps report the other entries */
	}
}

static struct entry *find_entry(struct cw_stall *s, const struct cw_verdict_key *key)
{
	for (unsigned i = 0; i < MAX_ENTRIES; i++)
		if (cw_verdict_key_is_same(&s->entries[i].key, key) && !s->entries[i].is_over)
			return &s->entries[i];
	return NULL;
}

/*
 * Returns a free entry, or else the least important entry. Entries without a stall are least
 * important. Among equals we take the entry that we have not seen for the longest time.
 */
static struct entry *take_entry(struct cw_stall *s)
{
	struct entry *best = &s->entries[0];

	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		struct entry *e = &s->entries[i];

		if (!e->key.is_set)
			return e;
		if (!!e->stall_ns != !!best->stall_ns ? !e->stall_ns : e->seen_ns < best->seen_ns)
			best = e;
	}
	return best;
}

static void open_entry(struct entry *e, const struct cw_snapshot *snap, const struct cw_verdict *v,
		       const struct cw_verdict_key *key)
{
	*e = (struct entry){ .key = *key,
			     .comm_id = snap->comms[v->comm].id,
			     .comm_instance = snap->comms[v->comm].instance,
			     .coll_seq = v->coll_seq,
			     .is_silent =
				     v->is_left_behind || (v->is_proof && !v->waiting_since_ns),
			     .since_ns = v->waiting_since_ns ? v->waiting_since_ns : snap->now_ns };
	if (v->n_sides && v->sides[0].has_op) {
		e->op_kind = v->sides[0].op.kind;
		e->p2p_seq = v->sides[0].op.p2p_seq;
	}
}

static void note_who(struct entry *e, const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	for (e->n_who = 0; e->n_who < v->n_culprits && e->n_who < MAX_WHO; e->n_who++)
		e->who[e->n_who] = who_is(snap, v->culprits[e->n_who].rank);
}

static bool shares_who(const struct entry *e, const struct cw_snapshot *snap,
		       const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (is_among(e, who_is(snap, v->culprits[i].rank)))
			return true;
	return false;
}

/*
 * True if the wait of this entry goes on as verdict v. In a rooted call, a member may finish its
 * part before all members have entered. It then waits in the next call for the same rank. If it was
 * already in the next call when we last saw the entry, the two waits are one.
 */
static bool goes_on_in(const struct cw_stall *s, const struct cw_snapshot *snap,
		       const struct entry *e, const struct cw_verdict *v,
		       const struct cw_verdict_key *key)
{
	return e->key.is_set && !e->is_over && !e->is_silent && key->is_waited && e->coll_seq &&
	       v->coll_seq > e->coll_seq && e->comm_id == key->comm_id &&
	       e->comm_instance == key->instance && v->waiting_since_ns <= e->seen_ns &&
	       shares_who(e, snap, v) && is_still_missed(e, snap, v->comm) &&
	       !is_pending(s, snap, e, false);
}

static void follow_wait(struct cw_stall *s, const struct cw_snapshot *snap,
			const struct cw_verdict *v, const struct cw_verdict_key *key,
			struct cw_stall_decision *ret)
{
	struct entry *new = find_entry(s, key);

	if (new && (new->noticed_ns || new->confirmed_ns))
		return;
	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		struct entry *e = &s->entries[i];

		if (!goes_on_in(s, snap, e, v, key))
			continue;
		/* We opened `new` before the other ranks were reported to be in that call. */
		if (new)
			*new = (struct entry){ 0 };
		ret->moved_from = e->key;
		e->key = *key;
		e->coll_seq = v->coll_seq;
		return;
	}
}

/*
 * True if v is about another call than the entry. A split that follows another split has the same
 * key, and only the time distinguishes them.
 */
static bool is_another(const struct entry *e, const struct cw_verdict *v)
{
	return !e->coll_seq && v->waiting_since_ns > e->since_ns + 1 * S;
}

/*
 * Returns the time of the proof that calls differ, if a rank now waits because of the difference.
 * The proof may be older than the wait. 0 = no such proof.
 */
static int64_t proven_before_ns(const struct cw_stall *s, const struct cw_snapshot *snap,
				const struct cw_verdict *v, const struct cw_verdict_key *key)
{
	for (unsigned i = 0; i < MAX_ENTRIES; i++) {
		const struct entry *e = &s->entries[i];

		if (v->is_proof && key->is_waited && e->key.is_set && e->is_silent && !e->is_over &&
		    e->proof_ns && e->coll_seq && e->coll_seq == v->coll_seq &&
		    e->comm_id == snap->comms[v->comm].id &&
		    e->comm_instance == snap->comms[v->comm].instance)
			return e->proof_ns > v->waiting_since_ns ? e->proof_ns
								 : v->waiting_since_ns;
	}
	return 0;
}

static struct entry *entry_for(struct cw_stall *s, const struct cw_snapshot *snap,
			       const struct cw_verdict *v, const struct cw_verdict_key *key)
{
	struct entry *e = find_entry(s, key);

	if (e && is_another(e, v)) {
		close_entry(s, e, snap->now_ns, true);
		e = NULL;
	}
	if (!e) {
		int64_t proof_ns = proven_before_ns(s, snap, v, key);

		e = take_entry(s);
		open_entry(e, snap, v, key);
		e->proof_ns = proof_ns;
	}
	if (v->waiting_since_ns && v->waiting_since_ns < e->since_ns)
		e->since_ns = v->waiting_since_ns;
	e->seen_ns = snap->now_ns;
	return e;
}

/* ---- one step ---- */

/* Reads the evidence. Returns true if it has been equal for at least confirm_ns. */
static bool read_evidence(const struct cw_stall *s, struct entry *e, const struct cw_snapshot *snap,
			  const struct cw_verdict *v)
{
	uint64_t reading = stall_evidence_hash(snap, v);

	/*
	 * While a worse fault is open, we do not read the evidence of this fault. After such a gap,
	 * the time during which the readings agree starts again.
	 */
	if (!e->reading_ns || e->reading != reading ||
	    snap->now_ns - e->read_ns > READ_AGAIN_NS + snap->thresholds.confirm_ns) {
		e->reading = reading;
		e->reading_ns = snap->now_ns;
	}
	e->read_ns = snap->now_ns;
	return snap->now_ns - evaluated_since(s, e->reading_ns) >= snap->thresholds.confirm_ns;
}

static void note_proof(struct entry *e, const struct cw_snapshot *snap, bool is_proof)
{
	if (!is_proof)
		e->proof_ns = 0;
	else if (!e->proof_ns)
		e->proof_ns = snap->now_ns;
}

/*
 * Returns the patience with a proof. If only the hashes of the calls prove a mismatch, the calls
 * themselves are still on their way. We wait a little longer, because then we can name the call.
 */
static int64_t proof_patience(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	bool call_awaited = v->verdict_class == CW_CLASS_MISMATCH && v->histories_differ &&
			    v->detail == CW_DETAIL_UNKNOWN_CALL;

	return snap->thresholds.proof_ns + (call_awaited ? CALL_AWAITED_NS : 0);
}

/*
 * Returns for how long nothing has happened, counting only time in which we evaluated the job. A
 * held rank blocks the others only from its release on, so we count from the release.
 */
static int64_t age_of(const struct cw_stall *s, const struct entry *e, const struct patience *p)
{
	int64_t since_ns = p->since_ns > e->since_ns ? p->since_ns : e->since_ns;

	if (!p->is_pause && e->paused_ns > since_ns)
		since_ns = e->paused_ns;
	return s->now_ns - evaluated_since(s, since_ns);
}

static bool is_proof(const struct cw_verdict *v, const struct patience *p)
{
	return v->is_proof && !p->is_no_proof;
}

static void confirm(struct entry *e, const struct cw_snapshot *snap, enum cw_confidence confidence)
{
	e->confidence = confidence;
	e->confirmed_ns = snap->now_ns;
}

static void notice(struct cw_stall *s, struct entry *e, const struct patience *p)
{
	e->noticed_ns = s->now_ns;
	if (!e->stall_ns)
		e->stall_ns = s->now_ns;
	if (p->is_source)
		wait_sites_note(&s->sites, &e->site, s->now_ns);
	e->proposes_serving = p->proposes_serving;
	s->sites.has_proposed |= p->proposes_serving;
}

/*
 * Returns the confidence of the matter. A notice is never more confident than the page that may
 * follow it.
 */
static enum cw_confidence confidence_of(const struct cw_verdict *v, const struct patience *p)
{
	return is_proof(v, p) || v->confidence < p->confidence ? v->confidence : p->confidence;
}

/*
 * Updates the entry from the verdict and returns its phase. *p becomes the patience with the
 * verdict.
 */
static uint32_t weigh(struct cw_stall *s, struct entry *e, const struct cw_snapshot *snap,
		      const struct cw_verdict *v, struct patience *p)
{
	const struct cw_thresholds *t = &snap->thresholds;
	int64_t waited = snap->now_ns - evaluated_since(s, e->since_ns), age;
	bool confirmed = false;

	*p = cw_patience(snap, v, &s->sites);
	e->site = wait_site_of(snap, v);
	note_who(e, snap, v);
	e->is_held |= p->is_held;
	if (p->is_pause)
		e->paused_ns = snap->now_ns;
	age = age_of(s, e, p);
	e->is_idle |= p->gives_work && age >= WAIT_SITES_IDLE_NS;
	note_proof(e, snap, is_proof(v, p));
	if (age >= p->read_after_ns)
		confirmed = read_evidence(s, e, snap, v);
	else
		e->reading_ns = 0;
	if (waited >= p->stall_ns && v->waiting_since_ns && !e->stall_ns)
		e->stall_ns = snap->now_ns;
	if (e->confirmed_ns)
		/* A hang stays a hang until it resolves. Later facts do not revoke it. */
		return CW_STALL_HANG;
	if (e->proof_ns &&
	    snap->now_ns - evaluated_since(s, e->proof_ns) >= proof_patience(snap, v)) {
		confirm(e, snap, v->confidence);
		return CW_STALL_HANG;
	}
	if (p->may_page && confirmed && age >= p->page_ns) {
		confirm(e, snap, confidence_of(v, p));
		return CW_STALL_HANG;
	}
	if (!e->noticed_ns && !e->proof_ns && confirmed && age >= p->notice_ns)
		notice(s, e, p);
	if (e->stall_ns)
		return CW_STALL_STALLED;
	return waited >= t->window_after_ns || e->proof_ns ? CW_STALL_SUSPECT : CW_STALL_QUIET;
}

static bool wants_windows(int64_t *last_ns, const struct cw_snapshot *snap,
			  const struct cw_verdict *v)
{
	if (!v->wants_windows || (*last_ns && snap->now_ns - *last_ns < WINDOW_EVERY_NS))
		return false;
	*last_ns = snap->now_ns;
	return true;
}

/*
 * True if we request windows while no rank has waited for long. If histories differ, we request
 * them at once. If only the numbers of messages are uneven, we request them every
 * MESSAGES_EVERY_NS, because every pipeline has uneven numbers now and then.
 */
static bool wants_quiet_windows(struct cw_stall *s, const struct cw_snapshot *snap,
				const struct cw_verdict *v)
{
	if (!v->histories_differ && v->messages_are_uneven && s->healthy_windows_ns &&
	    snap->now_ns - s->healthy_windows_ns < MESSAGES_EVERY_NS)
		return false;
	return (v->histories_differ || v->messages_are_uneven) &&
	       wants_windows(&s->healthy_windows_ns, snap, v);
}

static void sooner(int64_t *next_ns, int64_t since_ns, int64_t after_ns, int64_t now_ns)
{
	if (after_ns > now_ns - since_ns && after_ns - (now_ns - since_ns) < *next_ns - now_ns)
		*next_ns = since_ns + after_ns;
}

/*
 * True if the next digests may prove a cycle. Then we evaluate as soon as the last digest has
 * arrived, not up to a second later. We stop after UNPROVEN_FOR_NS: a node that has not reported by
 * then is unlikely to report soon.
 */
static bool awaits_proof(const struct entry *e, const struct cw_snapshot *snap,
			 const struct cw_verdict *v)
{
	return v->verdict_class == CW_CLASS_DEADLOCK && !v->is_proof && !e->confirmed_ns &&
	       snap->now_ns - e->since_ns < UNPROVEN_FOR_NS;
}

static int64_t next_evaluation(const struct cw_stall *s, const struct entry *e,
			       const struct cw_snapshot *snap, const struct cw_verdict *v,
			       const struct patience *p)
{
	const struct cw_thresholds *t = &snap->thresholds;
	int64_t now = snap->now_ns, next = now + EVALUATE_EVERY_NS;
	int64_t waiting = evaluated_since(s, e->since_ns), quiet = now - age_of(s, e, p);

	sooner(&next, waiting, t->window_after_ns, now);
	sooner(&next, waiting, p->stall_ns, now);
	sooner(&next, quiet, p->read_after_ns, now);
	sooner(&next, quiet, p->notice_ns, now);
	sooner(&next, quiet, p->page_ns, now);
	if (e->reading_ns)
		sooner(&next, evaluated_since(s, e->reading_ns), t->confirm_ns, now);
	if (e->proof_ns)
		sooner(&next, evaluated_since(s, e->proof_ns), proof_patience(snap, v), now);
	if (awaits_proof(e, snap, v))
		next = now + SAMPLE_EVERY_NS;
	return next > now + EVALUATE_SOONEST_NS ? next : now + EVALUATE_SOONEST_NS;
}

static void say_why(const struct entry *e, const struct cw_snapshot *snap,
		    const struct cw_verdict *v, const struct patience *p,
		    struct cw_stall_decision *ret)
{
	const char *name = snap->comms[v->comm].name;

	(void)snprintf(
		ret->why, sizeof(ret->why), "%s: pending %" PRId64 " ms on %.32s%s%s; %.48s%s",
		cw_class_name(v->verdict_class), (snap->now_ns - e->since_ns) / 1000000,
		name ? name : "a comm", e->proof_ns ? ", proof" : "",
		e->reading_ns ? ", read again" : "", p->name, e->confirmed_ns ? ", confirmed" : "");
}

/*
 * Returns whether the job hangs. p: patience with this verdict. is_page: the time to page has come.
 */
static enum cw_hang hang_of(const struct cw_verdict *v, const struct patience *p, bool is_page)
{
	if (cw_verdict_is_silent(v))
		return CW_HANG_NONE;
	if (is_proof(v, p))
		return CW_HANG_PROVEN;
	return is_page ? p->hang_at_page : p->hang;
}

bool cw_stall_has_proposed_serving(const struct cw_stall *s)
{
	return s->sites.has_proposed;
}

enum cw_severity cw_stall_severity(const struct cw_snapshot *snap, const struct cw_verdict *v,
				   enum cw_hang *ret_hang)
{
	struct patience p = cw_patience(snap, v, NULL);
	bool is_page = is_proof(v, &p) ||
		       (p.may_page && p.since_ns && snap->now_ns - p.since_ns >= p.page_ns);

	*ret_hang = hang_of(v, &p, is_page);
	return is_page ? CW_SEVERITY_PAGE : CW_SEVERITY_NOTICE;
}

static void decide(struct cw_stall *s, const struct cw_snapshot *snap, const struct cw_verdict *v,
		   const struct cw_verdict_key *key, struct cw_stall_decision *ret)
{
	struct entry *e = entry_for(s, snap, v, key);
	struct patience p;

	ret->phase = weigh(s, e, snap, v, &p);
	if (ret->phase >= CW_STALL_STALLED)
		(void)cw_say_text(&v->said, e->what, sizeof(e->what));
	ret->since_ns = e->since_ns;
	ret->limit_ns = p.stall_ns;
	ret->stall_ns = e->stall_ns;
	ret->confirmed_ns = e->confirmed_ns;
	ret->confidence = e->confirmed_ns ? e->confidence : confidence_of(v, &p);
	ret->noticed_ns = e->noticed_ns;
	ret->is_noticed = e->noticed_ns != 0;
	ret->proposes_serving = e->proposes_serving && !e->confirmed_ns;
	ret->hang = hang_of(v, &p, e->confirmed_ns != 0);
	ret->next_ns = next_evaluation(s, e, snap, v, &p);
	if (ret->phase == CW_STALL_QUIET) {
		/*
		 * We do not always request windows: in a busy job some rank waits for a moment at
		 * nearly every evaluation.
		 */
		ret->want_windows = wants_quiet_windows(s, snap, v);
		return;
	}
	ret->key = *key;
	ret->want_windows = wants_windows(&e->windows_ns, snap, v);
	say_why(e, snap, v, &p, ret);
}

/*
 * True if a worse matter of this evaluation has the same key. The key of a send contains only the
 * number of the send in its pair. So two pairs of a communicator may both be at send 233. Two
 * matters with one entry would restart each other in turn.
 */
static bool is_about_the_same(const struct cw_verdict_key *keys, uint32_t i)
{
	for (uint32_t k = 0; k < i; k++)
		if (cw_verdict_key_is_same(&keys[k], &keys[i]))
			return true;
	return false;
}

static void repeat_last(const struct cw_stall *s, uint32_t n, struct cw_stall_decision *ret)
{
	for (uint32_t i = 0; i < n; i++) {
		ret[i] = s->last[i];
		ret[i].resolved_key.is_set = false;
		ret[i].moved_from.is_set = false;
		ret[i].want_windows = false;
	}
}

void cw_stall_step_all(struct cw_stall *s, const struct cw_snapshot *snap,
		       const struct cw_verdict *v, uint32_t n, struct cw_stall_decision *ret)
{
	struct cw_verdict_key keys[CW_VERDICT_LIST_MAX];

	if (n > CW_VERDICT_LIST_MAX)
		n = CW_VERDICT_LIST_MAX;
	if (snap->now_ns < s->now_ns) {
		repeat_last(s, n, ret);
		return;
	}
	s->now_ns = snap->now_ns;
	note_hold(s, snap);
	for (uint32_t i = 0; i < n; i++) {
		keys[i] = cw_verdict_key(snap, &v[i]);
		ret[i] = (struct cw_stall_decision){ .next_ns = snap->now_ns + EVALUATE_EVERY_NS,
						     .confidence = v[i].confidence };
	}
	if (snap->policy == CW_POLICY_OFF) {
		memset(s->entries, 0, sizeof(s->entries));
	} else if (n) {
		for (uint32_t i = 0; i < n; i++)
			if (keys[i].is_set)
				follow_wait(s, snap, &v[i], &keys[i], &ret[i]);
		close_resolved(s, snap, v, keys, n);
		for (uint32_t i = 0; i < n; i++) {
			if (is_about_the_same(keys, i))
				continue;
			if (keys[i].is_set)
				decide(s, snap, &v[i], &keys[i], &ret[i]);
			else
				ret[i].want_windows = wants_quiet_windows(s, snap, &v[i]);
		}
		report_resolved(s, &ret[0]);
	}
	memset(s->last, 0, sizeof(s->last));
	memcpy(s->last, ret, n * sizeof(*ret));
}

void cw_stall_step(struct cw_stall *s, const struct cw_snapshot *snap, const struct cw_verdict *v,
		   struct cw_stall_decision *ret)
{
	cw_stall_step_all(s, snap, v, 1, ret);
}
