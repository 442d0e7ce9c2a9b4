/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/base/file_size.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct held {
	sigset_t old_mask;
	/* Signals that were already pending before we blocked them. They belong to the program. */
	sigset_t programs;
};

static void hold(struct held *ret)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	(void)sigaddset(&set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &set, &ret->old_mask);
	if (sigpending(&ret->programs) < 0)
		(void)sigfillset(&ret->programs);
}

/*
 * Returns the signal that the kernel sends to the writing thread together with this error; 0 =
 * none. A signal that the program did not block cannot have been pending for the thread before. It
 * may have been pending for the process. let_go() then leaves it to the program.
 */
static int signal_of(int error)
{
	return error == EFBIG ? SIGXFSZ : error == EPIPE ? SIGPIPE : 0;
}

static void let_go(const struct held *held, int error)
{
	static const struct timespec at_once;
	int saved_errno = errno, signal_number = signal_of(error);
	sigset_t set;

	if (signal_number && sigismember(&held->programs, signal_number) != 1) {
		(void)sigemptyset(&set);
		(void)sigaddset(&set, signal_number);
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
	let_go(&held, n < 0 ? errno : 0);
	return n;
}

int cw_ftruncate(int fd, off_t bytes)
{
	struct held held;
	int r;

	hold(&held);
	r = ftruncate(fd, bytes);
	let_go(&held, r < 0 ? errno : 0);
	return r;
}
