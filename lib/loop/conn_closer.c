/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child of the fork server closes the connections. It gets copies of their descriptors in one
 * message and confirms the message with a byte. Then we close our own copies and our end of the
 * socket. The child sees the end of the socket and exits, so its copies are the last ones. In any
 * other order our copies could be the last, and our close() could linger.
 *
 * We give connections to one child at a time. If that child does not confirm within TAKE_S, we kill
 * it and give its connections to another child.
 */
#include "loop/conn_closer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/unixsock.h"
#include "loop/events.h"
#include "loop/fork_server.h"

#define FREE_WAIT_MS 200
/*
 * The most connections per message, which is the kernel's limit (SCM_MAX_FD). More in one go would
 * be slow: with thousands of descriptors in flight, the kernel makes this process wait for its
 * search for cycles of sockets.
 */
#define BATCH 253
/* Seconds in which a child must confirm a message. */
#define TAKE_S 3

struct child {
	struct cw_conn_closer *closer;
	/* The running request for this child. NULL = the child exists, or this entry is free. */
	struct cw_fork_request *request;
	int fd, pidfd; /* fd = -1: we have closed it, and the child ends */
	struct event *taken, *ended;
	unsigned n; /* connections that we sent and the child has not confirmed */
	int fds[BATCH];
};

/* A request to the fork server takes two descriptors, and its answer takes one. */
#define RESERVE 3u

struct cw_conn_closer {
	struct event_base *base;
	struct cw_fork_server *forks;
	struct event *timer;
	/*
	 * The waiting connections. Their list needs no limit of its own: each entry is a descriptor
	 * of this process, and listeners pause before those run out.
	 */
	int *fds;
	size_t n, cap;
	struct child children[CW_CONN_CLOSER_CHILDREN];
	/* Descriptors for the next child; -1 = free. The waiting connections may have the rest. */
	int reserve[RESERVE];
	struct child *giving; /* the child that is taking connections; NULL = none */
	uint64_t total;
};

union descriptors {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(BATCH * sizeof(int))];
};

/* ---- children ---- */

int cw_conn_closer_child(int fd)
{
	union descriptors control;
	uint32_t n = 0;
	struct iovec iov = { .iov_base = &n, .iov_len = sizeof(n) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	const struct cmsghdr *c;
	char byte;

	if (recvmsg(fd, &msg, MSG_CMSG_CLOEXEC) != sizeof(n))
		return 1;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_len != CMSG_LEN(n * sizeof(int)))
		return 1; /* this process had no free number for some of the descriptors */
	if (send(fd, "t", 1, MSG_NOSIGNAL) != 1)
		return 1;
	return (int)recv(fd, &byte, 1, 0); /* returns when our parent has closed its end */
}

static void start_timer(struct cw_conn_closer *c)
{
	static const struct timeval soon = { .tv_usec = CW_CONN_CLOSER_EVERY_MS * 1000 };

	if (c->n && !event_pending(c->timer, EV_TIMEOUT, NULL) && event_add(c->timer, &soon) < 0)
		log_err("connections wait to be closed: out of memory");
}

static bool grow(struct cw_conn_closer *c)
{
	size_t cap = c->cap ? 2 * c->cap : 64;
	int *fds;

	if (c->n < c->cap)
		return true;
	fds = realloc(c->fds, cap * sizeof(*fds));
	if (!fds)
		return false;
	c->fds = fds;
	c->cap = cap;
	return true;
}

static void wait_for_child(struct cw_conn_closer *c, int fd)
{
	if (grow(c))
		c->fds[c->n++] = fd;
	else /* leave the connection open: a blocking close() would be worse */
		log_err("a connection cannot be closed: out of memory");
}

/*
 * Gives no more connections to the child. Connections that it has not confirmed go to another
 * child.
 */
static void end_giving(struct child *child)
{
	struct cw_conn_closer *c = child->closer;

	for (; child->n > 0; child->n--)
		wait_for_child(c, child->fds[child->n - 1]);
	closep(&child->fd);
	child->fd = -1;
	event_freep(&child->taken);
	c->giving = NULL;
	start_timer(c);
}

static void hold_reserve(struct cw_conn_closer *c)
{
	for (unsigned i = 0; i < RESERVE; i++)
		if (c->reserve[i] < 0)
			c->reserve[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void free_reserve(struct cw_conn_closer *c)
{
	for (unsigned i = 0; i < RESERVE; i++) {
		closep(&c->reserve[i]);
		c->reserve[i] = -1;
	}
}

static void free_place(struct child *child)
{
	if (child->closer->giving == child)
		end_giving(child);
	event_freep(&child->ended);
	closep(&child->pidfd);
	*child = (struct child){ .closer = child->closer, .fd = -1, .pidfd = -1 };
	hold_reserve(child->closer);
}

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	free_place(child);
	start_timer(child->closer);
}

static void release(struct cw_conn_closer *c);

static void on_taken(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;
	char byte;

	if (what & EV_TIMEOUT)
		(void)syscall(SYS_pidfd_send_signal, child->pidfd, SIGKILL, NULL, 0u);
	else if (recv(child->fd, &byte, 1, 0) == 1)
		for (; child->n > 0; child->n--)
			(void)close(child->fds[child->n - 1]); /* the child has the last copy */
	end_giving(child);
	release(child->closer); /* gives away the connections that came in between */
}

/*
 * Sends the newest connections to the child, at most BATCH. The child gets all connections of the
 * message or none.
 */
static int give(struct child *child)
{
	struct cw_conn_closer *c = child->closer;
	union descriptors control = { 0 };
	uint32_t n = c->n < BATCH ? (uint32_t)c->n : BATCH;
	struct iovec iov = { .iov_base = &n, .iov_len = sizeof(n) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control.align), &c->fds[c->n - n], n * sizeof(int));
	if (sendmsg(child->fd, &msg, MSG_NOSIGNAL) != sizeof(n))
		return -errno;
	memcpy(child->fds, &c->fds[c->n - n], n * sizeof(int));
	child->n = n;
	c->n -= n;
	return 0;
}

static int watch(struct child *child)
{
	static const struct timeval limit = { .tv_sec = TAKE_S };
	struct event_base *base = child->closer->base;

	child->ended = event_new(base, child->pidfd, EV_READ, on_ended, child);
	child->taken = event_new(base, child->fd, EV_READ, on_taken, child);
	return child->ended && child->taken && event_add(child->ended, NULL) == 0 &&
			       event_add(child->taken, &limit) == 0
		       ? 0
		       : -ENOMEM;
}

static void on_forked(int r, int fd, int pidfd, void *user)
{
	struct child *child = user;

	child->request = NULL;
	child->fd = fd;
	child->pidfd = pidfd;
	if (r == 0)
		r = watch(child);
	if (r == 0 && child->closer->n)
		r = give(child);
	if (r < 0)
		free_place(child); /* the child sees its socket close and ends */
}

static struct child *free_child(struct cw_conn_closer *c)
{
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++)
		if (!c->children[i].request && c->children[i].pidfd < 0)
			return &c->children[i];
	return NULL;
}

static void release(struct cw_conn_closer *c)
{
	struct child *child = c->n && !c->giving ? free_child(c) : NULL;

	if (!child)
		return; /* we try again when a child has confirmed or ended */
	free_reserve(c);
	if (cw_fork_server_ask(c->forks, cw_conn_closer_child, on_forked, child, &child->request) ==
	    0) {
		c->giving = child;
	} else {
		hold_reserve(c);
		start_timer(c);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	release(arg);
}

/* ---- connections ---- */

void cw_conn_closer_close(struct cw_conn_closer *c, int fd)
{
	if (!cw_unix_has_descriptors(fd)) {
		(void)close(fd); /* if close() fails, we can do nothing */
		return;
	}
	(void)shutdown(fd, SHUT_RDWR); /* the peer sees the end of the connection now */
	c->total++;
	wait_for_child(c, fd);
	if (!c->giving)
		start_timer(c);
}

uint32_t cw_conn_closer_waiting(const struct cw_conn_closer *c)
{
	return (uint32_t)(c->n + (c->giving ? c->giving->n : 0));
}

uint64_t cw_conn_closer_total(const struct cw_conn_closer *c)
{
	return c->total;
}

int cw_conn_closer_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_conn_closer **ret)
{
	struct cw_conn_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->base = base;
	c->forks = forks;
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++)
		c->children[i] = (struct child){ .closer = c, .fd = -1, .pidfd = -1 };
	c->timer = evtimer_new(base, on_timer, c);
	if (!c->timer) {
		free(c);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < RESERVE; i++)
		c->reserve[i] = -1;
	hold_reserve(c); /* on failure, a later attempt holds them */
	*ret = c;
	return 0;
}

/* ---- the end ---- */

/*
 * Runs in the last child, which is a bare clone. Only calls that are async-signal-safe are allowed
 * here.
 */
static void run_last_child(const int go[2])
{
	char c;

	(void)close(go[1]);
	while (read(go[0], &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

/*
 * Closes the last connections. The loop has ended, so we cannot use the fork server. We fork this
 * process. The fork has copies of the connections and closes them by its exit.
 */
static void release_last(struct cw_conn_closer *c)
{
	struct pollfd ended = { .events = POLLIN };
	int go[2];
	pid_t pid;

	if (!c->n || pipe2(go, O_CLOEXEC) < 0)
		return; /* the end of this process closes the connections and does not linger */
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		run_last_child(go);
	for (; pid > 0 && c->n > 0; c->n--)
		(void)close(c->fds[c->n - 1]); /* the child has the last copy */
	(void)close(go[0]);
	(void)close(go[1]); /* the child sees the end of the pipe and exits */
	if (pid < 0)
		return;
	ended.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	(void)poll(&ended, 1, FREE_WAIT_MS); /* if the child hangs, we leave it to init */
	closep(&ended.fd);
	(void)waitpid(pid, NULL, WNOHANG);
}

struct cw_conn_closer *cw_conn_closer_free(struct cw_conn_closer *c)
{
	if (!c)
		return NULL;
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++) {
		struct child *child = &c->children[i];

		child->request = cw_fork_request_cancel(child->request);
		free_place(child);
	}
	free_reserve(c);
	release_last(c);
	event_free(c->timer);
	free(c->fds);
	free(c);
	return NULL;
}
