/* SPDX-License-Identifier: Apache-2.0 */
/* The making of a communicator, or a split, that NCCL fails on some of its ranks. */
#include <criterion/criterion.h>
#include <string.h>

#include "analysis/stall/stall.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_init, .init = verdict_setup, .fini = verdict_teardown);

#define SYSTEM_ERROR 2
#define INVALID_ARGUMENT 4
#define REMOTE_ERROR 6

/* All ranks entered the making of world 30 s ago. */
static struct sb_comm *making(void)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, 30 * SB_S);
	}
	return c;
}

static void comes_back(struct sb_comm *c, uint32_t m, int16_t result, int64_t ago_ns)
{
	struct sb_member *member = &c->members[m];

	member->newest = member->call;
	member->newest.flags |= CW_OPF_RETURNED | CW_OPF_DROPPED;
	member->newest.result = result;
	member->newest.return_ns = SB_NOW - ago_ns;
	member->call = (struct cw_op){ .kind = CW_OP_NONE };
	member->last_result = result;
}

/* NCCL gave the member an error so long ago. */
static void fails(struct sb_comm *c, uint32_t m, int16_t result, int64_t ago_ns)
{
	comes_back(c, m, result, ago_ns);
	c->members[m].state = CW_COMM_FAILED;
}

static void exits(uint32_t rank, int32_t code, int64_t ago_ns)
{
	b->ranks[rank].liveness = CW_LIVE_EXITED;
	b->ranks[rank].exit_code = code;
	b->ranks[rank].end_by = CW_END_BY_NOBODY;
	b->ranks[rank].ended_ns = SB_NOW - ago_ns;
}

static void is_killed(uint32_t rank, int64_t ago_ns)
{
	b->ranks[rank].liveness = CW_LIVE_KILLED;
	b->ranks[rank].term_signal = 9;
	b->ranks[rank].end_by = CW_END_BY_PROCESS;
	b->ranks[rank].ended_ns = SB_NOW - ago_ns;
}

static enum cw_hang hang(void)
{
	enum cw_hang h;

	(void)cw_stall_severity(snap, &v, &h);
	return h;
}

Test(verdict_init, names_the_rank_whose_call_failed_and_that_lives_on)
{
	fails(making(), 3, SYSTEM_ERROR, 10 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "3", "0-2,4-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect_eq(hang(), CW_HANG_PROVEN);
	cr_expect_str_eq(said_text(&v.said),
			 "rank 3 (node-a, pid 803) failed in ncclCommInitRank on world "
			 "with ncclSystemError. The other 7 ranks have been waiting for "
			 "it for 30 s. Its process is now outside NCCL.");
	cr_expect_eq(strncmp(said_text(&v.culprits[0].said),
			     "ncclCommInitRank failed 10 s ago with ncclSystemError; alive, "
			     "outside NCCL",
			     70),
		     0, "%s", said_text(&v.culprits[0].said));
}

Test(verdict_init, names_the_rank_whose_process_ended_after_its_call_failed)
{
	fails(making(), 3, SYSTEM_ERROR, 10 * SB_S);
	exits(3, 1, 9 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "exited", "3", "0-2,4-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_CERTAIN);
	cr_expect_not_null(strstr(said_text(&v.said), "failed in ncclCommInitRank on world with "
						      "ncclSystemError and exited with status 1."),
			   "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said),
				  "ncclCommInitRank had failed 10 s ago with ncclSystemError"),
			   "%s", said_text(&v.culprits[0].said));
}

/* A program that catches the error and ends without fault leaves the others all the same. */
Test(verdict_init, an_exit_without_fault_after_a_failed_call_is_proven)
{
	fails(making(), 3, SYSTEM_ERROR, 10 * SB_S);
	exits(3, 0, 9 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "exited", "3", "0-2,4-7");
	cr_expect_eq(hang(), CW_HANG_PROVEN);
}

Test(verdict_init, names_the_member_that_failed_first)
{
	struct sb_comm *c = making();

	fails(c, 5, SYSTEM_ERROR, 8 * SB_S);
	fails(c, 3, SYSTEM_ERROR, 11 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "3", "0-2,4,6-7");
	cr_expect_eq(v.n_alternatives, 0);
}

Test(verdict_init, equal_instants_are_a_tie)
{
	struct sb_comm *c = making();

	fails(c, 2, SYSTEM_ERROR, 10 * SB_S);
	fails(c, 3, SYSTEM_ERROR, 10 * SB_S + SB_S / 100);
	expect(CW_CLASS_INIT_STUCK, "failed", "2-3", "0-1,4-7");
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

/* One process ended, and one lives on. */
Test(verdict_init, a_tie_of_two_classes_has_an_alternative)
{
	struct sb_comm *c = making();

	fails(c, 2, SYSTEM_ERROR, 10 * SB_S);
	fails(c, 3, SYSTEM_ERROR, 10 * SB_S);
	exits(2, 1, 9 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "exited", "2", "0-1,4-7");
	cr_expect_eq(v.n_alternatives, 1);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
}

Test(verdict_init, of_a_tie_names_who_was_not_told_of_a_lost_peer)
{
	struct sb_comm *c = making();

	fails(c, 2, REMOTE_ERROR, 10 * SB_S);
	fails(c, 3, SYSTEM_ERROR, 10 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "3", "0-1,4-7");
}

Test(verdict_init, says_that_a_dead_rank_was_inside)
{
	struct sb_comm *c = making();

	is_killed(2, 10 * SB_S);
	c->members[2].newest = c->members[2].call;
	expect(CW_CLASS_PROCESS_DEAD, "killed", "2", "0-1,3-7");
	cr_expect_not_null(strstr(said_text(&v.said),
				  "was killed by SIGKILL inside ncclCommInitRank on "
				  "world."),
			   "%s", said_text(&v.said));
}

/* Its neighbours get an error once its sockets are closed. */
Test(verdict_init, a_failure_after_a_death_is_not_named)
{
	struct sb_comm *c = making();

	is_killed(2, 10 * SB_S);
	fails(c, 1, REMOTE_ERROR, 10 * SB_S - SB_S / 100);
	fails(c, 3, SYSTEM_ERROR, 10 * SB_S - SB_S / 100);
	fails(c, 4, SYSTEM_ERROR, 9 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "2", "0,5-7");
	cr_expect_eq(v.n_alternatives, 0);
}

/* A pidfd tells of an end when it is over, seconds after the sockets were closed. */
Test(verdict_init, a_death_that_is_told_late_is_still_the_cause)
{
	struct sb_comm *c = making();

	is_killed(2, 8 * SB_S);
	b->ranks[2].end_by = CW_END_BY_UNKNOWN;
	fails(c, 3, SYSTEM_ERROR, 10 * SB_S);
	expect(CW_CLASS_PROCESS_DEAD, "killed", "2", "0-1,4-7");
}

/* Its own error came long before; then a launcher ended another rank. */
Test(verdict_init, a_death_after_a_failure_is_not_named)
{
	struct sb_comm *c = making();

	fails(c, 3, SYSTEM_ERROR, 20 * SB_S);
	is_killed(2, 10 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "3", "0-1,4-7");
	cr_expect(v.is_proof);
}

/* No death makes an argument wrong. */
Test(verdict_init, a_wrong_argument_follows_from_no_death)
{
	struct sb_comm *c = making();

	fails(c, 3, INVALID_ARGUMENT, 10 * SB_S);
	exits(5, 1, 10 * SB_S);
	judge();
	cr_expect_not_null(strstr(sb_culprits(snap, &v), "5"), "%s", said_text(&v.said));
	cr_expect_eq(v.n_alternatives, 1);
}

/* The program repeats the call: the rank is inside, or in the making of another communicator. */
Test(verdict_init, an_initialisation_that_is_repeated_is_no_hang)
{
	struct sb_comm *c = making(), *again;

	fails(c, 3, SYSTEM_ERROR, 10 * SB_S);
	again = sb_comm(b, "again", 0, 8, 1, 0);
	for (uint32_t m = 0; m < 8; m++) {
		again->members[m].rank = m == 3 ? 3 : CW_SNAP_NONE;
		again->members[m].state = CW_COMM_INIT;
	}
	(void)sb_call(again, 3, CW_OP_COMM_INIT, 9 * SB_S);
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_INIT_STUCK, "%s", said_text(&v.said));
	cr_expect_eq(v.n_culprits, 0, "%s", said_text(&v.said));
	cr_expect(!v.is_proof);
	cr_expect_null(strstr(said_text(&v.said), "all ranks of world"), "%s", said_text(&v.said));
}

/* It waits for the others, and they wait for the communicator it gave up: that is no circle. */
Test(verdict_init, names_the_rank_that_went_on_to_another_call)
{
	struct sb_comm *old;

	fails(making(), 3, SYSTEM_ERROR, 10 * SB_S);
	old = sb_comm(b, "old", 0, 8, 1, 41);
	sb_waits(old, 3, 9 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "3", "0-2,4-7");
	cr_expect(v.is_proof);
	cr_expect_not_null(
		strstr(said_text(&v.said), "Its process is now inside all_reduce #42 on old."),
		"%s", said_text(&v.said));
}

Test(verdict_init, says_nothing_where_nobody_waits)
{
	struct sb_comm *c = making();

	for (uint32_t m = 0; m < 8; m++)
		fails(c, m, SYSTEM_ERROR, 10 * SB_S);
	expect(CW_CLASS_HEALTHY, "", "", "");
}

Test(verdict_init, names_the_rank_that_gave_the_communicator_up)
{
	struct sb_comm *c = making();

	c->members[3].state = CW_COMM_ABORTED;
	c->members[3].call = (struct cw_op){ .kind = CW_OP_NONE };
	expect(CW_CLASS_INIT_STUCK, "aborted", "3", "0-2,4-7");
	cr_expect_null(strstr(said_text(&v.said), "has not called"), "%s", said_text(&v.said));
}

/* ---- a split ---- */

static struct sb_comm *splitting(void)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 4);

	for (uint32_t m = 0; m < 8; m++)
		(void)sb_call(c, m, CW_OP_COMM_SPLIT, 30 * SB_S);
	return c;
}

Test(verdict_init, names_the_rank_whose_split_failed)
{
	comes_back(splitting(), 2, INVALID_ARGUMENT, 29 * SB_S);
	expect(CW_CLASS_INIT_STUCK, "failed", "2", "0-1,3-7");
	cr_expect(v.is_proof);
	cr_expect_not_null(strstr(said_text(&v.said),
				  "failed in ncclCommSplit on world with ncclInvalidArgument"),
			   "%s", said_text(&v.said));
}

/* All members' splits failed and their programs went on: one is late to the next. */
Test(verdict_init, a_split_before_that_failed_for_all_is_not_blamed)
{
	struct sb_comm *c = splitting();

	comes_back(c, 2, INVALID_ARGUMENT, 40 * SB_S);
	for (uint32_t m = 0; m < 8; m++)
		if (m != 2)
			c->members[m].call.op_index++;
	expect(CW_CLASS_INIT_STUCK, "split", "2", "0-1,3-7");
	cr_expect(!v.is_proof);
}

/* ---- NCCL's words ---- */

Test(verdict_init, quotes_what_nccl_said_bounded_and_on_one_line)
{
	char text[400], *end;

	fails(making(), 3, SYSTEM_ERROR, 10 * SB_S);
	snap = sb_snapshot(b);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memcpy(text, "no\nsocket \x1b[31m", 15);
	snap->comms[0].members[3].last_error = text;
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	snap->comms[0].members[3].last_error = NULL; /* not the snapshot's to free */
	cr_expect_not_null(strstr(said_text(&v.said), "ncclSystemError (\"no?socket ?[31mxxx"),
			   "%s", said_text(&v.said));
	end = strstr(said_text(&v.said), "xxx\")");
	cr_assert_not_null(end, "%s", said_text(&v.said));
	cr_expect_leq(end - strstr(said_text(&v.said), "no?socket"), 95);
	cr_expect_not_null(strstr(said_text(&v.said), "have been waiting for it"), "%s",
			   said_text(&v.said));
}
