/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/blocking_child.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

/* Deadline of children that end by themselves. */
#define LONG_NS (600 * CW_NS_PER_S)

static char output[64];
static size_t len;
static int status;

static int run(int (*main)(int, const void *), const void *arg, int64_t timeout_ns)
{
	const struct cw_blocking_child child = { .main = main,
						 .arg = arg,
						 .timeout_ns = timeout_ns };

	return cw_blocking_child_run(&child, output, sizeof(output), &len, &status);
}

static int say(int out_fd, const void *arg)
{
	return write(out_fd, arg, strlen(arg)) == (ssize_t)strlen(arg) ? 7 : 1;
}

Test(blocking_child, brings_back_output_and_status)
{
	cr_assert_eq(run(say, "hello", LONG_NS), 0);
	cr_assert_eq(len, 5);
	cr_assert_arr_eq(output, "hello", 5);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static int talk(int out_fd, const void *arg)
{
	for (unsigned i = 0; i < 10000; i++)
		if (write(out_fd, "0123456789", 10) != 10)
			return 1;
	return 0;
}

Test(blocking_child, drops_what_the_buffer_does_not_hold)
{
	cr_assert_eq(run(talk, NULL, LONG_NS), 0);
	cr_assert_eq(len, sizeof(output));
	cr_assert_arr_eq(output, "0123456789", 10);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int hang(int out_fd, const void *arg)
{
	(void)!write(out_fd, "some", 4);
	if (arg)
		(void)close(out_fd);
	for (;;)
		(void)pause();
	return 0;
}

static void expect_killed(const void *arg)
{
	/* On a busy machine its time may be up before it has come to write: then it gets more. */
	for (int64_t ns = 100 * CW_NS_PER_MS; len == 0; ns *= 2)
		cr_assert_eq(run(hang, arg, ns), -ETIMEDOUT);
	cr_assert_arr_eq(output, "some", 4);
	cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1);
	cr_assert_eq(errno, ECHILD);
}

Test(blocking_child, is_killed_at_its_deadline)
{
	expect_killed(NULL);
}

Test(blocking_child, is_killed_at_its_deadline_without_an_output, .timeout = 120)
{
	expect_killed("closes its output");
}
