/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accept() returns the lowest free number. The number itself therefore shows how many descriptors
 * are left.
 *
 * A listener pauses when accept() fails, or when accept() returns one of the last numbers. After
 * CW_ACCEPT_PAUSE_MS a timer tests whether a lower number is free again. If so, the timer resumes
 * the listener. Otherwise we arm the timer again.
 *
 * Our own work may take all last numbers, and hold them for long. A kept descriptor is therefore
 * open all the time. We close it only to accept a connection in its place.
 */
#include "loop/accept_pause.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

/*
 * Maximum number of connections that one test passes to a listener's kept_fn. One of them takes
 * about 10 us, so the clients of a flood wait in the queue for longer than we need for them.
 */
#define MAX_KEPT_PER_TEST 256

struct cw_accept_pause {
	struct cw_accept_pause *next, **link;
	struct evconnlistener *listener; /* NULL = `fn` pauses and resumes the listener */
	cw_accept_switch_fn fn;
	void *user;
	const struct cw_clock *clock;
	struct event *timer;
	enum cw_listener which;
	bool is_paused;
	unsigned tests;            /* number of tests without a free number in this pause */
	cw_accept_kept_fn kept_fn; /* NULL = no descriptor is kept */
	void *kept_user;
	int kept_fd;  /* -1 = a connection uses it, or it could not be opened yet */
	bool is_used; /* a connection uses the kept descriptor */
};

/*
 * All listeners are in one list, because libevent's error callback gets only the listener as
 * an argument.
 */
static struct cw_accept_pause *all;
static struct cw_accept_pause_stats stats;
static uint64_t unsaid;
static int64_t say_ns; /* before this time we write no further log line */

/*
 * Returns the first number that this listener's connections do not get. All lower numbers are for
 * them.
 */
static int first_kept_back(enum cw_listener which)
{
	struct rlimit limit;
	uint64_t reserve;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur > INT32_MAX)
		return INT32_MAX;
	reserve = limit.rlim_cur / 8;
	if (reserve > CW_ACCEPT_RESERVE_MAX)
		reserve = CW_ACCEPT_RESERVE_MAX;
	if (which != CW_LISTENER_AGENT)
		reserve /= 2;
	return (int)(limit.rlim_cur - reserve);
}

/*
 * Returns whether a connection can get a descriptor now. We open a file to learn the lowest free
 * number.
 */
static bool has_descriptor(enum cw_listener which)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), kept = first_kept_back(which);

	if (fd < 0)
		return errno != EMFILE && errno != ENFILE && errno != ENOMEM;
	(void)close(fd);
	return fd < kept;
}

static void switch_listener(struct cw_accept_pause *p, bool on)
{
	if (!p->listener)
		p->fn(on, p->user);
	else if (on ? evconnlistener_enable(p->listener) < 0
		    : evconnlistener_disable(p->listener) < 0)
		log_err("a listener cannot be %s", on ? "resumed" : "paused");
}

static void wait_a_little(struct cw_accept_pause *p)
{
	const struct timeval wait = { .tv_usec = CW_ACCEPT_PAUSE_MS * 1000 };

	/*
	 * event_add() needs no further memory here. If it fails nevertheless, we resume the
	 * listener at once: a spinning loop is better than a listener that never accepts again.
	 */
	if (event_add(p->timer, &wait) < 0) {
		p->is_paused = false;
		switch_listener(p, true);
	}
}

static void keep_one(struct cw_accept_pause *p)
{
	if (p->kept_fn && !p->is_used && p->kept_fd < 0)
		/* If this fails, the next test tries again. */
		p->kept_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Passes waiting connections to kept_fn until it accepts one. */
static void use_kept(struct cw_accept_pause *p)
{
	int listen_fd = evconnlistener_get_fd(p->listener);

	closep(&p->kept_fd);
	p->kept_fd = -1;
	for (unsigned i = 0; i < MAX_KEPT_PER_TEST && !p->is_used; i++) {
		int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0)
			break;
		p->is_used = p->kept_fn(fd, p->kept_user);
	}
	keep_one(p);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	struct cw_accept_pause *p = user;

	keep_one(p);
	if (!has_descriptor(p->which)) {
		stats.last_ns = cw_clock_now_ns(p->clock);
		if (p->kept_fd >= 0 && ++p->tests >= CW_ACCEPT_KEPT_MS / CW_ACCEPT_PAUSE_MS)
			use_kept(p);
		wait_a_little(p);
		return;
	}
	p->is_paused = false;
	switch_listener(p, true);
}

static const char *name_of(enum cw_listener which)
{
	static const char *const names[CW_LISTENER__MAX] = {
		[CW_LISTENER_AGENT] = "agent socket",
		[CW_LISTENER_CONTROL] = "control socket",
		[CW_LISTENER_PEER] = "peer port",
		[CW_LISTENER_METRICS] = "metrics socket",
	};

	return names[which];
}

/*
 * Writes one log line for all listeners, because they share the descriptors and the memory that ran
 * out.
 */
static void say(const struct cw_accept_pause *p, int error)
{
	int64_t now = cw_clock_now_ns(p->clock);

	unsaid++;
	if (now < say_ns)
		return;
	log_warn("%s: accepting no connections for now: %s (%llu pause%s since the last such "
		 "line); new clients have to wait",
		 name_of(p->which), strerror(error), (unsigned long long)unsaid,
		 unsaid == 1 ? "" : "s");
	unsaid = 0;
	say_ns = now + CW_ACCEPT_SAY_S * CW_NS_PER_S;
}

void cw_accept_pause_failed(struct cw_accept_pause *p, int error)
{
	if (p->is_paused)
		return;
	p->is_paused = true;
	p->tests = 0;
	stats.pauses[p->which]++;
	stats.last_ns = cw_clock_now_ns(p->clock);
	say(p, error);
	switch_listener(p, false);
	wait_a_little(p);
}

bool cw_accept_pause_took(struct cw_accept_pause *p, int fd)
{
	if (fd < first_kept_back(p->which))
		return false;
	cw_accept_pause_failed(p, EMFILE);
	return true;
}

bool cw_accept_pause_is_scarce(unsigned n)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return true;
	(void)close(fd);
	return fd + (int)n > first_kept_back(CW_LISTENER_AGENT);
}

bool cw_accept_pause_is_last(const struct cw_accept_pause *p, int fd)
{
	return fd >= first_kept_back(p->which) - 1;
}

static void on_error(struct evconnlistener *listener, void *user)
{
	int error = EVUTIL_SOCKET_ERROR();

	for (struct cw_accept_pause *p = all; p; p = p->next)
		if (p->listener == listener)
			cw_accept_pause_failed(p, error);
}

int cw_accept_pause_new(struct event_base *base, const struct cw_clock *clock,
			enum cw_listener which, cw_accept_switch_fn fn, void *user,
			struct cw_accept_pause **ret)
{
	struct cw_accept_pause *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->which = which;
	p->kept_fd = -1;
	p->clock = clock;
	p->fn = fn;
	p->user = user;
	p->timer = evtimer_new(base, on_timer, p);
	if (!p->timer) {
		free(p);
		return -ENOMEM;
	}
	p->next = all;
	p->link = &all;
	if (p->next)
		p->next->link = &p->next;
	all = p;
	*ret = p;
	return 0;
}

int cw_accept_pause_watch(struct event_base *base, const struct cw_clock *clock,
			  enum cw_listener which, struct evconnlistener *listener,
			  struct cw_accept_pause **ret)
{
	int r = cw_accept_pause_new(base, clock, which, NULL, NULL, ret);

	if (r < 0)
		return r;
	(*ret)->listener = listener;
	evconnlistener_set_error_cb(listener, on_error);
	return 0;
}

void cw_accept_pause_keep_one(struct cw_accept_pause *p, cw_accept_kept_fn fn, void *user)
{
	p->kept_fn = fn;
	p->kept_user = user;
	keep_one(p);
}

void cw_accept_pause_give_back(struct cw_accept_pause *p)
{
	p->is_used = false;
	keep_one(p);
}

struct cw_accept_pause *cw_accept_pause_free(struct cw_accept_pause *p)
{
	if (!p)
		return NULL;
	if (p->listener)
		evconnlistener_set_error_cb(p->listener, NULL);
	*p->link = p->next;
	if (p->next)
		p->next->link = p->link;
	event_free(p->timer);
	closep(&p->kept_fd);
	free(p);
	return NULL;
}

void cw_accept_pause_stats(struct cw_accept_pause_stats *ret)
{
	*ret = stats;
}
