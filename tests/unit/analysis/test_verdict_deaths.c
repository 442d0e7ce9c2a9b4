/* SPDX-License-Identifier: Apache-2.0 */
/* Ended processes: deaths that block other ranks, and mere ends of a job. */
#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_deaths, .init = verdict_setup, .fini = verdict_teardown);

Test(verdict_deaths, leaves_a_rank_alone_that_died_after_its_part)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 41);
	struct sb_comm *low = sb_comm(b, "low", 0, 4, 1, 9);

	(void)world;
	sb_all_wait_but(low, 2, 12 * SB_S);
	b->ranks[6].liveness = CW_LIVE_EXITED;
	b->ranks[6].ended_ns = SB_NOW - 20 * SB_S;
	expect(CW_CLASS_NEVER_ENTERED, "outside_nccl", "2", "0-1,3");
}

Test(verdict_deaths, blames_an_exit_others_wait_for)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
}

/* Of many members, in an order that is not that of the ranks, each is still found. */
Test(verdict_deaths, proves_what_the_dead_rank_of_a_large_comm_owes)
{
	struct sb_comm *c;

	sb_free(b);
	b = sb_new(SB_MAX_RANKS, 4);
	c = sb_comm(b, "world", 0, SB_MAX_RANKS, 1, 41);
	for (uint32_t i = 0; i < SB_MAX_RANKS; i++)
		c->members[i].rank = (i * 5 + 7) % SB_MAX_RANKS;
	sb_all_wait_but(c, 9, 4 * SB_S); /* (9 * 5 + 7) % 64 */
	b->ranks[52].liveness = CW_LIVE_KILLED;
	b->ranks[52].term_signal = 9;
	b->ranks[52].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "52", "0-51,53-63");
	cr_expect(v.is_proof);
}

/* The host runs ahead of its device: that it had called #43 does not mean that #42 was done. */
Test(verdict_deaths, says_how_far_the_device_of_a_dead_rank_was)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	c->members[5].entered = c->members[5].returned = 43;
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(
		strstr(said_text(&v.culprits[0].said), "but its device had completed only #41"),
		"%s", said_text(&v.culprits[0].said));
}

/* It cannot be there any more. */
Test(verdict_deaths, says_that_a_dead_rank_was_inside_the_call)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 4 * SB_S);
	c->members[5].returned = 41;
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 9;
	b->ranks[5].ended_ns = SB_NOW - 3 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect_not_null(
		strstr(said_text(&v.culprits[0].said), "it was inside all_reduce #42 on world"),
		"%s", said_text(&v.culprits[0].said));
	cr_expect_not_null(
		strstr(said_text(&v.said), "was killed by SIGKILL inside all_reduce #42 on world"),
		"%s", said_text(&v.said));
	cr_expect_null(strstr(said_text(&v.said), " is inside"), "%s", said_text(&v.said));
}

Test(verdict_deaths, takes_an_orderly_stop_for_no_incident)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 15;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/*
 * Its own watchdog ended it. The others wait for the rank that it waited for. Until we see that
 * rank, a verdict on this one is no answer.
 */
Test(verdict_deaths, does_not_blame_who_aborted_after_it_had_waited)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 40 * SB_S);
	c->members[5].returned = 41;
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 6;
	b->ranks[5].ended_ns = SB_NOW - 3 * SB_S;
	expect(CW_CLASS_HEALTHY, "", "", "");
	b->ranks[5].ended_ns = SB_NOW - 37 * SB_S; /* it had waited for 3 s only */
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect(v.is_proof);
	b->ranks[5].ended_ns = SB_NOW - 3 * SB_S;
	b->ranks[5].end_by = CW_END_BY_PROCESS;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
}

Test(verdict_deaths, takes_the_end_of_most_ranks_for_the_end_of_the_job)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++) {
		if (m < 3) {
			sb_waits(c, m, 4 * SB_S);
			continue;
		}
		b->ranks[m].liveness = CW_LIVE_EXITED;
		b->ranks[m].exit_code = 1;
		b->ranks[m].ended_ns = SB_NOW - SB_S;
	}
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/*
 * An ordinary end of a job does not make half of its ranks fault, or abort before they have waited.
 */
Test(verdict_deaths, names_the_half_that_failed_while_the_other_half_waits)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 4 * SB_S);
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = 6;
		b->ranks[m].ended_ns = SB_NOW - 4 * SB_S;
	}
	expect(CW_CLASS_PROCESS_DEAD, "killed", "4-7", "0-3");
	cr_expect(v.is_proof, "they will not come");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY, "who was first is not known");
	cr_expect_not_null(strstr(said_text(&v.said), "ranks 4-7 were killed by SIGABRT before"),
			   "%s", said_text(&v.said));
	b->ranks[5].term_signal = 11;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "4-7", "0-3");
	cr_expect_not_null(strstr(said_text(&v.said), "ranks 4-7 ended before"), "%s",
			   said_text(&v.said));
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].liveness = CW_LIVE_EXITED;
		b->ranks[m].exit_code = 1;
		b->ranks[m].term_signal = 0;
		b->ranks[m].end_by = CW_END_BY_NOBODY;
	}
	expect(CW_CLASS_PROCESS_DEAD, "exited", "4-7", "0-3");
	for (uint32_t m = 4; m < 8; m++)
		b->ranks[m].end_by = CW_END_BY_UNKNOWN;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/* One rank alone was terminated, and the others wait for it without end. */
Test(verdict_deaths, believes_in_an_orderly_stop_for_two_minutes)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 130 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = 15;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].ended_ns = SB_NOW - 130 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect(!v.is_proof);
	cr_expect_neq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* SIGTERM or SIGINT, or the exit status of a handler; no other rank gets one. */
Test(verdict_deaths, names_who_alone_was_asked_to_end)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 5, 20 * SB_S);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].term_signal = 2;
	b->ranks[5].ended_ns = SB_NOW - 7 * SB_S;
	expect(CW_CLASS_HEALTHY, "", "", "");
	b->ranks[5].ended_ns = SB_NOW - 9 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cr_expect(!v.is_proof, "a cancel may reach the others later");
	cr_expect_neq(v.confidence, CW_CONFIDENCE_CERTAIN);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].term_signal = 0;
	b->ranks[5].exit_code = 143;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
	cr_expect(!v.is_proof);
	/* Its launcher is gone, or that of a rank which still lives. */
	b->ranks[1].flags |= CW_RANKF_SHUTDOWN;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/* Any other end within half a minute may belong to the same cancel, before or after. */
Test(verdict_deaths, a_second_end_within_half_a_minute_makes_a_request_a_cancel)
{
	static const int64_t other_s[] = { 60, 40, 29, 21 };
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 2 && m != 5)
			sb_waits(c, m, 100 * SB_S);
	b->ranks[2].liveness = b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[2].term_signal = b->ranks[5].term_signal = 15;
	b->ranks[2].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].flags |= CW_RANKF_SHUTDOWN;
	b->ranks[5].ended_ns = SB_NOW - 50 * SB_S;
	for (unsigned i = 0; i < sizeof(other_s) / sizeof(*other_s); i++) {
		b->ranks[2].ended_ns = SB_NOW - other_s[i] * SB_S;
		expect(CW_CLASS_HEALTHY, "", "", "");
	}
	/* Half a minute has passed: the second request is another event. */
	b->ranks[2].ended_ns = SB_NOW - 17 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-1,3-4,6-7");
	cr_expect(!v.is_proof);
}

/* The processes of a whole node were killed; those of the other one hang. */
Test(verdict_deaths, names_the_dead_when_the_other_half_is_left_behind)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 4; m++)
		sb_waits(c, m, 130 * SB_S);
	for (uint32_t m = 4; m < 8; m++) {
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = 9;
		b->ranks[m].ended_ns = SB_NOW - 130 * SB_S;
	}
	expect(CW_CLASS_PROCESS_DEAD, "killed", "4-7", "0-3");
	cr_expect(!v.is_proof);
}

Test(verdict_deaths, gives_two_deaths_at_once_time_to_become_a_shutdown)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 2 && m != 5)
			sb_waits(c, m, 4 * SB_S);
	b->ranks[2].liveness = b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[2].flags |= CW_RANKF_OOM_KILLED;
	b->ranks[5].flags |= CW_RANKF_OOM_KILLED;
	b->ranks[2].ended_ns = b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "oom_killed", "2,5", "0-1,3-4,6-7");
	cr_expect(v.is_proof, "no process asked them to end");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY, "who was first is not known");
	b->ranks[2].flags &= ~(uint32_t)CW_RANKF_OOM_KILLED;
	b->ranks[5].flags &= ~(uint32_t)CW_RANKF_OOM_KILLED;
	b->ranks[2].term_signal = b->ranks[5].term_signal = 9;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "2,5", "0-1,3-4,6-7");
	cr_expect(!v.is_proof, "a user may be killing them all");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* As when both are out of memory, or fail at the same assertion, one after the other. */
static void two_fail(int64_t apart_ns, bool on_two_nodes)
{
	uint32_t second = on_two_nodes ? 1 : 6;
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++)
		if (m != 5 && m != second)
			sb_waits(c, m, 4 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		if (m == 5 || m == second) {
			b->ranks[m].liveness = CW_LIVE_KILLED;
			b->ranks[m].term_signal = SIGSEGV;
			b->ranks[m].ended_ns = SB_NOW - 5 * SB_S + (m == 5 ? 0 : apart_ns);
		}
}

Test(verdict_deaths, names_the_first_of_two_that_failed_two_seconds_apart)
{
	two_fail(2 * SB_S, false);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* The other dead rank has the lower number, and the wait for it is as long. */
Test(verdict_deaths, names_the_first_of_two_that_failed_on_two_nodes)
{
	two_fail(2 * SB_S, true);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0,2-4,6-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

/* Between nodes half a second says nothing. */
Test(verdict_deaths, is_certain_of_nobody_where_two_failed_at_one_time)
{
	two_fail(SB_S / 2, true);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "1,5", "0,2-4,6-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/*
 * NCCL had reported a lost peer to rank 1, and rank 1 ended because of that. As far as clocks tell,
 * it ended at the same time as rank 5; by their readings, before it.
 */
static void one_loses_a_peer(int64_t apart_ns, bool on_two_nodes, uint32_t who)
{
	struct sb_comm *c;

	two_fail(apart_ns, on_two_nodes);
	c = b->comms[b->n_comms - 1];
	b->ranks[on_two_nodes ? 1 : 6].liveness = CW_LIVE_EXITED;
	b->ranks[on_two_nodes ? 1 : 6].exit_code = 1;
	b->ranks[on_two_nodes ? 1 : 6].term_signal = 0;
	c->members[who].last_result = 6;
}

Test(verdict_deaths, who_had_lost_a_peer_is_not_the_first)
{
	one_loses_a_peer(-SB_S / 2, true, 1);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0,2-4,6-7");
	cr_expect(v.is_proof);
}

Test(verdict_deaths, who_had_lost_a_peer_on_the_same_node_is_not_the_first)
{
	one_loses_a_peer(-SB_S / 20, false, 6);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,7");
}

/* The report was about another loss, or came from an unnamed rank: the times decide. */
Test(verdict_deaths, who_had_lost_a_peer_long_before_is_the_first)
{
	one_loses_a_peer(-2 * SB_S, true, 1);
	expect(CW_CLASS_PROCESS_DEAD, "exited", "1", "0,2-4,6-7");
}

static void exits(uint32_t rank)
{
	b->ranks[rank].liveness = CW_LIVE_EXITED;
	b->ranks[rank].exit_code = 1;
	b->ranks[rank].term_signal = 0;
}

Test(verdict_deaths, two_that_had_lost_a_peer_stay_a_tie)
{
	one_loses_a_peer(-SB_S / 2, true, 1);
	exits(5);
	b->comms[0]->members[5].last_result = 6;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "1,5", "0,2-4,6-7");
}

/* No descriptor is left, or no shared memory: that is its own. */
Test(verdict_deaths, a_system_error_of_a_call_is_no_lost_peer)
{
	one_loses_a_peer(-SB_S / 2, true, 1);
	exits(5);
	b->comms[0]->members[1].last_result = 2;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "1,5", "0,2-4,6-7");
}

/* It lost one long ago, with a communicator that was aborted for it. */
Test(verdict_deaths, a_peer_that_an_aborted_communicator_lost_is_long_gone)
{
	struct sb_comm *old = sb_comm(b, "old", 0, 8, 1, 7);

	one_loses_a_peer(-SB_S / 2, true, 1);
	exits(5);
	for (uint32_t m = 0; m < 8; m++) {
		old->members[m].state = CW_COMM_ABORTED;
		old->members[m].last_result = 6;
		b->comms[1]->members[m].last_result = 0;
	}
	expect(CW_CLASS_PROCESS_DEAD, "exited", "1,5", "0,2-4,6-7");
}

/* The cause of its death is no lost peer. */
Test(verdict_deaths, a_fault_is_its_own_whoever_was_lost_before)
{
	two_fail(-SB_S / 2, true);
	b->comms[0]->members[1].last_result = 6;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "1,5", "0,2-4,6-7");
}

/* The kernel tells when an end begins, a pidfd when it is over. */
Test(verdict_deaths, instants_of_two_kinds_are_seconds_apart)
{
	two_fail(-3 * SB_S, true);
	b->ranks[1].end_by = CW_END_BY_KERNEL;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "1,5", "0,2-4,6-7");
}

/* Ranks 4 to 7 are one process, which drives four devices. */
static void share_a_process(void)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++) {
		b->ranks[m].start_ticks = 7;
		if (m < 4) {
			sb_waits(c, m, 4 * SB_S);
			continue;
		}
		b->ranks[m].node = b->ranks[4].node;
		b->ranks[m].pid = b->ranks[4].pid;
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = SIGKILL;
		b->ranks[m].ended_ns = SB_NOW - 5 * SB_S;
	}
}

/* Half of the ranks have ended, and no job ends: it is one death. */
Test(verdict_deaths, is_certain_of_a_process_with_all_its_ranks)
{
	share_a_process();
	expect(CW_CLASS_PROCESS_DEAD, "killed", "4-7", "0-3");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict_deaths, is_certain_of_no_process_where_another_one_ended_with_it)
{
	share_a_process();
	b->ranks[7].pid++;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/*
 * Long after: neither got a request to end, and the second death follows from nothing but
 * the first.
 */
Test(verdict_deaths, names_the_first_of_two_that_were_killed_a_minute_apart)
{
	two_fail(0, false);
	b->ranks[5].term_signal = b->ranks[6].term_signal = SIGKILL;
	b->ranks[5].ended_ns = SB_NOW - 64 * SB_S;
	b->ranks[6].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,7");
}

/*
 * A launcher of its own: a process that sends a signal and ends of it is to blame, rather
 * than the receiver.
 */
Test(verdict_deaths, blames_the_sender_before_the_receiver)
{
	two_fail(SB_S / 50, false);
	b->ranks[5].pid = 4242;
	b->ranks[6].term_signal = SIGKILL;
	b->ranks[6].end_by = CW_END_BY_PROCESS;
	b->ranks[6].end_sender = 4242;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,7");
}

/* Rank 5 by itself, at `crash_ns` before now; its launcher ends 4, 6 and 7; the other node waits.
 */
static void crash_on_a_node(int64_t crash_ns, int64_t asked_ns)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	for (uint32_t m = 0; m < 8; m++) {
		if (m < 4) {
			sb_waits(c, m, 7 * SB_S);
			continue;
		}
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = m == 5 ? 11 : 15;
		b->ranks[m].flags |= CW_RANKF_SHUTDOWN;
		b->ranks[m].ended_ns = SB_NOW - (m == 5 ? crash_ns : asked_ns);
	}
}

Test(verdict_deaths, names_who_crashed_though_its_launcher_ended_its_node)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-3");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
}

Test(verdict_deaths, names_who_exited_with_an_error_by_itself_as_the_first)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].exit_code = 1;
	b->ranks[5].term_signal = 0;
	b->ranks[5].end_by = CW_END_BY_NOBODY;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-3");
	/* Without the kernel's facts we must allow for a request to end: no proof. */
	b->ranks[5].end_by = CW_END_BY_UNKNOWN;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-3");
	cr_expect(!v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* NVIDIA/nccl#1409 without the watchdog: an assertion of the program's own. */
Test(verdict_deaths, names_who_aborted_though_its_launcher_ended_its_node)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	b->ranks[5].term_signal = SIGABRT;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-3");
	cr_expect(!v.is_proof, "who cleans up after Ctrl-C may abort as well");
}

/* Two of a node run into the same fault, and its launcher ends the rest. */
Test(verdict_deaths, names_two_that_crashed_at_once_though_their_launcher_ended_their_node)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	b->ranks[6].term_signal = SIGSEGV;
	b->ranks[6].ended_ns = SB_NOW - 6 * SB_S + SB_S / 50;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5-6", "0-3");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* scancel: SIGTERM to all, and the handlers of some end them with an error of their own. */
Test(verdict_deaths, takes_handlers_that_exit_with_an_error_for_a_cancelled_job)
{
	static const int codes[] = { 1, 143, 130, 137 };

	crash_on_a_node(5 * SB_S, 5 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].term_signal = 0;
	for (unsigned i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		b->ranks[5].exit_code = codes[i];
		expect(CW_CLASS_HEALTHY, "", "", "");
	}
	/*
	 * One rank saves a checkpoint, and ends before the waiting ranks do. The kernel's facts
	 * show a request to end.
	 */
	b->ranks[5].exit_code = 1;
	b->ranks[5].end_by = CW_END_BY_PROCESS;
	b->ranks[5].ended_ns = SB_NOW - 6 * SB_S;
	expect(CW_CLASS_HEALTHY, "", "", "");
	b->ranks[5].exit_code = 143;
	b->ranks[5].end_by = CW_END_BY_UNKNOWN;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/* The launcher is gone after the user's Ctrl-C, and one rank aborts before the others end. */
Test(verdict_deaths, takes_an_abort_for_part_of_an_end_while_launchers_are_gone)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	b->ranks[5].term_signal = SIGABRT;
	b->ranks[0].flags |= CW_RANKF_SHUTDOWN;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict_deaths, takes_a_crash_after_the_others_were_ended_for_part_of_that)
{
	crash_on_a_node(5 * SB_S, 6 * SB_S);
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/* All wait; rank 4 gives up, and its launcher kills rank 5, which was given some time to end. */
static void kill_after_somebody_gave_up(int64_t grace_ns)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, SB_MAX_RANKS, 100 * SB_S);
	for (uint32_t m = 4; m < 6; m++) {
		c->members[m].returned = 41;
		b->ranks[m].liveness = CW_LIVE_KILLED;
		b->ranks[m].term_signal = m == 4 ? SIGABRT : SIGKILL;
		b->ranks[m].end_by = m == 4 ? CW_END_BY_ITSELF : CW_END_BY_PROCESS;
		b->ranks[m].ended_ns = SB_NOW - 5 * SB_S - (m == 4 ? grace_ns : 0);
	}
}

Test(verdict_deaths, does_not_blame_whom_the_launcher_killed_after_another_had_given_up)
{
	kill_after_somebody_gave_up(10 * SB_S);
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict_deaths, blames_who_was_killed_long_after_another_had_given_up)
{
	kill_after_somebody_gave_up(61 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-3,6-7");
}

Test(verdict_deaths, takes_nobody_for_the_first_whom_somebody_killed)
{
	crash_on_a_node(6 * SB_S, 5 * SB_S);
	b->ranks[5].end_by = CW_END_BY_PROCESS;
	expect(CW_CLASS_HEALTHY, "", "", "");
}

/*
 * Two leaders have the same digests, by different ways. Two calls have stood since the same moment.
 * Both leaders must name the same call for the death.
 */
Test(verdict_deaths, knows_a_death_by_the_same_call_whichever_wait_seems_older)
{
	struct sb_comm *c = sb_comm(b, "rows", 0, 4, 1, 41), *d = sb_comm(b, "columns", 3, 2, 4, 7);
	uint64_t first;

	sb_all_wait_but(c, 3, 4 * SB_S);
	sb_all_wait_but(d, 0, 4 * SB_S);
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].ended_ns = SB_NOW - 4 * SB_S;
	d->members[1].age_ns = 4 * SB_S + SB_S / 50;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "3", "0-2,7");
	first = snap->comms[v.comm].id;
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	d->members[1].age_ns = 4 * SB_S - SB_S / 50;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "3", "0-2,7");
	cr_expect_eq(snap->comms[v.comm].id, first);
}

/* Other ranks began to wait long before: the verdict names that call, regardless of comm names. */
Test(verdict_deaths, knows_a_death_by_the_wait_that_is_older)
{
	struct sb_comm *c = sb_comm(b, "rows", 0, 4, 1, 41), *d = sb_comm(b, "columns", 3, 2, 4, 7);

	sb_all_wait_but(c, 3, 4 * SB_S);
	sb_all_wait_but(d, 0, 4 * SB_S);
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].ended_ns = SB_NOW - 4 * SB_S;
	d->members[1].age_ns = 4 * SB_S - SB_S / 2;
	judge();
	cr_expect_eq(snap->comms[v.comm].id, c->id);
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	d->members[1].age_ns = 4 * SB_S + SB_S / 2;
	judge();
	cr_expect_eq(snap->comms[v.comm].id, d->id);
}

/* ---- a death after calls that differed ---- */

/* That rank called it otherwise, and all are through it; rank 5 did not come to #42. */
static struct sb_comm *odd_call(uint32_t member, uint64_t seq, void (*change)(struct cw_op *op))
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	change(sb_odd(c, member, seq));
	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = true;
	sb_all_wait_but(c, 5, 4 * SB_S);
	c->members[5].age_ns = 4 * SB_S;
	return c;
}

/* … and has ended. */
static struct sb_comm *ends_after_odd_call(void (*change)(struct cw_op *op))
{
	struct sb_comm *c = odd_call(2, 40, change);

	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].exit_code = 1;
	b->ranks[5].end_by = CW_END_BY_NOBODY;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	return c;
}

static void other_root(struct cw_op *op)
{
	op->kind = CW_OP_BROADCAST;
	op->root = 2;
}

static void other_operator(struct cw_op *op)
{
	op->redop = CW_REDOP_MAX;
}

Test(verdict_deaths, blames_the_call_that_differed_for_a_death_after_it)
{
	(void)ends_after_odd_call(other_root);
	expect(CW_CLASS_MISMATCH, "kind", "2", "0-1,3-4,6-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect_eq(v.coll_seq, 40);
	cr_expect_eq(v.waiting_since_ns, SB_NOW - 4 * SB_S);
	cr_expect(strstr(said_text(&v.said), " After that rank 5 (node-b, pid 805) exited with "
					     "status 1, and ranks 0-1,3-4,6-7 "
					     "have been waiting for 4.0 s."),
		  "%s", said_text(&v.said));
	cr_assert_geq(v.n_chain, 1);
	cr_expect_eq(v.chain[v.n_chain - 1].waits_for, 5);
}

Test(verdict_deaths, tells_a_death_after_a_differing_call_only_once)
{
	struct cw_verdict_list list;

	(void)ends_after_odd_call(other_operator);
	snap = sb_snapshot(b);
	cr_assert_eq(cw_verdict_compute_all(snap, &list), 0);
	cr_expect_eq(list.n, 1);
	cr_expect_eq(list.v[0].verdict_class, CW_CLASS_MISMATCH);
	cw_verdict_list_fini(&list);
}

Test(verdict_deaths, blames_who_called_otherwise_and_then_ended)
{
	(void)odd_call(5, 41, other_root);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = SIGABRT;
	b->ranks[5].end_by = CW_END_BY_ITSELF;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_MISMATCH, "kind", "5", "0-4,6-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  " After that rank 5 (node-b, pid 805) was killed by SIGABRT"),
			   "%s", said_text(&v.said));
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	b->ranks[5].term_signal = SIGSEGV; /* an index out of wrong data */
	b->ranks[5].end_by = CW_END_BY_KERNEL;
	expect(CW_CLASS_MISMATCH, "kind", "5", "0-4,6-7");
}

/*
 * The windows that name the call are on their way. Until then the verdict would be a plain death.
 */
Test(verdict_deaths, awaits_the_calls_of_histories_that_differ)
{
	struct sb_comm *c = ends_after_odd_call(other_root);

	for (uint32_t m = 0; m < 8; m++)
		c->members[m].has_window = false;
	expect(CW_CLASS_MISMATCH, "unknown_call", "2", "0-1,3-4,6-7");
	cr_expect(v.histories_differ);
	cr_expect(v.wants_windows);
}

Test(verdict_deaths, blames_no_differing_call_of_long_before_a_death)
{
	struct sb_comm *c = ends_after_odd_call(other_operator);

	c->every_ns = 70 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	c->every_ns = SB_S;
	for (uint32_t m = 0; m < 8; m++) { /* hundreds of calls went well since */
		c->members[m].entered += 300;
		c->members[m].returned += 300;
		c->members[m].reached += 300;
		c->members[m].completed += 300;
	}
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
}

/* Survivors that continue make other calls because of the death. */
Test(verdict_deaths, blames_no_call_that_differs_after_a_death)
{
	(void)ends_after_odd_call(other_operator);
	b->ranks[5].ended_ns = SB_NOW - 20 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "0-4,6-7");
}

Test(verdict_deaths, blames_no_differing_call_for_a_death_that_others_caused)
{
	(void)ends_after_odd_call(other_operator);
	b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[5].term_signal = SIGKILL;
	b->ranks[5].end_by = CW_END_BY_PROCESS;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "5", "0-4,6-7");
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	b->ranks[5].end_by = CW_END_BY_KERNEL;
	b->ranks[5].flags |= CW_RANKF_OOM_KILLED;
	expect(CW_CLASS_PROCESS_DEAD, "oom_killed", "5", "0-4,6-7");
}

Test(verdict_deaths, blames_no_differing_call_for_a_death_of_another_comm)
{
	struct sb_comm *low = sb_comm(b, "low", 0, 4, 1, 41),
		       *high = sb_comm(b, "high", 4, 4, 1, 41);

	other_operator(sb_odd(low, 2, 41));
	for (uint32_t m = 0; m < 4; m++)
		low->members[m].has_window = high->members[m].has_window = true;
	sb_all_wait_but(high, 1, 4 * SB_S);
	b->ranks[5].liveness = CW_LIVE_EXITED;
	b->ranks[5].exit_code = 1;
	b->ranks[5].ended_ns = SB_NOW - 4 * SB_S;
	expect(CW_CLASS_PROCESS_DEAD, "exited", "5", "4,6-7");
}
