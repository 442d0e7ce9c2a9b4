/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/accept_pause.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"

#define LIMIT 64

static struct event_base *base;
static struct evconnlistener *listener;
static struct cw_accept_pause *waiting;
static char dir[] = "/tmp/collwatch-accept-XXXXXX", path[64];
static unsigned accepted, turns;
static int last_fd;

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len,
		      void *user)
{
	accepted++;
	last_fd = fd;
	(void)cw_accept_pause_took(waiting, fd);
}

static void allow(rlim_t descriptors)
{
	struct rlimit limit;

	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = descriptors;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void set_up(void)
{
	int fd;

	base = event_base_new();
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	fd = cw_unix_listen(path, 0600, (gid_t)-1, NULL);
	cr_assert_geq(fd, 0);
	listener = evconnlistener_new(base, on_accept, NULL, LEV_OPT_CLOSE_ON_FREE, 0, fd);
	cr_assert_not_null(listener);
	cr_assert_eq(cw_accept_pause_watch(base, &cw_clock_system, CW_LISTENER_CONTROL, listener,
					   &waiting),
		     0);
	allow(LIMIT);
}

static void tear_down(void)
{
	waiting = cw_accept_pause_free(waiting);
	evconnlistener_free(listener);
	event_base_free(base);
	unlink(path);
	rmdir(dir);
}

TestSuite(accept_pause, .init = set_up, .fini = tear_down);

static void connect_one(void)
{
	cr_assert_geq(cw_unix_connect(path, 1000), 0);
}

/* Leaves free numbers from `first` on. */
static void take_descriptors_below(int first)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && fd < first);
	if (fd >= 0)
		close(fd);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("nothing happened within 120 s");
}

/* Turns of the loop until so many connections came; it blocks in each unless something is ready. */
static void turn_until_accepted(unsigned n)
{
	const struct timeval tv = { 120, 0 };
	struct event *deadline = evtimer_new(base, on_deadline, NULL);

	evtimer_add(deadline, &tv);
	for (; accepted < n; turns++)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
}

static uint64_t pauses(void)
{
	struct cw_accept_pause_stats stats;

	cw_accept_pause_stats(&stats);
	return stats.pauses[CW_LISTENER_CONTROL];
}

Test(accept_pause, listener_without_descriptors_waits_instead_of_spinning)
{
	struct cw_accept_pause_stats stats;

	connect_one();
	take_descriptors_below(LIMIT); /* all */
	for (turns = 0; turns < 5; turns++)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(accepted, 0);
	cr_assert_eq(pauses(), 1, "it was ready once, all other turns are of the timer");
	cw_accept_pause_stats(&stats);
	cr_assert_neq(stats.last_ns, 0);
	cr_assert_eq(stats.pauses[CW_LISTENER_PEER], 0);
	/* As soon as there are some. */
	allow(LIMIT + 32);
	turn_until_accepted(1);
	cr_assert_eq(pauses(), 1);
}

Test(accept_pause, connections_do_not_get_the_last_descriptors)
{
	/* An eighth is 8; half of it for this kind. */
	take_descriptors_below(LIMIT - 8);
	for (int i = 0; i < 2; i++) /* of the client's side */
		connect_one();
	turn_until_accepted(2);
	cr_assert_lt(last_fd, LIMIT - 4);
	cr_assert_eq(pauses(), 0);
	connect_one();
	turn_until_accepted(3);
	cr_assert_geq(last_fd, LIMIT - 4);
	cr_assert_eq(pauses(), 1, "the first one too high is the last one");
	connect_one();
	for (turns = 0; turns < 5; turns++)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(accepted, 3, "it waits, though there are descriptors");
	close(last_fd);
	close(last_fd - 1);
	close(last_fd - 2);
	turn_until_accepted(4);
}

Test(accept_pause, paused_listener_can_be_freed)
{
	connect_one();
	take_descriptors_below(LIMIT);
	event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(pauses(), 1);
	waiting = cw_accept_pause_free(waiting);
	event_base_loop(base, EVLOOP_NONBLOCK);
}

static unsigned asked, accept_from;
static int kept_fd;

/* Accepts the connection of a certain number, and refuses those before it. */
static bool on_kept(int fd, void *user)
{
	kept_fd = fd;
	if (++asked == accept_from)
		return true;
	close(fd);
	return false;
}

static void turn_until_asked(unsigned n)
{
	const struct timeval tv = { 120, 0 };
	struct event *deadline = evtimer_new(base, on_deadline, NULL);

	evtimer_add(deadline, &tv);
	while (asked < n)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
}

Test(accept_pause, kept_descriptor_serves_the_first_connection_that_may_use_it)
{
	cw_accept_pause_keep_one(waiting, on_kept, NULL);
	accept_from = 3;
	for (int i = 0; i < 5; i++)
		connect_one();
	take_descriptors_below(LIMIT); /* all: what our own work holds */
	turn_until_asked(3);
	cr_assert_lt(kept_fd, LIMIT);
	/* There is no second one. */
	for (turns = 0; turns < 15; turns++)
		event_base_loop(base, EVLOOP_ONCE);
	cr_assert_eq(asked, 3);
	cr_assert_eq(accepted, 0);
	/* When the first one is closed, there is one again. */
	close(kept_fd);
	cw_accept_pause_give_back(waiting);
	cr_assert_lt(open("/dev/null", O_RDONLY), 0, "it is kept from other uses");
	accept_from = 5;
	turn_until_asked(5);
	cr_assert_eq(accepted, 0);
}

Test(accept_pause, without_a_shortage_the_kept_descriptor_is_not_used)
{
	cw_accept_pause_keep_one(waiting, on_kept, NULL);
	connect_one();
	turn_until_accepted(1);
	cr_assert_eq(asked, 0);
}
