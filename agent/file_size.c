/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/file_size.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <time.h>
#include <unistd.h>

struct held {
	sigset_t old_mask;
	bool is_programs; /* one was pending before: it is not ours to take */
};

static void hold(struct held *ret)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	(void)pthread_sigmask(SIG_BLOCK, &set, &ret->old_mask);
	/* What was not blocked cannot have been pending. */
	ret->is_programs = sigismember(&ret->old_mask, SIGXFSZ) == 1 && sigpending(&set) == 0 &&
			   sigismember(&set, SIGXFSZ) == 1;
}

/* The kernel sends it to the thread that wrote, and only together with EFBIG. */
static void let_go(const struct held *held, bool is_too_large)
{
	static const struct timespec at_once;
	int saved_errno = errno;
	sigset_t set;

	if (is_too_large && !held->is_programs) {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, SIGXFSZ);
		while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR)
			;
	}
	(void)pthread_sigmask(SIG_SETMASK, &held->old_mask, NULL);
	errno = saved_errno;
}

ssize_t cw_write(int fd, const void *from, size_t bytes)
{
	struct held held;
	ssize_t n;

	hold(&held);
	n = write(fd, from, bytes);
	let_go(&held, n < 0 && errno == EFBIG);
	return n;
}

int cw_ftruncate(int fd, off_t bytes)
{
	struct held held;
	int r;

	hold(&held);
	r = ftruncate(fd, bytes);
	let_go(&held, r < 0 && errno == EFBIG);
	return r;
}
