/* SPDX-License-Identifier: Apache-2.0 */
/* The helper thread has its own descriptor table: the program cannot undo that. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/close_from.h"

#include "agent/base/descriptors.h"

static struct {
	int needed;
	struct cw_fd_identity id;
	pthread_barrier_t step;
	int in_thread, reached;
} t;

static void set_up(void)
{
	t.needed = cw_memfd("collwatch-test");
	cr_assert_geq(t.needed, 0);
	cr_assert_eq(cw_fd_identify(t.needed, &t.id), 0);
	cr_assert_eq(pthread_barrier_init(&t.step, NULL, 2), 0);
}

static int next_descriptor(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)close(fd);
	return fd;
}

static void *helper(void *arg)
{
	(void)pthread_barrier_wait(&t.step); /* as late as it likes */
	cw_fd_table_unshare();
	t.in_thread = open("/dev/null", O_RDONLY | O_CLOEXEC);
	t.reached = cw_fd_reopen(t.needed, &t.id, O_RDONLY);
	(void)pthread_barrier_wait(&t.step); /* the program looks */
	(void)pthread_barrier_wait(&t.step);
	return NULL;
}

/* Linux before 5.9, or a filter of system calls. */
static bool has_unshare(void)
{
	return syscall(SYS_close_range, ~0u, ~0u, 0) == 0;
}

static void run_helper(bool close_first, int *ret_seen, int before)
{
	pthread_t thread;

	cr_assert(cw_fd_table_can_unshare(t.needed, &t.id));
	cr_assert_eq(pthread_create(&thread, NULL, helper, NULL), 0);
	if (close_first)
		cr_assert_eq(close(t.needed), 0);
	(void)pthread_barrier_wait(&t.step);
	(void)pthread_barrier_wait(&t.step);
	*ret_seen = next_descriptor();
	(void)pthread_barrier_wait(&t.step);
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_eq(*ret_seen, before);
	cr_assert_eq(t.in_thread, 0, "an empty table");
}

Test(agent_descriptors, are_not_the_programs)
{
	int before, seen;

	if (!has_unshare())
		cr_skip_test("no close_range");
	set_up();
	before = next_descriptor();
	run_helper(false, &seen, before);
	cr_assert_eq(t.reached, 1, "through /proc, opened anew");
}

Test(agent_descriptors, are_not_the_programs_when_it_closes_all_before_the_thread_runs)
{
	int before, seen;

	if (!has_unshare())
		cr_skip_test("no close_range");
	set_up();
	before = next_descriptor();
	run_helper(true, &seen, before);
	cr_assert_eq(t.reached, -EBADF);
}

Test(agent_descriptors, stay_where_nothing_leads_back)
{
	set_up();
	cr_assert_eq(close(t.needed), 0);
	cr_assert_not(cw_fd_table_can_unshare(t.needed, &t.id));
	cr_assert_eq(cw_fd_reopen(t.needed, &t.id, O_RDONLY), -EBADF);
}
