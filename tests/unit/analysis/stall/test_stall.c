/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stall/stall.h"

#include <criterion/criterion.h>

#include "tests/support/snapshot/stall_job.h"

#define MS (SB_S / 1000)

TestSuite(stall, .init = stall_job_setup, .fini = stall_job_teardown);

Test(stall, is_quiet_when_nobody_waits)
{
	cr_expect_eq(stall_job_run_until(CW_STALL_SUSPECT, 60 * SB_S), -1);
	cr_expect_not(j.d.key.is_set);
}

Test(stall, alerts_on_a_rank_without_host_activity_after_ten_times_no_progress_after)
{
	int64_t after;

	stall_job_fault();
	after = stall_job_run_until(CW_STALL_HANG, 60 * SB_S);
	cr_expect_geq(after, 50 * SB_S);
	cr_expect_leq(after, 52 * SB_S, "alert after %ld ms", (long)(after / MS));
	cr_expect_eq(j.d.hang, CW_HANG_LIKELY);
	cr_expect(j.d.is_noticed && j.d.noticed_ns - j.fault_ns < 10 * SB_S);
	cr_expect(j.d.key.is_set);
	cr_expect_eq(j.d.since_ns, j.fault_ns - 1); /* the builder's shortest wait is 1 ns */
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_LIKELY);
}

Test(stall, counts_idleness_from_when_somebody_waits)
{
	/* Twenty minutes of sleep that were no problem before: the rank is late, not stuck. */
	j.t.no_progress_after_ns = 60 * SB_S;
	stall_job_fault();
	j.active_until_ns = j.fault_ns - 1200 * SB_S;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 595 * SB_S), -1);
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 10 * SB_S), -1);
}

Test(stall, passes_through_suspect_and_stalled)
{
	int64_t suspect, stalled;

	j.t.no_progress_after_ns = 60 * SB_S;
	stall_job_fault();
	suspect = stall_job_run_until(CW_STALL_SUSPECT, 60 * SB_S);
	cr_expect_eq(suspect, 1 * SB_S);
	stalled = stall_job_run_until(CW_STALL_STALLED, 60 * SB_S);
	cr_expect_eq(suspect + stalled, 10 * SB_S);
	cr_expect_neq(j.d.stall_ns, 0);
	cr_expect_not(j.d.is_noticed);
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 64 * SB_S), -1);
	cr_expect_not(j.d.is_noticed);
	j.now_ns += SB_S;
	stall_job_step();
	cr_expect(j.d.is_noticed, "for those who look, 75 s after it began");
	cr_expect_eq(j.d.hang, CW_HANG_POSSIBLE);
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 600 * SB_S), 525 * SB_S);
}

Test(stall, asks_for_windows_once_a_second_at_most)
{
	unsigned asked = 0;

	stall_job_fault();
	for (unsigned i = 0; i < 30; i++) {
		stall_job_step();
		asked += j.d.want_windows;
		if (j.now_ns - j.fault_ns < SB_S)
			cr_expect(!j.d.want_windows, "too early");
		j.now_ns += 100 * MS;
	}
	cr_expect_eq(asked, 2, "asked %u times in 2 s", asked);
}

/* Where no time-out of the job's own is known. */
Test(stall, gives_who_works_more_than_four_hours)
{
	int64_t noticed_ns;

	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 590 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
	cr_expect_not(j.d.is_noticed);
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 20 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	noticed_ns = j.d.noticed_ns;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 14600 * SB_S), -1);
	cr_expect_eq(j.d.noticed_ns, noticed_ns, "told again");
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 100 * SB_S), -1);
}

/* The first call of a communicator: before it, other jobs build indexes and read models. */
Test(stall, gives_who_works_before_the_first_call_as_long)
{
	j.done = 0;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 4 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 1000 * SB_S), -1);
}

Test(stall, waits_three_times_the_longest_stall_the_job_recovered_from)
{
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 6000 * SB_S), -1);
	j.done = 50;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 17980 * SB_S), -1);
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 40 * SB_S), -1);
}

Test(stall, reports_a_resolved_stall_once)
{
	struct cw_verdict_key key;

	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_neq(stall_job_run_until(CW_STALL_STALLED, 60 * SB_S), -1);
	key = j.d.key;
	j.now_ns += SB_S;
	j.fault_ns = 0;
	j.done = 42;
	stall_job_step();
	cr_expect_eq(j.d.phase, CW_STALL_QUIET);
	cr_expect(cw_verdict_key_is_same(&j.d.resolved_key, &key));
	cr_expect_eq(j.d.resolved_after_ns, 11 * SB_S + 1);
	j.now_ns += SB_S;
	stall_job_step();
	cr_expect_not(j.d.resolved_key.is_set);
}

Test(stall, keeps_a_hang_until_it_resolves)
{
	stall_job_fault();
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), -1);
	j.active_until_ns = INT64_MAX;
	j.now_ns += SB_S;
	stall_job_step();
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	j.done = 42;
	j.fault_ns = 0;
	j.now_ns += SB_S;
	stall_job_step();
	cr_expect_eq(j.d.phase, CW_STALL_QUIET);
	cr_expect(j.d.resolved_key.is_set);
}

Test(stall, alerts_on_a_death_after_three_seconds)
{
	stall_job_fault();
	j.liveness = CW_LIVE_KILLED;
	j.ended_ns = j.now_ns;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), 3 * SB_S);
}

Test(stall, never_alerts_on_a_rank_under_a_debugger)
{
	stall_job_fault();
	j.liveness = CW_LIVE_TRACED;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
}

Test(stall, alerts_on_unchanged_progress_inside_a_collective)
{
	stall_job_fault();
	j.culprit = SB_MAX_RANKS;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), 15 * SB_S);
	cr_expect_eq(j.verdict_class, CW_CLASS_IN_COLLECTIVE);
}

Test(stall, is_at_most_possible_without_progress_words)
{
	stall_job_fault();
	j.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_HASH;
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), -1);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(stall, does_nothing_when_off)
{
	j.policy = CW_POLICY_OFF;
	stall_job_fault();
	j.wrong_count = 7;
	cr_expect_eq(stall_job_run_until(CW_STALL_SUSPECT, 600 * SB_S), -1);
}

Test(stall, waits_for_a_daemon_that_restarts)
{
	stall_job_fault();
	j.culprit_node_state = CW_NODE_SAID_GOODBYE;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 3600 * SB_S), -1);
}

Test(stall, alerts_on_a_node_that_cannot_be_reached)
{
	stall_job_fault();
	j.culprit_node_state = CW_NODE_UNREACHABLE;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), 2 * SB_S);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_LIKELY);
}

Test(stall, ignores_a_clock_that_goes_back)
{
	stall_job_fault();
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 60 * SB_S), -1);
	j.now_ns -= 5 * SB_S;
	stall_job_step();
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
}

Test(stall, says_when_to_evaluate_again)
{
	stall_job_fault();
	for (unsigned i = 0; i < 80; i++) {
		stall_job_step();
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

	j.active_until_ns = INT64_MAX;
	while (j.now_ns < end) {
		if (j.now_ns >= arrive) {
			j.done++;
			j.culprit = (uint32_t)random_below(&seed, 8);
			j.fault_ns = j.now_ns;
			arrive = j.now_ns + 100 * MS + (int64_t)random_below(&seed, 4900) * MS;
			if (random_below(&seed, 500) == 0)
				arrive += (40 + (int64_t)random_below(&seed, 200)) * SB_S;
		}
		stall_job_step();
		looks++;
		cr_assert_neq(j.d.phase, CW_STALL_HANG, "alert after %ld s: %s",
			      (long)((j.now_ns - SB_NOW) / SB_S), j.d.why);
		j.now_ns += SB_S;
	}
	cr_expect_geq(looks, 86400);
}

Test(stall, leaves_a_call_alone_whose_waiters_get_on_elsewhere)
{
	/* A receive on a stream of its own, posted an hour before its send. */
	j.n_ranks = 2;
	j.culprit = 1;
	j.n_movers = 2;
	stall_job_fault();
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	cr_expect_eq(j.d.phase, CW_STALL_STALLED);
	j.n_movers = 0;
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 5 * SB_S), -1, "now they are held up");
}

Test(stall, does_not_mind_that_some_others_get_on)
{
	j.n_movers = 2;
	stall_job_fault();
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 52 * SB_S), -1);
}

Test(stall, does_not_take_an_old_reading_for_a_confirmation)
{
	/* Three seconds of it, half a minute of something worse elsewhere, and it again. */
	stall_job_fault();
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 19 * SB_S), -1);
	j.now_ns += 30 * SB_S;
	stall_job_step();
	cr_expect_neq(j.d.phase, CW_STALL_HANG, "the last evaluation is half a minute old");
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 4 * SB_S), -1);
}

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
	/* The first op of a comm connects every pair of its ranks. */
	cr_expect_eq(limit_with(0, 0, 4096), 120 * SB_S + 8 * 20 * MS);
	j.t.bytes_per_s = 1000;
	cr_expect_eq(limit_with(41, 0, 50000), 200 * SB_S);
}

/* ---- rows of the table, with times as they are without a configuration ---- */

static int64_t page_after(int64_t limit_ns)
{
	j.t.no_progress_after_ns = 60 * SB_S;
	stall_job_fault();
	return stall_job_run_until(CW_STALL_HANG, limit_ns);
}

Test(stall, pages_for_a_lock_that_nobody_lets_go_after_a_minute)
{
	int64_t after;

	j.host_wait = CW_HOST_WAIT_GIL;
	after = page_after(75 * SB_S);
	cr_expect_geq(after, 60 * SB_S);
	cr_expect_eq(j.d.hang, CW_HANG_LIKELY);
	cr_expect_leq(j.d.noticed_ns - j.fault_ns, 33 * SB_S);
}

Test(stall, pages_for_an_exit_without_fault_after_a_minute)
{
	int64_t after;

	j.liveness = CW_LIVE_EXITED;
	j.ended_ns = j.now_ns;
	after = page_after(75 * SB_S);
	cr_expect_geq(after, 60 * SB_S, "%ld", (long)(after / SB_S));
	cr_expect_eq(j.verdict_class, CW_CLASS_PROCESS_DEAD);
	cr_expect_eq(j.d.hang, CW_HANG_LIKELY);
}

/* Not at once: the launcher may have ended it on request, like the others of its node. */
Test(stall, pages_for_an_error_before_the_end_of_its_node_after_a_minute)
{
	int64_t after;

	j.liveness = CW_LIVE_EXITED;
	j.exit_code = 1;
	j.flags = CW_RANKF_SHUTDOWN;
	j.ended_ns = j.now_ns;
	after = page_after(75 * SB_S);
	cr_expect_geq(after, 60 * SB_S, "%ld", (long)(after / SB_S));
	cr_expect_eq(j.verdict_class, CW_CLASS_PROCESS_DEAD);
	cr_expect_eq(j.d.hang, CW_HANG_LIKELY);
}

Test(stall, never_pages_for_what_somebody_has_frozen)
{
	j.flags = CW_RANKF_FROZEN;
	cr_expect_eq(page_after(4 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	cr_expect_eq(j.d.hang, CW_HANG_POSSIBLE);
}

Test(stall, never_pages_for_who_sits_at_a_terminal)
{
	j.host_wait = CW_HOST_WAIT_TTY;
	cr_expect_eq(page_after(4 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
}

Test(stall, gives_storage_five_minutes)
{
	int64_t after;

	j.host_wait = CW_HOST_WAIT_STORAGE;
	after = page_after(310 * SB_S);
	cr_expect_geq(after, 300 * SB_S);
	cr_expect_eq(j.d.hang, CW_HANG_LIKELY);
}

Test(stall, leaves_who_is_busy_to_the_job_s_own_watchdog)
{
	j.job_timeout_ns = 600 * SB_S;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 3 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	cr_expect_geq(j.d.noticed_ns - j.fault_ns, 570 * SB_S);
	cr_expect_leq(j.d.noticed_ns - j.fault_ns, 573 * SB_S);
	cr_expect_eq(j.d.confidence, CW_CONFIDENCE_LIKELY, "no more than the page would say");
}

/* It is not this call's, or does not end the job: then that is as if there were none. */
Test(stall, pages_for_who_is_busy_where_the_watchdog_has_not_ended_the_job)
{
	j.job_timeout_ns = 600 * SB_S;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 5 * 3600 * SB_S), -1);
	cr_expect_geq(j.now_ns - j.fault_ns, 4 * 3600 * SB_S);
}

/* The user set hours, because some phase of the job takes hours. */
Test(stall, leaves_who_is_busy_to_a_watchdog_of_hours_too)
{
	j.job_timeout_ns = 6 * 3600 * SB_S;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 6 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	cr_expect_leq(j.d.noticed_ns - j.fault_ns, 603 * SB_S);
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 1000 * SB_S), -1);
}

/* It once survived a wait of an hour. Three times that exceeds the job's own limit. */
Test(stall, pages_for_who_is_idle_before_a_watchdog_of_hours_ends_the_job)
{
	int64_t after;

	j.job_timeout_ns = 7200 * SB_S;
	stall_job_fault();
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 3600 * SB_S), -1);
	j.done = 50;
	after = page_after(7200 * SB_S);
	cr_expect_geq(after, 7170 * SB_S);
	cr_expect_leq(after, 7173 * SB_S, "%ld", (long)(after / SB_S));
}

Test(stall, pages_for_who_is_idle_before_the_job_ends_itself)
{
	int64_t after;

	j.job_timeout_ns = 180 * SB_S;
	after = page_after(180 * SB_S);
	cr_expect_geq(after, 150 * SB_S);
	cr_expect_leq(after, 153 * SB_S, "%ld", (long)(after / SB_S));
}

/*
 * A debugger has held it for hours, and a rank has waited as long. When the debugger lets
 * go, it works.
 */
Test(stall, counts_from_when_a_debugger_let_go)
{
	j.liveness = CW_LIVE_TRACED;
	cr_expect_eq(page_after(5 * 3600 * SB_S), -1);
	cr_expect(j.d.is_noticed);
	j.liveness = CW_LIVE_ALIVE;
	j.active_until_ns = INT64_MAX;
	cr_expect_eq(stall_job_run_until(CW_STALL_HANG, 4 * 3600 * SB_S), -1);
	cr_expect_neq(stall_job_run_until(CW_STALL_HANG, 1000 * SB_S), -1);
}

/* It stands still as before, and gets the ten minutes of an idle rank. */
Test(stall, counts_from_when_somebody_let_it_go_on)
{
	int64_t after;

	j.flags = CW_RANKF_FROZEN;
	cr_expect_eq(page_after(3600 * SB_S), -1);
	j.flags = 0;
	after = stall_job_run_until(CW_STALL_HANG, 700 * SB_S);
	cr_expect_geq(after, 595 * SB_S, "%ld", (long)(after / SB_S));
}

Test(stall, learns_nothing_from_waits_for_what_somebody_held)
{
	j.liveness = CW_LIVE_TRACED;
	cr_expect_eq(page_after(3600 * SB_S), -1);
	j.done = 50;
	j.liveness = CW_LIVE_ALIVE;
	cr_expect_neq(page_after(605 * SB_S), -1);
}

/* ---- a wait that goes on in the next call ---- */

/*
 * For some ranks, their parts of the pending call are done, as in a reduce. They have completed
 * `ahead` calls more than rank 3, which works. They wait in the next call, or no wait of theirs is
 * visible yet.
 */
static void look_ahead(uint64_t ahead, bool do_wait, uint64_t of_culprit)
{
	struct sb *b = sb_new(j.n_ranks, 2);
	struct sb_comm *c = sb_comm(b, "world", 0, j.n_ranks, 1, j.done);
	struct cw_snapshot *snap;

	for (uint32_t i = 0; i < j.n_ranks; i++) {
		struct sb_member *m = &c->members[i];

		m->completed = m->reached = m->returned = m->entered =
			j.done + (i == j.culprit ? of_culprit : ahead);
		if (i != j.culprit && do_wait)
			sb_waits(c, i, j.now_ns - j.fault_ns + 1);
	}
	snap = sb_snapshot(b);
	snap->thresholds = j.t;
	stall_job_evaluate(b, snap);
	j.now_ns += SB_S;
}

static struct cw_verdict_key notice_of_a_wait(void)
{
	stall_job_fault();
	for (unsigned i = 0; i < 620; i++)
		look_ahead(0, true, 0);
	cr_assert(j.d.is_noticed);
	return j.d.key;
}

Test(stall, follows_a_wait_into_the_next_call)
{
	struct cw_verdict_key key = notice_of_a_wait();
	int64_t noticed_ns = j.d.noticed_ns;

	look_ahead(1, false, 0);
	cr_expect_not(j.d.resolved_key.is_set, "their node tells in a moment what they wait in");
	look_ahead(1, true, 0);
	cr_expect(cw_verdict_key_is_same(&j.d.moved_from, &key));
	cr_expect_not(cw_verdict_key_is_same(&j.d.key, &key));
	cr_expect_eq(j.d.noticed_ns, noticed_ns);
	look_ahead(1, true, 0);
	cr_expect_not(j.d.moved_from.is_set);
	cr_expect_eq(j.d.noticed_ns, noticed_ns);
	/* It comes, and all go on. */
	look_ahead(2, false, 2);
	cr_expect(j.d.resolved_key.is_set);
	cr_expect_geq(j.d.resolved_after_ns, 620 * SB_S);
}

Test(stall, gives_up_a_wait_that_nobody_is_seen_in)
{
	(void)notice_of_a_wait();
	for (unsigned i = 0; i < 3; i++) {
		look_ahead(1, false, 0);
		cr_expect_not(j.d.resolved_key.is_set, "%u", i);
	}
	look_ahead(1, false, 0);
	cr_expect(j.d.resolved_key.is_set);
}

/* It came, and is late for the next call again. */
Test(stall, does_not_follow_where_it_has_come)
{
	(void)notice_of_a_wait();
	look_ahead(1, true, 1);
	cr_expect_not(j.d.moved_from.is_set);
	cr_expect(j.d.resolved_key.is_set);
}

/* ---- a server that the user did not call one ---- */

/* The job's call: the others wait in it for the culprit. */
static struct cw_op call;

static void step_in_call(void)
{
	struct sb *b = stall_job_builder();
	struct cw_snapshot *snap;

	b->comms[0]->usual.kind = call.kind;
	b->comms[0]->usual.root = call.root;
	snap = sb_snapshot(b);
	snap->thresholds = j.t;
	snap->policy = j.policy;
	stall_job_evaluate(b, snap);
}

/* They wait for it so long; then it comes, and they get on for a while. Returns proposals. */
static unsigned wait_and_go_on(int64_t ns)
{
	bool was_proposed = cw_stall_has_proposed_serving(j.tracker);
	unsigned proposals = 0;

	stall_job_fault();
	j.now_ns += SB_S / 2; /* no age is that of the builder's own clock: its times would be 0 */
	for (; j.now_ns - j.fault_ns < ns; j.now_ns += SB_S) {
		bool had = j.d.proposes_serving;

		step_in_call();
		cr_assert_neq(j.d.phase, CW_STALL_HANG);
		cr_assert(!j.d.proposes_serving || j.d.is_noticed);
		proposals += j.d.proposes_serving && !had;
	}
	j.fault_ns = 0;
	j.done += 50;
	for (unsigned i = 0; i < 10; i++, j.now_ns += SB_S)
		step_in_call();
	cr_assert_not(j.d.proposes_serving, "of a wait that is over");
	cr_assert_eq(cw_stall_has_proposed_serving(j.tracker), was_proposed || proposals);
	return proposals;
}

/*
 * Megatron's server of text: rank 0 has Flask, and all others wait in the broadcast of the next
 * command (send_do_generate()).
 */
static void serve(void)
{
	j.t.no_progress_after_ns = 60 * SB_S;
	j.culprit = 0;
	j.host_wait = CW_HOST_WAIT_SOCKET;
	call = (struct cw_op){ .kind = CW_OP_BROADCAST, .root = 0 };
}

static unsigned proposals_of(unsigned waits, int64_t ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < waits; i++)
		n += wait_and_go_on(ns);
	return n;
}

Test(stall, proposes_once_that_an_idle_server_is_told_to_be_one)
{
	serve();
	cr_expect_eq(proposals_of(3, 7 * 3600 * SB_S), 0, "too early");
	cr_expect_eq(wait_and_go_on(7 * 3600 * SB_S), 1);
	cr_expect_eq(proposals_of(6, 7 * 3600 * SB_S), 0, "said again");
}

/* Its second notice would come after half an hour only, and such waits have none. */
Test(stall, proposes_to_a_server_that_waits_for_minutes)
{
	serve();
	cr_expect_eq(proposals_of(3, 200 * SB_S), 0);
	cr_expect_eq(proposals_of(4, 200 * SB_S), 1);
}

Test(stall, takes_pauses_of_less_than_a_minute_for_none)
{
	serve();
	cr_expect_eq(proposals_of(8, 58 * SB_S), 0);
	cr_expect_eq(wait_and_go_on(200 * SB_S), 0);
}

Test(stall, proposes_nothing_to_who_was_told_to_be_a_server)
{
	serve();
	j.policy = CW_POLICY_SERVING;
	cr_expect_eq(proposals_of(6, 3600 * SB_S), 0);
}

/* The root waits for storage, whether bytes move or, as here, none does for minutes. */
Test(stall, proposes_nothing_to_a_job_that_saves_every_hour)
{
	serve();
	j.host_wait = CW_HOST_WAIT_STORAGE;
	for (unsigned i = 0; i < 6; i++) {
		cr_expect_eq(wait_and_go_on(10 * SB_S), 0);
		j.now_ns += 3600 * SB_S;
		cr_expect_eq(wait_and_go_on(280 * SB_S), 0);
	}
}

Test(stall, proposes_nothing_to_a_job_whose_root_evaluates)
{
	serve();
	for (unsigned i = 0; i < 6; i++) {
		stall_job_fault();
		j.active_until_ns = INT64_MAX;
		for (; j.now_ns - j.fault_ns < 900 * SB_S; j.now_ns += SB_S) {
			step_in_call();
			cr_assert_not(j.d.proposes_serving);
		}
		j.fault_ns = 0;
		j.done += 50;
		step_in_call();
		j.now_ns += SB_S;
	}
	cr_expect_eq(wait_and_go_on(200 * SB_S), 0);
}

/* It waits for data in a socket, too, but the call of the others is no way to give them any. */
Test(stall, proposes_nothing_to_a_job_whose_data_loader_is_slow)
{
	serve();
	call = (struct cw_op){ .kind = CW_OP_ALL_REDUCE, .root = -1 };
	cr_expect_eq(proposals_of(8, 200 * SB_S), 0);
}

/* A breakpoint in a training loop: a user types, and the job is no server. */
Test(stall, proposes_nothing_to_who_sits_at_a_debugger_s_prompt)
{
	serve();
	j.host_wait = CW_HOST_WAIT_TTY;
	call = (struct cw_op){ .kind = CW_OP_ALL_REDUCE, .root = -1 };
	cr_expect_eq(proposals_of(5, 5 * 3600 * SB_S), 0);
}

/* A rank that a debugger held shows nothing of the job's own behaviour. */
Test(stall, proposes_nothing_because_of_waits_that_a_debugger_made)
{
	serve();
	j.liveness = CW_LIVE_TRACED;
	cr_expect_eq(proposals_of(4, 200 * SB_S), 0);
	j.liveness = CW_LIVE_ALIVE;
	cr_expect_eq(wait_and_go_on(200 * SB_S), 0);
}

/* We report a proof as a proof, regardless of the job's looks. */
Test(stall, pages_for_a_death_in_a_job_that_looks_like_a_server)
{
	serve();
	cr_expect_eq(proposals_of(4, 200 * SB_S), 1);
	stall_job_fault();
	j.liveness = CW_LIVE_KILLED;
	j.ended_ns = j.now_ns;
	for (; j.now_ns - j.fault_ns < 30 * SB_S && j.d.phase != CW_STALL_HANG; j.now_ns += SB_S)
		step_in_call();
	cr_expect_eq(j.d.phase, CW_STALL_HANG);
	cr_expect_not(j.d.proposes_serving);
}
