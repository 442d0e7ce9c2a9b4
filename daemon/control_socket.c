/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control_socket.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/unixsock.h"
#include "proto/codec.h"
#include "proto/frame.h"

#define NO_GROUP ((gid_t)-1)
#define MAX_GROUPS 256
/* Stacks of a job take a second or more. */
#define POLL_MS 100

struct client {
	struct client *next, *prev;
	struct cw_control_socket *socket;
	struct bufferevent *bev;
	struct cw_caller caller;
	bool awaits_stacks;
};

struct cw_control_socket {
	struct cw_control_source source;
	struct event_base *base;
	struct evconnlistener *listener;
	struct client *clients;
	unsigned n_clients;
	gid_t group;
	struct cw_stacks *stacks;
	struct event *poll; /* while stacks are being taken */
	char *path;         /* NULL when the descriptor was given */
};

static void client_close(struct client *c)
{
	cw_stacks_cancel(c->socket->stacks, c);
	DL_DELETE(c->socket->clients, c);
	c->socket->n_clients--;
	bufferevent_free(c->bev);
	free(c);
}

static bool is_in_group(int fd, gid_t primary, gid_t group)
{
	gid_t groups[MAX_GROUPS];
	socklen_t len = sizeof(groups);

	if (group == NO_GROUP)
		return false;
	if (primary == group)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false; /* more groups than anybody has: not a member, then */
	for (size_t i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static int identify(const struct cw_control_socket *s, int fd, struct cw_caller *ret)
{
	struct cw_peer_cred cred;
	int r = cw_unix_peer(fd, &cred);

	if (r < 0)
		return r;
	closep(&cred.pidfd);
	ret->uid = cred.uid;
	ret->sees_all =
		cred.uid == 0 || cred.uid == geteuid() || is_in_group(fd, cred.gid, s->group);
	return 0;
}

static int reply(struct client *c, const struct cw_control_answer *answer)
{
	struct cw_message msg = {
		.type = CW_MSG_CONTROL_REPLY,
		.control_reply = { .code = answer->code,
				   .json = answer->json ? answer->json : "",
				   .error = answer->error },
	};
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r = cw_message_encode(&msg, &frame, &len);

	if (r < 0)
		return r;
	return bufferevent_write(c->bev, frame, len) < 0 ? -ENOMEM : 0;
}

static void set_timeouts(struct client *c, int seconds)
{
	const struct timeval idle = { .tv_sec = seconds };

	(void)bufferevent_set_timeouts(c->bev, &idle, &idle);
}

static void on_stacks(struct cw_control_answer *answer, void *user)
{
	struct client *c = user;

	c->awaits_stacks = false;
	set_timeouts(c, CW_CONTROL_IDLE_S);
	if (reply(c, answer) < 0)
		client_close(c);
}

static void poll_soon(struct cw_control_socket *s)
{
	const struct timeval soon = { .tv_usec = POLL_MS * 1000 };

	if (event_add(s->poll, &soon) < 0)
		log_err("control: no timer, answers wait for the next one");
}

static void on_poll(evutil_socket_t fd, short what, void *user)
{
	struct cw_control_socket *s = user;

	cw_stacks_tick(s->stacks);
	if (!cw_stacks_is_idle(s->stacks))
		poll_soon(s);
}

/* One at a time for a client, and nothing else meanwhile: answers have no ids. */
static int begin_stacks(struct client *c, const char *json)
{
	json_t *arguments = json_loads(*json ? json : "{}", JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(arguments)) {
		json_decref(arguments);
		return -EPROTO;
	}
	c->awaits_stacks = true;
	set_timeouts(c, CW_STACKS_WITHIN_NS / CW_NS_PER_S + CW_CONTROL_IDLE_S);
	cw_stacks_request(c->socket->stacks, &c->caller, arguments, on_stacks, c);
	poll_soon(c->socket);
	json_decref(arguments);
	return 0;
}

static int on_frame(struct client *c, const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL;
	struct cw_control_answer answer = { 0 };
	int r = cw_message_decode(payload, len, &msg);

	if (r < 0)
		return r;
	if (msg->type == CW_MSG_CONTROL_REQUEST && c->awaits_stacks) {
		r = -EPROTO;
	} else if (msg->type == CW_MSG_CONTROL_REQUEST &&
		   strcmp(msg->control_request.verb, "stacks") == 0) {
		r = begin_stacks(c, msg->control_request.json);
	} else if (msg->type == CW_MSG_CONTROL_REQUEST) {
		cw_control_handle(&c->socket->source, &c->caller, msg->control_request.verb,
				  msg->control_request.json, &answer);
		r = reply(c, &answer);
		cw_control_answer_fini(&answer);
	} else {
		r = -EPROTO;
	}
	cw_message_free(msg);
	return r;
}

static void on_read(struct bufferevent *bev, void *user)
{
	struct client *c = user;
	struct evbuffer *in = bufferevent_get_input(bev);
	size_t len, used, have;
	const uint8_t *payload;
	int r = 0;

	while (r == 0 && (have = evbuffer_get_length(in)) > 0) {
		const uint8_t *all = evbuffer_pullup(in, -1);

		r = all ? cw_frame_parse(all, have, &payload, &len, &used) : -ENOMEM;
		if (r == CW_FRAME_NEED_MORE && have < CW_CONTROL_MAX_REQUEST)
			return;
		if (r == 0)
			r = on_frame(c, payload, len);
		if (r == 0)
			(void)evbuffer_drain(in, used); /* cannot fail for what is there */
	}
	if (r != 0)
		client_close(c);
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	client_close(user);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
		      int len, void *user)
{
	struct cw_control_socket *s = user;
	struct client *c = NULL;

	if (s->n_clients < CW_CONTROL_MAX_CLIENTS)
		c = calloc(1, sizeof(*c));
	if (!c || identify(s, fd, &c->caller) < 0 ||
	    !(c->bev = bufferevent_socket_new(s->base, fd, BEV_OPT_CLOSE_ON_FREE))) {
		free(c);
		(void)evutil_closesocket(fd);
		return;
	}
	c->socket = s;
	DL_APPEND(s->clients, c);
	s->n_clients++;
	bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
	bufferevent_setwatermark(c->bev, EV_READ, 0, CW_CONTROL_MAX_REQUEST);
	set_timeouts(c, CW_CONTROL_IDLE_S);
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
}

static gid_t group_named(const char *name)
{
	const struct group *g = *name ? getgrnam(name) : NULL;

	return g ? g->gr_gid : NO_GROUP;
}

static int start_listening(struct cw_control_socket *s,
			   const struct cw_control_socket_config *config, struct cw_err *err)
{
	/* Giving the socket to a group needs root or membership; without, it is the owner's. */
	gid_t group = geteuid() == 0 ? s->group : NO_GROUP;
	int fd = config->listen_fd;

	if (fd < 0) {
		fd = cw_unix_listen(config->path, 0660, group, err);
		if (fd < 0)
			return fd;
		s->path = strdup(config->path);
	}
	(void)evutil_make_socket_nonblocking(fd);
	s->listener = evconnlistener_new(config->base, on_accept, s,
					 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 16, fd);
	if (!s->listener) {
		(void)close(fd);
		return cw_err_set(err, ENOMEM, "cannot watch %s", config->path);
	}
	return 0;
}

int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err)
{
	struct cw_control_socket *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return cw_err_set(err, ENOMEM, "out of memory");
	s->source = config->source;
	s->base = config->base;
	s->group = group_named(config->group);
	s->stacks = cw_stacks_new(&config->stacks);
	s->poll = evtimer_new(config->base, on_poll, s);
	r = s->stacks && s->poll ? start_listening(s, config, err)
				 : cw_err_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		cw_control_socket_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct cw_control_socket *cw_control_socket_free(struct cw_control_socket *s)
{
	struct client *c, *tmp;

	if (!s)
		return NULL;
	DL_FOREACH_SAFE (s->clients, c, tmp)
		client_close(c);
	if (s->listener)
		evconnlistener_free(s->listener);
	if (s->poll)
		event_free(s->poll);
	cw_stacks_free(s->stacks);
	if (s->path)
		(void)unlink(s->path); /* a stale one is replaced at the next start anyway */
	free(s->path);
	free(s);
	return NULL;
}
