/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/base/file_size.h"

#define LIMIT 4096

static int limited_file(void)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	char path[] = "/tmp/cw-file-size-XXXXXX";
	int fd = mkstemp(path);

	cr_assert(fd >= 0);
	(void)unlink(path);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	(void)signal(SIGXFSZ, SIG_DFL);
	return fd;
}

/* Both ways to grow a file, by one byte too much. */
static void grow_too_far(int fd)
{
	char bytes[LIMIT] = "";

	cr_assert_eq(cw_ftruncate(fd, 0), 0);
	cr_assert_eq(lseek(fd, 0, SEEK_SET), 0);
	cr_assert_eq(cw_write(fd, bytes, sizeof(bytes)), sizeof(bytes));
	errno = 0;
	cr_assert_eq(cw_write(fd, bytes, 1), -1);
	cr_assert_eq(errno, EFBIG);
	errno = 0;
	cr_assert_eq(cw_ftruncate(fd, LIMIT + 1), -1);
	cr_assert_eq(errno, EFBIG);
}

static bool is_pending_of(int signal_number)
{
	sigset_t set;

	cr_assert_eq(sigpending(&set), 0);
	return sigismember(&set, signal_number);
}

static bool is_pending(void)
{
	return is_pending_of(SIGXFSZ);
}

static bool is_blocked(void)
{
	sigset_t set;

	cr_assert_eq(sigprocmask(SIG_BLOCK, NULL, &set), 0);
	return sigismember(&set, SIGXFSZ);
}

static void set_blocked(int how)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	cr_assert_eq(sigprocmask(how, &set, NULL), 0);
}

Test(agent_file_size, a_file_that_may_not_grow_ends_nobody)
{
	int fd = limited_file();

	set_blocked(SIG_UNBLOCK);
	grow_too_far(fd);
	cr_assert_not(is_blocked());
	cr_assert_not(is_pending());
	(void)close(fd);
}

Test(agent_file_size, nothing_is_left_pending_where_it_is_blocked)
{
	int fd = limited_file();

	set_blocked(SIG_BLOCK);
	grow_too_far(fd);
	cr_assert(is_blocked());
	cr_assert_not(is_pending());
	(void)close(fd);
}

Test(agent_file_size, the_programs_own_signal_stays_pending)
{
	int fd = limited_file();

	set_blocked(SIG_BLOCK);
	cr_assert_eq(raise(SIGXFSZ), 0);
	grow_too_far(fd);
	cr_assert(is_blocked());
	cr_assert(is_pending());
	(void)close(fd);
}

Test(agent_file_size, the_programs_own_signal_still_arrives, .signal = SIGXFSZ)
{
	int fd = limited_file();

	grow_too_far(fd);
	(void)!write(fd, "x", lseek(fd, LIMIT, SEEK_SET) == LIMIT);
	(void)close(fd);
}

Test(agent_file_size, a_pipe_that_nobody_reads_ends_nobody)
{
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)close(ends[0]);
	errno = 0;
	cr_assert_eq(cw_write(ends[1], "x", 1), -1);
	cr_assert_eq(errno, EPIPE);
	cr_assert_not(is_pending_of(SIGPIPE));
	(void)close(ends[1]);
}
