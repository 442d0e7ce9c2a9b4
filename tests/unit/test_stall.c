/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stall.h"
#include "common/record_layout.h"
#include "tests/unit/snap_builder.h"

#define MS (SB_S / 1000)

/* A job whose state is drawn up anew for each instant of a fake clock. */
struct job {
	struct cw_stall *tracker;
	struct cw_thresholds t;
	uint32_t policy;
	uint32_t n_ranks;
	int64_t now_ns;
	/* What it is doing. */
	uint64_t done;            /* collectives completed by all */
	int64_t fault_ns;         /* everybody but the culprit has waited since then; 0 = nobody */
	uint32_t culprit;         /* SB_MAX_RANKS = all are inside */
	int64_t headway_until_ns; /* the culprit's last sign of work */
	uint32_t liveness;        /* the culprit's */
	int64_t ended_ns;
	uint32_t known;
	uint32_t culprit_node_state;
	uint64_t wrong_count; /* the culprit's count; 0 = the usual one */
	uint32_t n_movers;    /* ranks that get on with another comm all the time */
	struct cw_stall_decision d;
	uint32_t klass;
};

static struct job j;

static void setup(void)
{
	j = (struct job){ .tracker = cw_stall_new(),
			  .t = cw_thresholds_default(),
			  .n_ranks = 8,
			  .now_ns = SB_NOW,
			  .done = 41,
			  .culprit = 3,
			  .liveness = CW_LIVE_ALIVE,
			  .known = UINT32_MAX };
	cr_assert(j.tracker);
	/* The demo's patience with a rank that does nothing. */
	j.t.no_headway_ns = 5 * SB_S;
}

static void teardown(void)
{
	j.tracker = cw_stall_free(j.tracker);
}

TestSuite(stall, .init = setup, .fini = teardown);

/* Times in drafts are relative to SB_NOW. */
static struct sb *draft(void)
{
	struct sb *b = sb_new(j.n_ranks, 2);
	struct sb_comm *c = sb_comm(b, "world", 0, j.n_ranks, 1, j.done);
	int64_t age = j.now_ns - j.fault_ns;

	for (uint32_t m = 0; m < j.n_ranks; m++)
		c->members[m].known &= j.known;
	if (j.fault_ns) {
		sb_all_wait_but(c, j.wrong_count ? SB_MAX_RANKS : j.culprit, age ? age : 1);
		if (j.wrong_count)
			sb_odd(c, j.culprit, j.done + 1)->count = j.wrong_count;
	}
	if (j.n_movers)
		(void)sb_comm(b, "other", 0, j.n_movers, 1, (uint64_t)j.now_ns / SB_S);
	if (j.culprit < j.n_ranks) {
		struct cw_snap_rank *r = &b->ranks[j.culprit];

		r->liveness = j.liveness;
		if (j.headway_until_ns && j.headway_until_ns < j.now_ns)
			r->headway_ns = SB_NOW - (j.now_ns - j.headway_until_ns);
		if (j.ended_ns)
			r->ended_ns = SB_NOW - (j.now_ns - j.ended_ns);
		b->node_state[r->node] = j.culprit_node_state;
	}
	return b;
}

static void shift(int64_t *ns, int64_t by_ns)
{
	if (*ns)
		*ns += by_ns;
}

/* Moves all times of a snapshot from SB_NOW to the fake clock. */
static void shift_times(struct cw_snapshot *snap, int64_t by_ns)
{
	snap->now_ns += by_ns;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		shift(&snap->ranks[i].headway_ns, by_ns);
		shift(&snap->ranks[i].sampled_ns, by_ns);
		shift(&snap->ranks[i].ended_ns, by_ns);
	}
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			struct cw_snap_member *member = &snap->comms[c].members[m];

			shift(&member->progress_ns, by_ns);
			if (member->pending)
				shift(&member->pending->enter_ns, by_ns);
			if (member->last)
				shift(&member->last->enter_ns, by_ns);
		}
}

static void step(void)
{
	struct sb *b = draft();
	struct cw_snapshot *snap = sb_snapshot(b);
	struct cw_verdict v;

	snap->thresholds = j.t;
	snap->policy = j.policy;
	shift_times(snap, j.now_ns - SB_NOW);
	for (uint32_t m = 0; m < j.n_movers; m++)
		snap->comms[1].members[m].progress_ns = j.now_ns;
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	j.klass = v.klass;
	cw_stall_step(j.tracker, snap, &v, &j.d);
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
}

/* Steps once a second until the phase is reached; returns how long that took, or -1. */
static int64_t run_until(uint32_t phase, int64_t limit_ns)
{
	int64_t start = j.now_ns;

	for (;;) {
		step();
		if (j.d.phase == phase)
			return j.now_ns - start;
		if (j.now_ns - start >= limit_ns)
			return -1;
		j.now_ns += SB_S;
	}
}

static void fault(void)
{
	j.fault_ns = j.now_ns;
	j.headway_until_ns = j.now_ns;
}

Test(stall, is_quiet_when_nobody_waits)
{
	cr_expect_eq(run_until(CW_STALL_SUSPECT, 60 * SB_S), -1);
	cr_expect_eq(j.d.key, 0);
}

Test(stall, alerts_on_a_rank_without_headway_within_13_seconds)
{
	int64_t after;

	fault();
	after = run_until(CW_STALL_HANG, 60 * SB_S);
	cr_expect_geq(after, 10 * SB_S);
	cr_expect_leq(after, 13 * SB_S, "alert after %ld ms", (long)(after / MS));
	cr_expect_neq(j.d.key, 0);
	cr_expect_eq(j.d.since_ns, j.fault_ns - 1); /* the draft's shortest wait is 1 ns */
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(stall, counts_idleness_from_when_somebody_waits)
{
	/* Twenty minutes of sleep that nobody minded: it is late, not stuck. */
	j.t.no_headway_ns = 60 * SB_S;
	fault();
	j.headway_until_ns = j.fault_ns - 1200 * SB_S;
	cr_expect_eq(run_until(CW_STALL_HANG, 55 * SB_S), -1);
	cr_expect_neq(run_until(CW_STALL_HANG, 10 * SB_S), -1);
}

Test(stall, wants_windows_of_differing_histories_at_once)
{
	struct cw_snapshot *snap;
	struct cw_verdict v;
	struct sb *b;

	fault();
	b = draft();
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++) {
		snap->comms[0].members[m].known |= CW_KNOWN_HASH;
		snap->comms[0].members[m].checkpoints[0] =
			(struct cw_snap_checkpoint){ .coll_seq = 64, .hash = m == 5 ? 1 : 2 };
	}
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cr_expect_eq(v.klass, CW_CLASS_MISMATCH);
	cw_stall_step(j.tracker, snap, &v, &j.d);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT, "phase %u", j.d.phase);
	cr_expect(j.d.want_windows);
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
}

/* Rank 5 has another history; with its call known or not, to be seen at this look or not. */
static void look_at_histories(uint64_t seq, bool can_compare, bool knows_call)
{
	struct cw_snapshot *snap;
	struct cw_verdict v;
	struct sb *b = draft();

	if (knows_call) {
		for (uint32_t m = 0; m < j.n_ranks; m++)
			b->comms[0]->members[m].has_window = true;
		sb_odd(b->comms[0], 5, j.done - 2)->redop = CW_REDOP_MAX;
	}
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++) {
		snap->comms[0].members[m].known &= ~(unsigned)CW_KNOWN_HASH;
		snap->comms[0].members[m].checkpoints[0] =
			(struct cw_snap_checkpoint){ .coll_seq = can_compare ? seq : seq + m,
						     .hash = m == 5 ? 1 : 2 };
	}
	snap->comms[0].agreed_seq = j.done - 8;
	snap->comms[0].differ_seq = j.done;
	shift_times(snap, j.now_ns - SB_NOW);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cw_stall_step(j.tracker, snap, &v, &j.d);
	j.klass = v.klass;
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
}

Test(stall, alerts_3_s_after_histories_were_first_seen_to_differ)
{
	uint64_t key;

	look_at_histories(64, true, false);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT);
	key = j.d.key;
	/* Points to compare are not there at every look. */
	j.now_ns += SB_S;
	look_at_histories(128, false, false);
	cr_expect_eq(j.klass, CW_CLASS_HEALTHY);
	j.now_ns += SB_S;
	look_at_histories(192, true, true);
	cr_expect_eq(j.d.phase, CW_STALL_SUSPECT);
	cr_expect_eq(j.d.key, key, "the call is named: another matter");
	j.now_ns += SB_S;
	look_at_histories(256, true, true);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	cr_expect_eq(j.d.key, key);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_CERTAIN);
}

/* Two calls that one rank puts into a group and the others do not. */
static void look_at_grouping(void)
{
	struct cw_snapshot *snap;
	struct cw_verdict v;
	struct sb *b = draft();

	for (uint32_t m = 0; m < j.n_ranks; m++)
		b->comms[0]->members[m].has_window = true;
	sb_odd(b->comms[0], 5, j.done - 1)->count = 5;
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < j.n_ranks; m++)
		snap->comms[0].members[m].known &= ~(unsigned)CW_KNOWN_HASH;
	for (uint32_t i = 0; i < snap->comms[0].members[5].n_window; i++) {
		struct cw_op *op = &snap->comms[0].members[5].window[i];

		if (op->coll_seq >= j.done - 1) {
			op->flags |= CW_OPF_GROUPED;
			op->group_id = 9;
		}
	}
	shift_times(snap, j.now_ns - SB_NOW);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cw_stall_step(j.tracker, snap, &v, &j.d);
	j.klass = v.klass;
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
}

Test(stall, another_grouping_that_nobody_waits_for_never_alerts)
{
	for (unsigned i = 0; i < 600; i++) {
		look_at_grouping();
		cr_assert_eq(j.klass, CW_CLASS_MISMATCH);
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "after %u s", i);
		j.now_ns += SB_S;
	}
}

Test(stall, waits_a_moment_for_the_call_that_differs)
{
	for (unsigned i = 0; i <= 3; i++) {
		look_at_histories(64, true, false);
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "after %u s", i);
		j.now_ns += SB_S;
	}
	look_at_histories(64, true, false);
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

Test(stall, wrong_data_does_not_resolve)
{
	for (unsigned i = 0; i < 5; i++) {
		look_at_histories(64, true, false);
		j.now_ns += SB_S;
	}
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	for (unsigned i = 0; i < 200; i++) {
		look_at_histories(128, false, false);
		cr_assert_eq(j.d.resolved_key, 0);
		j.now_ns += SB_S;
	}
}

Test(stall, passes_through_suspect_and_stalled)
{
	int64_t suspect, stalled;

	j.t.no_headway_ns = 60 * SB_S;
	fault();
	suspect = run_until(CW_STALL_SUSPECT, 60 * SB_S);
	cr_expect_eq(suspect, 1 * SB_S);
	stalled = run_until(CW_STALL_STALLED, 60 * SB_S);
	cr_expect_eq(suspect + stalled, 10 * SB_S);
	cr_expect_neq(j.d.stall_ns, 0);
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 50 * SB_S);
}

Test(stall, asks_for_windows_once_a_second_at_most)
{
	unsigned asked = 0;

	fault();
	for (unsigned i = 0; i < 30; i++) {
		step();
		asked += j.d.want_windows;
		if (j.now_ns - j.fault_ns < SB_S)
			cr_expect(!j.d.want_windows, "too early");
		j.now_ns += 100 * MS;
	}
	cr_expect_eq(asked, 2, "asked %u times in 2 s", asked);
}

Test(stall, gives_a_checkpoint_290_seconds)
{
	fault();
	j.headway_until_ns = INT64_MAX;
	cr_expect_eq(run_until(CW_STALL_HANG, 290 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
	cr_expect_neq(run_until(CW_STALL_HANG, 20 * SB_S), -1);
}

Test(stall, waits_three_times_the_longest_stall_the_job_recovered_from)
{
	fault();
	j.headway_until_ns = INT64_MAX;
	cr_expect_eq(run_until(CW_STALL_HANG, 200 * SB_S), -1);
	j.done = 50;
	fault();
	j.headway_until_ns = INT64_MAX;
	cr_expect_eq(run_until(CW_STALL_HANG, 590 * SB_S), -1);
	cr_expect_neq(run_until(CW_STALL_HANG, 30 * SB_S), -1);
}

Test(stall, reports_a_resolved_stall_once)
{
	uint64_t key;

	fault();
	j.headway_until_ns = INT64_MAX;
	cr_expect_neq(run_until(CW_STALL_STALLED, 60 * SB_S), -1);
	key = j.d.key;
	j.now_ns += SB_S;
	j.fault_ns = 0;
	j.done = 42;
	step();
	cr_expect_eq(j.d.phase, CW_STALL_QUIET);
	cr_expect_eq(j.d.resolved_key, key);
	cr_expect_eq(j.d.resolved_after_ns, 11 * SB_S + 1);
	j.now_ns += SB_S;
	step();
	cr_expect_eq(j.d.resolved_key, 0);
}

Test(stall, keeps_a_hang_until_it_resolves)
{
	fault();
	cr_expect_neq(run_until(CW_STALL_HANG, 60 * SB_S), -1);
	j.headway_until_ns = INT64_MAX;
	j.now_ns += SB_S;
	step();
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	j.done = 42;
	j.fault_ns = 0;
	j.now_ns += SB_S;
	step();
	cr_expect_eq(j.d.phase, CW_STALL_QUIET);
	cr_expect_neq(j.d.resolved_key, 0);
}

Test(stall, alerts_on_a_proof_after_three_seconds)
{
	fault();
	j.wrong_count = 7;
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 3 * SB_S);
	cr_expect_eq(j.klass, CW_CLASS_MISMATCH);
}

Test(stall, alerts_on_a_death_after_three_seconds)
{
	fault();
	j.liveness = CW_LIVE_KILLED;
	j.ended_ns = j.now_ns;
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 3 * SB_S);
}

Test(stall, never_alerts_on_a_rank_under_a_debugger)
{
	fault();
	j.liveness = CW_LIVE_TRACED;
	cr_expect_eq(run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
}

Test(stall, alerts_on_unchanged_progress_inside_a_collective)
{
	fault();
	j.culprit = SB_MAX_RANKS;
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 15 * SB_S);
	cr_expect_eq(j.klass, CW_CLASS_IN_COLLECTIVE);
}

Test(stall, is_at_most_possible_without_progress_words)
{
	fault();
	j.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_HASH;
	cr_expect_neq(run_until(CW_STALL_HANG, 60 * SB_S), -1);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(stall, alerts_only_on_proofs_when_serving)
{
	j.policy = CW_POLICY_SERVING;
	fault();
	cr_expect_eq(run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	j.wrong_count = 7;
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 3 * SB_S);
}

Test(stall, does_nothing_when_off)
{
	j.policy = CW_POLICY_OFF;
	fault();
	j.wrong_count = 7;
	cr_expect_eq(run_until(CW_STALL_SUSPECT, 600 * SB_S), -1);
}

Test(stall, waits_for_a_daemon_that_restarts)
{
	fault();
	j.culprit_node_state = CW_NODE_SAID_GOODBYE;
	cr_expect_eq(run_until(CW_STALL_HANG, 3600 * SB_S), -1);
}

Test(stall, alerts_on_a_node_that_cannot_be_reached)
{
	fault();
	j.culprit_node_state = CW_NODE_UNREACHABLE;
	cr_expect_eq(run_until(CW_STALL_HANG, 60 * SB_S), 2 * SB_S);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_LIKELY);
}

Test(stall, ignores_a_clock_that_goes_back)
{
	fault();
	cr_expect_neq(run_until(CW_STALL_HANG, 60 * SB_S), -1);
	j.now_ns -= 5 * SB_S;
	step();
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

Test(stall, says_when_to_look_again)
{
	fault();
	for (unsigned i = 0; i < 40; i++) {
		step();
		cr_expect_gt(j.d.next_ns, j.now_ns);
		cr_expect_leq(j.d.next_ns, j.now_ns + SB_S);
		j.now_ns = j.d.next_ns;
	}
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

/* Deterministic, so that a failure can be repeated. */
static uint64_t random_below(uint64_t *state, uint64_t n)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*state >> 33) % n;
}

Test(stall, raises_nothing_in_a_healthy_day)
{
	/* Steps of 0.1 to 5 s, a checkpoint of 40 to 240 s now and then; sampled once a second. */
	int64_t end = j.now_ns + 86400 * SB_S, arrive = 0;
	uint64_t seed = 7, looks = 0;

	j.headway_until_ns = INT64_MAX;
	while (j.now_ns < end) {
		if (j.now_ns >= arrive) {
			j.done++;
			j.culprit = (uint32_t)random_below(&seed, 8);
			j.fault_ns = j.now_ns;
			arrive = j.now_ns + 100 * MS + (int64_t)random_below(&seed, 4900) * MS;
			if (random_below(&seed, 500) == 0)
				arrive += (40 + (int64_t)random_below(&seed, 200)) * SB_S;
		}
		step();
		looks++;
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "alert after %ld s: %s",
			      (long)((j.now_ns - SB_NOW) / SB_S), j.d.why);
		j.now_ns += SB_S;
	}
	cr_expect_geq(looks, 86400);
}

/* ---- T ---- */

static int64_t limit_with(uint64_t done, int64_t interval_ns, uint64_t bytes)
{
	struct sb *b = sb_new(8, 1);
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, done);
	struct cw_snapshot *snap;
	int64_t limit;

	c->usual.bytes = bytes;
	sb_all_wait_but(c, 3, SB_S);
	snap = sb_snapshot(b);
	snap->thresholds = j.t;
	snap->comms[0].members[0].interval_ns = interval_ns;
	limit = cw_stall_limit_ns(snap, 0, 0);
	(void)cw_snapshot_free(snap);
	sb_free(b);
	return limit;
}

Test(stall, derives_its_limit_from_the_rhythm_of_the_comm)
{
	cr_expect_eq(limit_with(41, 0, 4096), 10 * SB_S);
	cr_expect_eq(limit_with(41, SB_S / 10, 4096), 10 * SB_S);
	cr_expect_eq(limit_with(41, 6 * SB_S, 4096), 30 * SB_S);
	cr_expect_eq(limit_with(41, INT64_MAX, 4096), 120 * SB_S);
	/* The first op of a comm connects everybody with everybody. */
	cr_expect_eq(limit_with(0, 0, 4096), 120 * SB_S + 8 * 20 * MS);
	j.t.bytes_per_s = 1000;
	cr_expect_eq(limit_with(41, 0, 50000), 200 * SB_S);
}

Test(stall, leaves_a_call_alone_whose_waiters_get_on_elsewhere)
{
	/* A receive on a stream of its own, posted an hour before its send. */
	j.n_ranks = 2;
	j.culprit = 1;
	j.n_movers = 2;
	fault();
	cr_expect_eq(run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
	j.n_movers = 0;
	cr_expect_neq(run_until(CW_STALL_HANG, 5 * SB_S), -1, "now they are held up");
}

Test(stall, does_not_mind_that_some_others_get_on)
{
	j.n_movers = 2;
	fault();
	cr_expect_neq(run_until(CW_STALL_HANG, 13 * SB_S), -1);
}

Test(stall, does_not_take_an_old_reading_for_a_confirmation)
{
	/* Three seconds of it, half a minute of something worse elsewhere, and it again. */
	j.t.no_headway_ns = 12 * SB_S;
	fault();
	cr_expect_eq(run_until(CW_STALL_HANG, 11 * SB_S), -1);
	j.now_ns += 30 * SB_S;
	step();
	cr_expect_neq(j.d.phase, CW_STALL_HANG, "nobody has looked at it for half a minute");
	cr_expect_neq(run_until(CW_STALL_HANG, 4 * SB_S), -1);
}
