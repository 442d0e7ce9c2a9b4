/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/node/node.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/node/node_fixture.h"

#define LONG_MS 15000

static const struct agent_options rank0 = { .rank = 0, .job = "job-a", .comm_id = 1 };

struct result {
	unsigned calls;
	uint32_t status;
	char text[64];
};

static void on_stacks(uint32_t status, const char *text, void *user)
{
	struct result *result = user;

	result->calls++;
	result->status = status;
	snprintf(result->text, sizeof(result->text), "%s", text);
}

static bool has_result(struct node_fixture *f, void *arg)
{
	return ((struct result *)arg)->calls > 0;
}

static int ask(struct node_fixture *f, const struct agent *a, uint32_t deadline_ms,
	       struct result *result, uint64_t *ret_handle)
{
	*result = (struct result){ 0 };
	return cw_node_python_stacks(f->node, a->pid, a->start_ticks, deadline_ms, on_stacks,
				     result, ret_handle);
}

Test(node_python, brings_the_agents_answer)
{
	struct result result;
	struct node_fixture f;
	char expected[64];
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(ask(&f, &a, LONG_MS, &result, &handle), 0);
	cr_assert_eq(result.calls, 0);
	agent_do(&f, &a, 'p');
	fixture_run_until(&f, has_result, &result, "the stacks");
	snprintf(expected, sizeof(expected), "stacks of %d", (int)a.pid);
	cr_assert_eq(result.status, CW_PYTHON_OK);
	cr_assert_str_eq(result.text, expected);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_python, fails_at_the_deadline_and_ignores_the_late_answer)
{
	struct result result;
	struct node_fixture f;
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(ask(&f, &a, 20, &result, &handle), 0);
	fixture_run_until(&f, has_result, &result, "the deadline");
	cr_assert_eq(result.status, CW_PYTHON_FAILED);
	agent_do(&f, &a, 'p');
	fixture_next_digest(&f);
	cr_assert_eq(result.calls, 1);
	cr_assert_eq(fixture_stats(&f).connected, 1);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_python, fails_when_the_agent_goes)
{
	struct result result;
	struct node_fixture f;
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(ask(&f, &a, LONG_MS, &result, &handle), 0);
	kill(a.pid, SIGKILL);
	fixture_run_until(&f, has_result, &result, "the failure");
	cr_assert_eq(result.status, CW_PYTHON_FAILED);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_python, cancelled_request_stays_silent)
{
	struct result result;
	struct node_fixture f;
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(ask(&f, &a, LONG_MS, &result, &handle), 0);
	cw_node_python_cancel(f.node, handle);
	agent_do(&f, &a, 'p');
	fixture_next_digest(&f);
	cr_assert_eq(result.calls, 0);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_python, only_the_process_that_was_asked_may_answer)
{
	struct agent_options other = { .rank = 1, .job = "job-a", .comm_id = 1 };
	struct result result;
	struct node_fixture f;
	struct agent a, b;
	uint64_t handle;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	b = agent_register(&f, &other, 'W');
	cr_assert_eq(ask(&f, &a, LONG_MS, &result, &handle), 0);
	agent_do(&f, &b, 'q'); /* guesses the first id, which is right */
	fixture_next_digest(&f);
	cr_assert_eq(result.calls, 0);
	agent_do(&f, &a, 'p');
	fixture_run_until(&f, has_result, &result, "the stacks");
	cr_assert(strstr(result.text, "stacks of"));
	agent_stop(&a);
	agent_stop(&b);
	fixture_stop(&f);
}

#define LONG_ANSWER (600u << 10) /* length of the answer to 'l' */

/* 0 under AddressSanitizer. */
static size_t memory_in_use(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

Test(node_python, long_answer_that_does_not_end_is_not_kept)
{
	struct result result;
	struct node_fixture f;
	size_t before, after;
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	fixture_next_digest(&f);
	cr_assert_eq(ask(&f, &a, 200, &result, &handle), 0);
	before = memory_in_use();
	cr_assert_eq(agent_do(&f, &a, 'l'), 'k');
	fixture_run_until(&f, has_result, &result, "the deadline");
	cr_assert_eq(result.status, CW_PYTHON_FAILED);
	fixture_next_digest(&f);
	after = memory_in_use();
	cr_assert_lt(after, before + LONG_ANSWER / 2, "%zu bytes are kept", after - before);

	/* The rest comes, and the connection is of use again. */
	cr_assert_eq(agent_do(&f, &a, 'L'), 'k');
	cr_assert_eq(ask(&f, &a, LONG_MS, &result, &handle), 0);
	cr_assert_eq(agent_do(&f, &a, 'p'), 'k');
	fixture_run_until(&f, has_result, &result, "the stacks");
	cr_assert_eq(result.status, CW_PYTHON_OK);
	agent_stop(&a);
	fixture_stop(&f);
}

Test(node_python, answers_that_nobody_asked_for_end_the_connection)
{
	struct node_fixture f;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(agent_do(&f, &a, 'z'), 'X');
	cr_assert_gt(fixture_stats(&f).bad_messages_total, 64);
	agent_stop(&a);
	fixture_stop(&f);
}

static bool nobody_connected(struct node_fixture *f, void *arg)
{
	return fixture_stats(f).connected == 0;
}

Test(node_python, says_at_once_when_nobody_can_be_asked)
{
	struct result result;
	struct node_fixture f;
	uint64_t handle;
	struct agent a;

	fixture_start(&f, 8, 8);
	a = agent_register(&f, &rank0, 'W');
	cr_assert_eq(cw_node_python_stacks(f.node, a.pid, a.start_ticks + 1, 20, on_stacks, NULL,
					   &handle),
		     -ENOENT);
	agent_do(&f, &a, 'd');
	fixture_run_until(&f, nobody_connected, NULL, "the end of the connection");
	cr_assert_eq(ask(&f, &a, 20, &result, &handle), -ENOTCONN);
	agent_stop(&a);
	fixture_stop(&f);
}
