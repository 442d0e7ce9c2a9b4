/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/evidence/traced_fixture.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/evidence/stack_take.h"
#include "tests/support/evidence/stack_fixture.h"

static struct cw_stack_copy *copy;

void traced_tear_down(void)
{
	copy = cw_stack_take_free(copy);
}

struct cw_stack_copy *traced_copy(void)
{
	traced_tear_down();
	cr_assert_eq(cw_stack_take_copy(target, 0, &copy), 0);
	copy->budget_ns = 20 * CW_NS_PER_S;
	return copy;
}

pid_t traced_start(int (*run)(void *), void *arg)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || raise(SIGSTOP) != 0)
			_exit(98);
		_exit(run(arg));
	}
	cr_assert_eq(waitpid(pid, &status, __WALL), pid);
	cr_assert(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP, "status %x", status);
	cr_assert_eq(ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD), 0);
	return pid;
}

/* True if the kernel killed the reader because it held a thread for longer than its limit. */
static bool was_cut_short(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

bool traced_run(pid_t pid, unsigned n, long *ret_call)
{
	struct __ptrace_syscall_info info;
	int status, sig = 0;

	for (unsigned i = 0; i < n;) {
		cr_assert_eq(ptrace(PTRACE_SYSCALL, pid, NULL, sig), 0);
		cr_assert_eq(waitpid(pid, &status, __WALL), pid);
		if (!WIFSTOPPED(status)) {
			cr_assert(was_cut_short(status) ||
					  (WIFEXITED(status) && WEXITSTATUS(status) == 0),
				  "status %x", status);
			*ret_call = was_cut_short(status) ? TRACED_CUT_SHORT : TRACED_ENDED;
			return false;
		}
		if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
			sig = 0;
			i++;
		} else {
			sig = WSTOPSIG(status);
		}
	}
	*ret_call = -1;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
	    info.op == PTRACE_SYSCALL_INFO_ENTRY)
		*ret_call = (long)info.entry.nr;
	return true;
}
