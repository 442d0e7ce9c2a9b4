/* SPDX-License-Identifier: Apache-2.0 */
#include "common/or_exit/or_exit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <criterion/criterion.h>

static void without_memory(void)
{
	char *memory = cw_or_exit(NULL);

	free(memory);
}

static void with_its_error(void)
{
	(void)cw_or_exit_result(-ENOMEM);
}

/* Runs fn in a child. Returns its exit status, and what it wrote to standard error. */
static int status_of(void (*fn)(void), char *ret_text, size_t len)
{
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	cr_assert_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		fn();
		_exit(0);
	}
	(void)close(fds[1]);
	n = read(fds[0], ret_text, len - 1);
	ret_text[n > 0 ? n : 0] = '\0';
	(void)close(fds[0]);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

Test(or_exit, ends_a_program_without_memory_and_says_why)
{
	char text[64];

	cr_expect_eq(status_of(without_memory, text, sizeof(text)), 1);
	cr_expect_str_eq(text, "collwatch: out of memory\n");
	cr_expect_eq(status_of(with_its_error, text, sizeof(text)), 1);
	cr_expect_str_eq(text, "collwatch: out of memory\n");
}

Test(or_exit, passes_on_memory_and_other_results)
{
	int here;
	char *text = cw_or_exit_printf("%s-%d", "node", 3);

	cr_expect_eq(cw_or_exit(&here), &here);
	cr_expect_eq(cw_or_exit_result(-EINVAL), -EINVAL);
	cr_expect_eq(cw_or_exit_result(7), 7);
	cr_expect_str_eq(text, "node-3");
	free(text);
}
