/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/close_from.h"
#include "common/pidfd.h"
#include "proto/run_report.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434 /* Linux 5.3; the same on all architectures */
#endif

/* ---- reports of agents ---- */

/* True if a `run` above this one, on the same host, still receives datagrams under this name. */
static bool is_received(const char *name)
{
	_cleanup_(closep) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un to;
	socklen_t len = cw_run_address(name, &to);

	return fd >= 0 && len && connect(fd, (const struct sockaddr *)&to, len) == 0;
}

void run_watch_open(struct run_watch *w)
{
	const char *above = getenv(CW_RUN_VARIABLE);
	_cleanup_(closep) int fd = -1;
	char name[CW_RUN_NAME_MAX + 1];
	struct sockaddr_un address;
	static const int on = 1;
	uint64_t number;
	socklen_t len;

	*w = (struct run_watch){ .fd = -1, .program = -1 };
	if (above && is_received(above))
		return;
	if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != sizeof(number))
		return;
	(void)snprintf(name, sizeof(name), "collwatch-run-%016" PRIx64, number);
	len = cw_run_address(name, &address);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&address, len) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 ||
	    setenv(CW_RUN_VARIABLE, name, 1) < 0)
		return;
	w->fd = steal_fd(&fd);
}

/* Reads one report. Returns false if there is no further report. */
static bool read_one(struct run_watch *w)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct cw_run_report report = { .magic = 0 };
	struct iovec iov = { &report, sizeof(report) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct ucred cred = { .uid = (uid_t)-1 };
	struct cmsghdr *c;
	ssize_t n = recvmsg(w->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return errno == EINTR;
	for (c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c))
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&cred, CMSG_DATA(c), sizeof(cred));
	if (n != sizeof(report) || report.magic != CW_RUN_MAGIC)
		return true;
	w->has_called = true;
	/*
	 * We accept reports only from our own user and root. The names of abstract sockets are
	 * public, so another user could make us print a false line.
	 */
	if (report.error > 0 && (cred.uid == geteuid() || cred.uid == 0)) {
		w->n_failed++;
		w->failed = cred.pid;
		w->error = report.error;
	}
	return true;
}

void run_watch_read(struct run_watch *w)
{
	while (w->fd >= 0 && read_one(w))
		;
}

/* ---- the line at the end ---- */

static const char *next_step(int error)
{
	switch (error) {
	case EFBIG:
		return "raise the file size limit (ulimit -f)";
	case EMFILE:
		return "raise the limit of open files (ulimit -n)";
	case ENFILE:
	case ENOMEM:
		return "free memory or descriptors on this host";
	default:
		return "allow memfd_create, ftruncate and mmap in its sandbox";
	}
}

void run_watch_say(struct run_watch *w)
{
	char others[64] = "";

	run_watch_read(w);
	if (w->n_failed > 1)
		(void)snprintf(others, sizeof(others), " and %u more process%s", w->n_failed - 1,
			       w->n_failed == 2 ? "" : "es");
	if (w->n_failed)
		fprintf(stderr,
			"collwatch: pid %d%s called NCCL and %s not watched: the agent could not "
			"make a record: %s; %s\n",
			(int)w->failed, others, w->n_failed > 1 ? "were" : "was",
			strerror(w->error), next_step(w->error));
	else if (w->fd >= 0 && !w->has_called)
		/* Agents report through an abstract socket, which is in one network namespace. */
		fputs("collwatch: no process reported an NCCL call on this host; gloo, MPI, a "
		      "statically linked NCCL and a container with its own network are not visible\n",
		      stderr);
}

void run_watch_fini(struct run_watch *w)
{
	closep(&w->fd);
	closep(&w->program);
	w->fd = w->program = -1;
}

/* ---- the process that stays behind ---- */

/*
 * Keeps standard error, the socket and the pidfd, and closes all other descriptors. If we kept a
 * pipe open, its reader would wait for us.
 */
static void keep_descriptors(struct run_watch *w, int *from_exec)
{
	int kept[] = { w->fd, w->program, *from_exec };

	for (int i = 0; i < 3; i++)
		kept[i] = fcntl(kept[i], F_DUPFD_CLOEXEC, 16);
	if (kept[0] < 0 || kept[1] < 0 || kept[2] < 0)
		_exit(0);
	for (int i = 0; i < 3; i++)
		if (dup2(kept[i], 3 + i) < 0)
			_exit(0);
	(void)close(STDIN_FILENO);
	(void)close(STDOUT_FILENO);
	(void)cw_close_from(6);
	w->fd = 3;
	w->program = 4;
	*from_exec = 5;
}

static bool was_executed(int from_exec)
{
	char byte;
	ssize_t n;

	while ((n = read(from_exec, &byte, 1)) < 0 && errno == EINTR)
		;
	return n == 0;
}

__attribute__((noreturn)) static void stay(struct run_watch *w, int from_exec)
{
	sigset_t all;

	(void)setsid(); /* the terminal's signals are for the program */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	(void)chdir("/"); /* so that the program's directory can be unmounted */
	keep_descriptors(w, &from_exec);
	if (!was_executed(from_exec))
		_exit(0);
	(void)close(from_exec);
	while (!cw_pidfd_has_ended(w->program)) {
		struct pollfd fds[] = { { .fd = w->fd, .events = POLLIN },
					{ .fd = w->program, .events = POLLIN } };

		(void)poll(fds, 2, -1);
		run_watch_read(w);
	}
	run_watch_say(w);
	_exit(0);
}

int run_watch_stay_behind(struct run_watch *w)
{
	_cleanup_(closep) int to = -1;
	int ends[2];
	pid_t pid;

	/*
	 * In a container, the first process adopts orphans. This process is the first one, so the
	 * program would get an unexpected child.
	 */
	if (w->fd < 0 || getpid() == 1)
		return -1;
	w->program = (int)syscall(SYS_pidfd_open, getpid(), 0);
	if (w->program < 0 || pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	to = ends[1];
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)close(to);
		if (fork() == 0)
			stay(w, ends[0]);
		_exit(0);
	}
	(void)close(ends[0]);
	if (pid < 0)
		return -1;
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return steal_fd(&to);
}
