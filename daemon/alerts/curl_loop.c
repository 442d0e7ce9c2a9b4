/* SPDX-License-Identifier: Apache-2.0 */
/*
 * curl tells us which descriptors and which timeout it waits for. We make each of them a libevent
 * event, which calls curl. Finished transfers are collected after each call into curl, never inside
 * curl's own callbacks.
 *
 * All memory of curl comes from transport/secret.h, because its buffers hold whole requests with
 * the URL and the headers.
 */
#include "daemon/alerts/curl_loop.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "transport/secret.h"

/*
 * One multi handle and its events. kept_fd is a spare descriptor. If the process runs out of
 * descriptors, we close kept_fd, so that a transfer can open one.
 */
struct cw_curl_loop {
	int kept_fd; /* -1 = closed, because a transfer needs the descriptor */
	struct event_base *base;
	CURLM *multi;
	struct event *timer;
	cw_curl_done_fn fn;
	void *user;
};

static void collect(struct cw_curl_loop *loop)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(loop->multi, &left))) {
		/* Read the message first, because removing the handle frees it. */
		CURL *easy = msg->easy_handle;
		CURLcode result = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		/* Cannot fail: the handle belongs to this multi handle. */
		(void)curl_multi_remove_handle(loop->multi, easy);
		loop->fn(easy, result, loop->user);
	}
}

static void on_socket_ready(evutil_socket_t fd, short what, void *arg)
{
	struct cw_curl_loop *loop = arg;
	int flags =
		(what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	int running;

	/* Ignore the result, because each transfer reports its own error. */
	(void)curl_multi_socket_action(loop->multi, fd, flags, &running);
	collect(loop);
}

static void on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct cw_curl_loop *loop = arg;
	int running;

	(void)curl_multi_socket_action(loop->multi, CURL_SOCKET_TIMEOUT, 0, &running);
	collect(loop);
}

/*
 * Called by curl when it wants to watch a descriptor, or no longer. socket_data is our event for
 * the descriptor; NULL = there is none yet.
 */
static int on_watch(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_data)
{
	struct cw_curl_loop *loop = user;
	struct event *ev = socket_data;
	short kind = EV_PERSIST;

	if (ev)
		event_free(ev);
	ev = NULL;
	if (what != CURL_POLL_REMOVE) {
		kind |= what != CURL_POLL_OUT ? EV_READ : 0;
		kind |= what != CURL_POLL_IN ? EV_WRITE : 0;
		ev = event_new(loop->base, fd, kind, on_socket_ready, loop);
		if (!ev || event_add(ev, NULL) < 0) {
			log_err("webhook: descriptor cannot be watched, waiting for the timeout");
			if (ev)
				event_free(ev);
			ev = NULL;
		}
	}
	/* Fails only for a socket that curl has forgotten. */
	(void)curl_multi_assign(loop->multi, fd, ev);
	return 0;
}

/*
 * Called by curl when it wants a call after timeout_ms; -1 = no call. We always use a timer,
 * because a direct call would recurse into curl.
 */
static int on_want_timer(CURLM *multi, long timeout_ms, void *user)
{
	struct cw_curl_loop *loop = user;
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };

	if (timeout_ms < 0)
		return event_del(loop->timer) < 0 ? -1 : 0;
	return event_add(loop->timer, &tv) < 0 ? -1 : 0;
}

static void keep_descriptor(struct cw_curl_loop *loop)
{
	if (loop->kept_fd < 0)
		/* If this fails, a later call tries again. */
		loop->kept_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int cw_curl_loop_new(struct event_base *base, cw_curl_done_fn fn, void *user,
		     struct cw_curl_loop **ret)
{
	struct cw_curl_loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, cw_secret_malloc, cw_secret_free,
				 cw_secret_realloc, cw_secret_strdup, cw_secret_calloc) != 0) {
		free(loop);
		return -EIO;
	}
	loop->kept_fd = -1;
	keep_descriptor(loop);
	loop->base = base;
	loop->fn = fn;
	loop->user = user;
	loop->multi = curl_multi_init();
	loop->timer = evtimer_new(base, on_timeout, loop);
	if (!loop->multi || !loop->timer) {
		cw_curl_loop_free(loop);
		return -ENOMEM;
	}
	(void)curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_watch);
	(void)curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
	(void)curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_want_timer);
	(void)curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
	*ret = loop;
	return 0;
}

struct cw_curl_loop *cw_curl_loop_free(struct cw_curl_loop *loop)
{
	if (!loop)
		return NULL;
	if (loop->multi)
		(void)curl_multi_cleanup(
			loop->multi); /* calls on_watch(REMOVE) for idle connections */
	if (loop->timer)
		event_free(loop->timer);
	curl_global_cleanup();
	closep(&loop->kept_fd);
	free(loop);
	return NULL;
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct cw_curl_loop *loop = user;
	int type = address->socktype | SOCK_CLOEXEC;
	int fd = socket(address->family, type, address->protocol);

	if (fd < 0 && (errno == EMFILE || errno == ENFILE) && loop->kept_fd >= 0) {
		closep(&loop->kept_fd);
		loop->kept_fd = -1;
		fd = socket(address->family, type, address->protocol);
	}
	return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int close_socket(void *user, curl_socket_t fd)
{
	int r = close(fd);

	keep_descriptor(user);
	return r;
}

int cw_curl_loop_add(struct cw_curl_loop *loop, CURL *easy)
{
	int r = curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);

	r |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, loop);
	r |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
	r |= curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop);
	if (r)
		return -EIO;
	keep_descriptor(loop);
	return curl_multi_add_handle(loop->multi, easy) == CURLM_OK ? 0 : -EIO;
}

void cw_curl_loop_remove(struct cw_curl_loop *loop, CURL *easy)
{
	/* Fails if the handle was never added, which does no harm. */
	(void)curl_multi_remove_handle(loop->multi, easy);
}
