/* SPDX-License-Identifier: Apache-2.0 */
/* Callers that arrive while the agent starts. The test gets its turn in the middle of the start. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "tests/support/agent/agent_fake_nccl.h"

/* More than one bounded wait, far less than one for each of the calls. */
#define CALLS 300
#define PATIENCE_NS UINT64_C(120000000000)

static void (*meanwhile)(void);

/* In the C library's place: the agent asks it for the page that children find empty. */
int madvise(void *at, size_t bytes, int advice)
{
	void (*fn)(void) = meanwhile;

	meanwhile = NULL;
	if (fn)
		fn();
	return (int)syscall(SYS_madvise, at, bytes, advice);
}

static bool goes_on(void)
{
	uint64_t began = cw_now_ns();

	for (int i = 0; i < CALLS; i++) {
		errno = 17;
		start();
		if (errno != 17 || end() != ncclSuccess)
			return false;
	}
	return !cw_agent_is_armed() && cw_now_ns() - began < PATIENCE_NS;
}

static int status_of_child = -1;

static void fork_a_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(goes_on() ? 7 : 1);
	cr_assert_eq(waitpid(pid, &status_of_child, 0), pid);
}

Test(agent_start, a_child_forked_meanwhile_goes_on_without_the_agent)
{
	meanwhile = fork_a_child;
	(void)init(1);
	cr_assert_eq(WEXITSTATUS(status_of_child), 7, "%#x", (unsigned)status_of_child);
	cr_assert(cw_agent_is_armed());
}

static bool handler_went_on;

static void on_signal(int signal_number)
{
	(void)signal_number;
	handler_went_on = goes_on();
}

static void interrupt(void)
{
	(void)signal(SIGUSR1, on_signal);
	(void)raise(SIGUSR1);
}

Test(agent_start, a_signal_handler_waits_once_for_the_thread_it_interrupts)
{
	meanwhile = interrupt;
	(void)init(1);
	cr_assert(handler_went_on);
	cr_assert(cw_agent_is_armed(), "what was interrupted is finished all the same");
}
