/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child has the connections because it is a fork. It ends once this process has closed its own
 * copies, which it learns from a pipe: the other way round, the last ones would be those here.
 */
#include "daemon/system/conn_closer.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/unixsock.h"

#define FREE_WAIT_MS 200

struct child {
	struct cw_conn_closer *closer;
	pid_t pid; /* 0 = unused */
	int pidfd;
	struct event *ended;
};

struct cw_conn_closer {
	struct event_base *base;
	struct event *timer;
	/* No limit of its own: each is one of this process's descriptors, and listeners pause where
	 * those end. */
	int *fds;
	size_t n, cap;
	struct child children[CW_CONN_CLOSER_CHILDREN];
	uint64_t total;
};

/* ---- children ---- */

static void reap(struct child *child)
{
	(void)waitpid(child->pid, NULL, WNOHANG); /* it has ended, or is left to init */
	if (child->ended)
		event_free(child->ended);
	closep(&child->pidfd);
	*child = (struct child){ .closer = child->closer, .pidfd = -1 };
}

static void start_timer(struct cw_conn_closer *c)
{
	static const struct timeval soon = { .tv_usec = CW_CONN_CLOSER_EVERY_MS * 1000 };

	if (c->n && !event_pending(c->timer, EV_TIMEOUT, NULL) && event_add(c->timer, &soon) < 0)
		log_err("connections wait to be closed: out of memory");
}

static void on_ended(evutil_socket_t fd, short what, void *arg)
{
	struct child *child = arg;

	reap(child);
	start_timer(child->closer);
}

/* Calls that are async-signal-safe only: it is a bare clone. */
static void run_child(const int go[2])
{
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* without it the pipe tells */
	(void)close(go[1]);
	while (read(go[0], &c, 1) < 0 && errno == EINTR)
		;
	_exit(0);
}

static struct child *free_child(struct cw_conn_closer *c)
{
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++)
		if (!c->children[i].pid)
			return &c->children[i];
	return NULL;
}

static void watch(struct child *child)
{
	child->pidfd = (int)syscall(SYS_pidfd_open, child->pid, 0);
	if (child->pidfd >= 0)
		child->ended =
			event_new(child->closer->base, child->pidfd, EV_READ, on_ended, child);
	if (child->ended && event_add(child->ended, NULL) == 0)
		return;
	(void)waitpid(child->pid, NULL, 0); /* nobody would be told: it ends at once */
	reap(child);
}

static void release(struct cw_conn_closer *c)
{
	struct child *child = c->n ? free_child(c) : NULL;
	int go[2];

	if (!child)
		return; /* tried again when one of them ends */
	if (pipe2(go, O_CLOEXEC) < 0) {
		start_timer(c);
		return;
	}
	child->pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (child->pid == 0)
		run_child(go);
	for (; child->pid > 0 && c->n > 0; c->n--)
		(void)close(c->fds[c->n - 1]); /* not the last copy */
	(void)close(go[0]);
	(void)close(go[1]); /* from now on the child ends */
	if (child->pid < 0) {
		child->pid = 0;
		start_timer(c);
		return;
	}
	watch(child);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	release(arg);
}

/* ---- connections ---- */

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

void cw_conn_closer_close(struct cw_conn_closer *c, int fd)
{
	if (!cw_unix_has_descriptors(fd)) {
		(void)close(fd); /* nothing can be done about it */
		return;
	}
	(void)shutdown(fd, SHUT_RDWR); /* the other end sees it now */
	c->total++;
	if (!grow(c)) {
		log_err("a connection cannot be closed: out of memory");
		return; /* it stays open: to wait for it is worse */
	}
	c->fds[c->n++] = fd;
	start_timer(c);
}

uint32_t cw_conn_closer_waiting(const struct cw_conn_closer *c)
{
	return (uint32_t)c->n;
}

uint64_t cw_conn_closer_total(const struct cw_conn_closer *c)
{
	return c->total;
}

int cw_conn_closer_new(struct event_base *base, struct cw_conn_closer **ret)
{
	struct cw_conn_closer *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->base = base;
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++)
		c->children[i] = (struct child){ .closer = c, .pidfd = -1 };
	c->timer = evtimer_new(base, on_timer, c);
	if (!c->timer) {
		free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

struct cw_conn_closer *cw_conn_closer_free(struct cw_conn_closer *c)
{
	if (!c)
		return NULL;
	release(c);
	for (unsigned i = 0; i < CW_CONN_CLOSER_CHILDREN; i++) {
		struct child *child = &c->children[i];
		struct pollfd ended = { .fd = child->pidfd, .events = POLLIN };

		if (!child->pid)
			continue;
		(void)poll(&ended, 1, FREE_WAIT_MS); /* one that hangs is left to init */
		reap(child);
	}
	event_free(c->timer);
	free(c->fds);
	free(c);
	return NULL;
}
