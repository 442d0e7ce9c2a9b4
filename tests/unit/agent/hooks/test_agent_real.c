/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads look for the real NCCL at the same time; here it is the simulator's. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/base/next_dlsym.h"
#include "agent/hooks/real.h"

/* A look-up that never returns must run into this limit. */
#define PATIENCE_S 120

static void *nccl;

static void open_nccl(void)
{
	nccl = dlopen(CW_SIM_NCCL, RTLD_NOW);
	cr_assert_not_null(nccl, "%s", dlerror());
	(void)alarm(PATIENCE_S);
}

TestSuite(agent_real, .init = open_nccl);

static uintptr_t pointer_of(const char *name)
{
	/* With a dlsym of ours in the program, a sanitizer's runtime would call it, too early. */
	void *p = cw_next_dlsym_get()(nccl, name);

	cr_assert_not_null(p, "%s", name);
	return (uintptr_t)p;
}

static void is_whole(const struct cw_real *set)
{
	cr_assert_eq((uintptr_t)set->ncclAllReduce, pointer_of("pncclAllReduce"));
	cr_assert_eq((uintptr_t)set->ncclCommSplit, pointer_of("pncclCommSplit"));
	cr_assert_neq(set->code_start, 0);
}

/* As a thread leaves it that is interrupted, or that a fork leaves behind, in the middle. */
static void leave_half_done(struct cw_real *set, uintptr_t owner)
{
	memset(set, 0, sizeof(*set));
	*(uintptr_t *)&set->ncclAllReduce = owner;
	atomic_store(&set->owner, owner);
}

static void look_up(int signal_number)
{
	(void)signal_number;
	cw_real_resolve_linked();
}

Test(agent_real, a_signal_handler_does_not_wait_for_the_thread_it_interrupts)
{
	leave_half_done(&cw_real_sets[0], pointer_of("pncclAllReduce"));
	(void)signal(SIGUSR1, look_up);
	(void)raise(SIGUSR1);
	is_whole(cw_real_linked());
}

Test(agent_real, a_forked_child_does_not_wait_for_a_thread_of_its_parent)
{
	int status;
	pid_t pid;

	leave_half_done(&cw_real_sets[0], pointer_of("pncclAllReduce"));
	pid = fork();
	if (pid == 0) {
		(void)alarm(PATIENCE_S);
		is_whole(cw_real_linked());
		_exit(0);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%#x", (unsigned)status);
}

Test(agent_real, another_copy_is_waited_for_within_bounds)
{
	leave_half_done(&cw_real_sets[0], pointer_of("pncclBroadcast")); /* stands for another */
	(void)cw_real_linked();
	cr_assert_null(cw_real_sets[0].ncclCommSplit, "nothing of two copies is mixed");
}

Test(agent_real, a_handles_copy_takes_the_next_set_where_another_is_being_filled)
{
	unsigned index = (unsigned)cw_real_index("ncclAllReduce");

	is_whole(cw_real_linked());
	/* Set 0 differs by one function, and only this test knows that. */
	cw_real_sets[0].ncclAllReduce = cw_real_sets[0].ncclReduceScatter;
	leave_half_done(&cw_real_sets[1], pointer_of("pncclBroadcast"));
	cr_assert_eq(cw_real_set_of(nccl, index, (void *)pointer_of("pncclAllReduce")), 2);
	is_whole(&cw_real_sets[2]);
	cr_assert_null(cw_real_sets[1].ncclCommSplit);
}
