/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/host_wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/kernel/closed_files.h"
#include "model/facts.h"

/* Room for a line of /proc/PID/syscall, which has at most nine numbers. */
#define LINE_BYTES 256

#define FUTEX_OF(op) ((op)&FUTEX_CMD_MASK)

/* Calls that wait until the descriptor in their first argument has data or a connection. */
static const long calls[] = { SYS_read,    SYS_readv,  SYS_recvfrom,
			      SYS_recvmsg, SYS_accept, SYS_accept4 };

/* Calls that wait for any of several descriptors, for a signal, or for a time. */
static const long calls_for_any[] = {
#ifdef SYS_poll /* newer architectures lack these calls */
	SYS_poll,         SYS_epoll_wait,  SYS_pause,
#endif
	SYS_ppoll,        SYS_epoll_pwait, SYS_rt_sigtimedwait, SYS_nanosleep, SYS_clock_nanosleep,
#ifdef SYS_epoll_pwait2
	SYS_epoll_pwait2,
#endif
};

static bool is_select(long call)
{
#ifdef SYS_select
	if (call == SYS_select)
		return true;
#endif
	return call == SYS_pselect6;
}

static bool is_one_of(long call, const long *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (call == list[i])
			return true;
	return false;
}

int cw_host_wait_fd(const char *line)
{
	unsigned long first;
	long call;

	/*
	 * The line may also be "running". It is "-1 …" if the thread waits outside of a system
	 * call.
	 */
	if (sscanf(line, "%ld %lx", &call, &first) != 2 || first > INT_MAX)
		return -1;
	/*
	 * If the first argument of select() is 1, it waits only for descriptor 0. An interactive
	 * prompt does this.
	 */
	if (is_select(call) && first == 1)
		return 0;
	return is_one_of(call, calls, sizeof(calls) / sizeof(*calls)) ? (int)first : -1;
}

bool cw_host_wait_is_for_any(const char *line)
{
	unsigned long op;
	long call;

	if (sscanf(line, "%ld %*x %lx", &call, &op) != 2)
		return false;
	/* glibc's semaphores and conditions wait with a bitset, and its mutexes without one. */
	if (call == SYS_futex)
		return FUTEX_OF((int)op) == FUTEX_WAIT_BITSET;
	return is_select(call) ||
	       is_one_of(call, calls_for_any, sizeof(calls_for_any) / sizeof(*calls_for_any));
}

struct cw_host_lock cw_host_wait_lock(const char *line)
{
	const struct cw_host_lock none = { 0 };
	unsigned long address, op, timeout;
	long call;

	if (sscanf(line, "%ld %lx %lx %*x %lx", &call, &address, &op, &timeout) != 4 ||
	    call != SYS_futex || timeout)
		return none;
	switch (FUTEX_OF((int)op)) {
	case FUTEX_WAIT:
		return (struct cw_host_lock){ .address = address };
	case FUTEX_LOCK_PI:
		return (struct cw_host_lock){ .address = address, .is_inherited = true };
	default:
		return none;
	}
}

struct cw_host_futex cw_host_wait_futex(const char *line)
{
	unsigned long address, op, timeout;
	long call;

	if (strncmp(line, "running", 7) == 0)
		return (struct cw_host_futex){ .is_unsettled = true };
	if (sscanf(line, "%ld %lx %lx %*x %lx", &call, &address, &op, &timeout) != 4 ||
	    call != SYS_futex ||
	    (FUTEX_OF((int)op) != FUTEX_WAIT && FUTEX_OF((int)op) != FUTEX_WAIT_BITSET &&
	     FUTEX_OF((int)op) != FUTEX_LOCK_PI))
		return (struct cw_host_futex){ 0 };
	return (struct cw_host_futex){ .address = address,
				       .is_private = op & FUTEX_PRIVATE_FLAG,
				       .has_timeout = timeout != 0 };
}

bool cw_host_wait_is_interpreter(const struct cw_host_interpreter *interpreter,
				 const struct cw_host_futex *futex)
{
	return futex->is_private && futex->address >= interpreter->address &&
	       futex->address - interpreter->address < interpreter->bytes;
}

static struct cw_host_lock lock_of(const char *line, const struct cw_host_interpreter *interpreter)
{
	struct cw_host_futex futex = cw_host_wait_futex(line);

	/*
	 * Use the address of the interpreter's lock for all its futex words. A condition alternates
	 * between its words, and we must recognise the same wait.
	 */
	if (cw_host_wait_is_interpreter(interpreter, &futex))
		return (struct cw_host_lock){ .address = interpreter->address,
					      .is_interpreter = true };
	if (futex.is_unsettled)
		return (struct cw_host_lock){ .is_unsettled = true };
	return cw_host_wait_lock(line);
}

unsigned cw_host_wait_of(const char *link)
{
	if (strncmp(link, "socket:", 7) == 0)
		return CW_HOST_WAIT_SOCKET;
	if (strncmp(link, "/dev/pts/", 9) == 0 || strncmp(link, "/dev/tty", 8) == 0)
		return CW_HOST_WAIT_TTY;
	if (strncmp(link, "pipe:", 5) == 0 || strncmp(link, "anon_inode:[eventfd", 19) == 0)
		return CW_HOST_WAIT_QUEUE;
	return CW_HOST_WAIT_UNKNOWN;
}

static unsigned of_descriptor(int proc_fd, int fd)
{
	char link[64];

	if (cw_closed_files_read(proc_fd, CW_CLOSED_LINK, fd, link, sizeof(link)) < 0)
		return CW_HOST_WAIT_UNKNOWN;
	return cw_host_wait_of(link);
}

unsigned cw_host_wait_look(int proc_fd, const struct cw_host_interpreter *interpreter,
			   unsigned last, struct cw_host_lock *ret_lock)
{
	unsigned of_fd = CW_HOST_WAIT_UNKNOWN;
	char line[LINE_BYTES];
	ssize_t n;
	int fd;

	*ret_lock = (struct cw_host_lock){ 0 };
	n = cw_closed_files_read(proc_fd, CW_CLOSED_SYSCALL, 0, line, sizeof(line));
	ret_lock->is_late = n == -EAGAIN;
	if (n <= 0)
		return ret_lock->is_late ? last : CW_HOST_WAIT_UNKNOWN;
	*ret_lock = lock_of(line, interpreter);
	if (ret_lock->is_unsettled)
		return last;
	if (ret_lock->is_interpreter)
		return CW_HOST_WAIT_UNKNOWN;
	fd = cw_host_wait_fd(line);
	if (fd >= 0)
		of_fd = of_descriptor(proc_fd, fd);
	if (of_fd == CW_HOST_WAIT_UNKNOWN && cw_host_wait_is_for_any(line))
		return CW_HOST_WAIT_QUEUE;
	return of_fd;
}

int cw_host_wait_thread(int proc_fd, pid_t tid, struct cw_host_futex *ret)
{
	char line[LINE_BYTES];
	ssize_t n = cw_closed_files_read(proc_fd, CW_CLOSED_THREAD_SYSCALL, (int)tid, line,
					 sizeof(line));

	if (n <= 0)
		return n < 0 ? (int)n : -ENODATA;
	*ret = cw_host_wait_futex(line);
	return 0;
}
