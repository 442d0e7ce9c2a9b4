/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads hold still inside of NCCL. The clock is made up; each test has its own process. */
#include "agent/record/open_calls.h"

#include <criterion/criterion.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/base/state.h"
#include "tests/support/agent/agent_fake_nccl.h"

static time_t added_s;

/* In front of the C library's. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = (int)syscall(SYS_clock_gettime, id, ts);

	if (id == CLOCK_MONOTONIC)
		ts->tv_sec += added_s;
	return r;
}

static uint64_t after(unsigned s)
{
	added_s += s;
	cw_open_calls_step();
	return cw_open_calls_has(cw_tid());
}

static uint64_t seen;

static void stay(void)
{
	cr_expect_eq(after(0), 0u, "it has just begun");
	cr_expect_eq(after(1), 0u);
	seen = after(1);
	cr_expect_neq(seen, 0u);
	cr_expect_eq(after(1), seen, "the same call");
	cr_expect_eq(cw_open_calls_has(cw_tid() + 1), 0u);
}

static void pass(void)
{
	cr_expect_eq(after(0), 0u);
}

static void sleep_through(void)
{
	(void)after(0);
	cr_expect_eq(after(60), 0u, "no step in between saw the call");
}

Test(agent_open_calls, a_call_counts_once_it_has_been_open_for_two_seconds)
{
	ncclComm_t comm = init(1);
	uint64_t before;

	cr_expect_eq(after(0), 0u);
	inside = stay;
	(void)all_reduce(comm, 1);
	cr_expect_eq(after(0), 0u, "it has returned");
	before = seen;
	(void)all_reduce(comm, 1);
	cr_expect_neq(before, seen, "another call");
}

/* A thread that calls again and again is seen inside at each look. */
Test(agent_open_calls, calls_one_after_the_other_are_not_one)
{
	ncclComm_t comm = init(1);

	inside = pass;
	for (int i = 0; i < 10; i++) {
		added_s++;
		(void)all_reduce(comm, 1);
	}
}

Test(agent_open_calls, a_group_counts_from_its_launch)
{
	ncclComm_t comm = init(1);

	start();
	(void)all_reduce(comm, 1);
	for (int i = 0; i < 10; i++)
		cr_expect_eq(after(1), 0u, "the program may do anything before the group's end");
	inside = stay;
	(void)end();
	cr_expect_eq(after(0), 0u);
}

Test(agent_open_calls, making_a_communicator_counts)
{
	inside = stay;
	(void)init(1);
	cr_expect_neq(seen, 0u);
}

Test(agent_open_calls, time_in_which_nobody_looked_does_not_count)
{
	ncclComm_t comm = init(1);

	inside = sleep_through;
	(void)all_reduce(comm, 1);
}
