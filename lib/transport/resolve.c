/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child process writes one record per address into a pipe. A record is smaller than PIPE_BUF, so
 * each read returns whole records. At the deadline we kill the child and wait briefly for its end.
 * If the child survives SIGKILL, we note it in a small table. While this table is full, we start no
 * further child.
 */
#include "transport/resolve.h"

#include <cap-ng.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/address.h"
#include "common/cleanup.h"
#include "common/close_from.h"
#include "loop/events.h"

/*
 * Maximum number of addresses per host: two address families, and perhaps two network interfaces.
 */
#define MAX_ADDRESSES 4u
/*
 * Time that we wait for a killed child. A child in poll() dies at once. A child that waits for a
 * dead file system does not.
 */
#define KILL_WAIT_MS 50
/*
 * Size of the table of children that survived SIGKILL. While the table is full, we start no further
 * child.
 */
#define MAX_LEFT 4u

/*
 * The record that the child writes for one address. It is smaller than PIPE_BUF, so it arrives
 * whole.
 */
struct answer {
	uint32_t tag;
	int32_t error; /* result of getaddrinfo() */
	struct sockaddr_storage address;
};

struct cw_resolve {
	pid_t child;
	int fd;
	struct event *event, *timer;
	cw_resolve_fn fn;
	cw_resolve_done_fn done;
	void *user;
};

/*
 * Pids of children that we killed and that have not ended yet; 0 = free. The table is global,
 * because children belong to the process.
 */
static pid_t left[MAX_LEFT];

/* ---- the child ---- */

static void put(int fd, const struct answer *a)
{
	if (write(fd, a, sizeof(*a)) != sizeof(*a))
		_exit(1); /* the daemon has closed the pipe */
}

static void answer_one(int fd, const struct cw_resolve_name *name)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_ADDRCONFIG };
	struct answer a = { .tag = name->tag };
	unsigned n_names = 0, max = name->max ? name->max : MAX_ADDRESSES;
	struct addrinfo *list = NULL, *i;

	a.error = getaddrinfo(name->host, NULL, &hints, &list);
	if (a.error)
		list = NULL;
	for (i = list; i && n_names < max; i = i->ai_next) {
		if (!cw_sockaddr_len(i->ai_addr) || i->ai_addrlen > sizeof(a.address))
			continue;
		memcpy(&a.address, i->ai_addr, i->ai_addrlen);
		/* The port has the same offset for IPv4 and IPv6. */
		((struct sockaddr_in *)&a.address)->sin_port = htons(name->port);
		put(fd, &a);
		n_names++;
	}
	if (n_names == 0) {
		a.error = a.error ? a.error : EAI_NONAME;
		put(fd, &a);
	}
	if (list)
		freeaddrinfo(list);
}

static _Noreturn void cw_run_child(int fd, const struct cw_resolve_name *names, unsigned n_names)
{
	static const int to_default[] = { SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGCHLD };

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	/*
	 * Make the child undumpable, because its memory is a copy of the daemon's. Another process
	 * of its user could otherwise read it once the child has no capabilities.
	 */
	(void)prctl(PR_SET_DUMPABLE, 0);
	for (size_t i = 0; i < sizeof(to_default) / sizeof(to_default[0]); i++)
		(void)signal(to_default[i], SIG_DFL);
	/*
	 * Close the daemon's sockets. Otherwise the child would hold them open after the daemon has
	 * ended.
	 */
	if (dup2(fd, 3) < 0)
		_exit(1);
	/* Fails without /proc; the sockets then stay open until the child ends. */
	(void)cw_close_from(4);
	/* Drop all capabilities, because the child needs none. */
	capng_clear(CAPNG_SELECT_CAPS);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		_exit(1);
	for (unsigned i = 0; i < n_names; i++)
		answer_one(3, &names[i]);
	_exit(0);
}

/* ---- the daemon's side ---- */

static void reap_left(void)
{
	for (unsigned i = 0; i < MAX_LEFT; i++)
		if (left[i] && waitpid(left[i], NULL, WNOHANG) != 0)
			left[i] = 0;
}

static bool has_place_left(void)
{
	for (unsigned i = 0; i < MAX_LEFT; i++)
		if (!left[i])
			return true;
	return false;
}

static void leave(pid_t child)
{
	for (unsigned i = 0; i < MAX_LEFT; i++) {
		if (!left[i]) {
			left[i] = child;
			return;
		}
	}
}

static void end_child(struct cw_resolve *r)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };

	if (r->child <= 0)
		return;
	(void)kill(r->child, SIGKILL);
	p.fd = (int)syscall(SYS_pidfd_open, r->child, 0);
	/*
	 * Wait for the end. Without a pidfd we cannot wait, and note the child as one that did not
	 * end.
	 */
	if (p.fd >= 0)
		(void)poll(&p, 1, KILL_WAIT_MS);
	closep(&p.fd);
	if (waitpid(r->child, NULL, WNOHANG) == 0)
		leave(r->child);
	r->child = 0;
}

static void finish(struct cw_resolve *r)
{
	(void)event_del(r->event);
	(void)event_del(r->timer);
	end_child(r);
	r->done(r->user); /* may free r */
}

static void on_limit(evutil_socket_t fd, short what, void *user)
{
	finish(user);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
	struct cw_resolve *r = user;
	struct answer a;
	ssize_t n;

	while ((n = read(r->fd, &a, sizeof(a))) == sizeof(a)) {
		if (a.error)
			r->fn(a.tag, NULL, gai_strerror(a.error), r->user);
		else
			r->fn(a.tag, (struct sockaddr *)&a.address, NULL, r->user);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	finish(r);
}

static int start_child(struct cw_resolve *r, const struct cw_resolve_name *names, unsigned n_names)
{
	int fds[2];

	reap_left();
	if (!has_place_left())
		return -EAGAIN;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	r->fd = fds[0];
	r->child = fork();
	if (r->child == 0)
		cw_run_child(fds[1], names, n_names);
	(void)close(fds[1]);
	if (r->child < 0)
		return -errno;
	return fcntl(r->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

int cw_resolve_start_within(struct event_base *base, int64_t limit_ns,
			    const struct cw_resolve_name *names, unsigned n_names, cw_resolve_fn fn,
			    cw_resolve_done_fn done, void *user, struct cw_resolve **ret)
{
	const struct timeval limit = { .tv_sec = limit_ns / CW_NS_PER_S,
				       .tv_usec = limit_ns % CW_NS_PER_S / 1000 };
	struct cw_resolve *r = calloc(1, sizeof(*r));
	int e;

	if (!r)
		return -ENOMEM;
	r->fd = -1;
	r->fn = fn;
	r->done = done;
	r->user = user;
	e = start_child(r, names, n_names);
	if (e >= 0) {
		r->event = event_new(base, r->fd, EV_READ | EV_PERSIST, on_readable, r);
		r->timer = event_new(base, -1, 0, on_limit, r);
		if (!r->event || !r->timer || event_add(r->event, NULL) < 0 ||
		    event_add(r->timer, &limit) < 0)
			e = -ENOMEM;
	}
	if (e < 0) {
		cw_resolve_free(r);
		return e;
	}
	*ret = r;
	return 0;
}

int cw_resolve_start(struct event_base *base, const struct cw_resolve_name *names, unsigned n_names,
		     cw_resolve_fn fn, cw_resolve_done_fn done, void *user, struct cw_resolve **ret)
{
	return cw_resolve_start_within(base, CW_RESOLVE_NS, names, n_names, fn, done, user, ret);
}

struct cw_resolve *cw_resolve_free(struct cw_resolve *r)
{
	if (!r)
		return NULL;
	event_freep(&r->event);
	event_freep(&r->timer);
	end_child(r);
	if (r->fd >= 0)
		(void)close(r->fd);
	free(r);
	return NULL;
}
