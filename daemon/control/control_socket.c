/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client has one request at a time. In each iteration, the loop answers at most one request per
 * client. After an answer, the user's next request waits in proportion to the time that the answer
 * took. Some answers are slow, because they need stacks or other nodes. We poll for them, and the
 * client gets no other answer meanwhile. The number of clients is limited. Users share this limit,
 * and a part of it is reserved for root.
 */
#include "daemon/control/control_socket.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <utlist.h>

#include "common/account.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "common/unixsock.h"
#include "daemon/alerts/mutes.h"
#include "daemon/control/control_nodes.h"
#include "identity/quota.h"
#include "loop/accept_pause.h"
#include "loop/conn_closer.h"
#include "loop/events.h"
#include "proto/codec.h"
#include "proto/frame.h"

#define NO_GROUP ((gid_t)-1)
#define MAX_GROUPS 256
#define READ_BYTES (16u << 10)
/* Interval of polling for slow answers. The stacks of a job take a second or more. */
#define POLL_MS 100

/* One user's share of the loop. We answer no request of the user before not_before_ns. */
struct share {
	uid_t uid;
	int64_t not_before_ns;
};

/*
 * Maximum number of users whose share we remember. Beyond this number we forget the user whose last
 * request is the oldest.
 */
#define MAX_SHARES (2 * CW_CONTROL_MAX_CLIENTS)

struct client {
	struct client *next, *prev;
	struct cw_control_socket *socket;
	/*
	 * We only write through it. If it read, it would drop the descriptors that a client sends
	 * along.
	 */
	struct bufferevent *bev;
	struct evbuffer *in;
	/* Fires when the client has sent bytes, or has been silent for too long. */
	struct event *readable;
	struct timeval idle;
	struct event *next_request; /* fires when the user's share allows the next request */
	struct cw_caller caller;
	bool is_kept; /* uses the descriptor that is kept for root */
	bool awaits;  /* we wait for an answer from stacks or from other nodes */
};

struct cw_control_socket {
	struct cw_control_source source;
	struct event_base *base;
	const struct cw_clock *clock;
	struct evconnlistener *listener;
	struct cw_accept_pause *pause;
	struct cw_conn_closer *closer;
	struct client *clients;
	struct share shares[MAX_SHARES];
	struct cw_control_socket_stats stats;
	gid_t group;
	struct cw_stacks *stacks;
	struct cw_control_nodes *nodes;
	struct event *poll; /* runs while we wait for stacks or other nodes */
	char *path;         /* path of the file that we made; NULL = the descriptor was inherited */
};

/* Frees everything of the client. Closes its connection last. */
static void client_free(struct client *c)
{
	int fd = c->bev ? bufferevent_getfd(c->bev) : -1;

	event_freep(&c->next_request);
	event_freep(&c->readable);
	if (c->in)
		evbuffer_free(c->in);
	if (c->bev)
		bufferevent_free(c->bev);
	if (fd >= 0)
		cw_conn_closer_close(c->socket->closer, fd);
	if (c->is_kept)
		cw_accept_pause_give_back(c->socket->pause);
	free(c);
}

static void client_close(struct client *c)
{
	cw_stacks_request_cancel(c->socket->stacks, c);
	cw_control_nodes_cancel(c->socket->nodes, c);
	DL_DELETE(c->socket->clients, c);
	c->socket->stats.clients--;
	client_free(c);
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
		/*
		 * The call fails if the caller has more groups than fit. No user has so many, so
		 * this is no member.
		 */
		return false;
	for (size_t i = 0; i < len / sizeof(gid_t); i++)
		if (groups[i] == group)
			return true;
	return false;
}

static int identify(const struct cw_control_socket *s, int fd, struct cw_caller *ret)
{
	uid_t uid;
	gid_t gid;
	int r = cw_unix_peer_user(fd, &uid, &gid);

	if (r < 0)
		return r;
	*ret = (struct cw_caller){
		.uid = uid,
		.sees_all = uid == 0 || uid == geteuid() || is_in_group(fd, gid, s->group),
	};
	return 0;
}

/* Returns the sum of unsent bytes over all clients of this client's user. */
static size_t unread_bytes(const struct client *c)
{
	const struct client *other;
	size_t bytes = 0;

	DL_FOREACH (c->socket->clients, other)
		if (other->caller.uid == c->caller.uid)
			bytes += evbuffer_get_length(bufferevent_get_output(other->bev));
	return bytes;
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

/* Continues to read from the client, unless its input is full. */
static void read_on(struct client *c)
{
	if (evbuffer_get_length(c->in) >= CW_CONTROL_MAX_REQUEST)
		(void)event_del(c->readable); /* cannot fail: the event exists */
	else if (event_add(c->readable, &c->idle) < 0)
		log_err("control: no timer, a client may be silent for longer");
}

static void set_timeouts(struct client *c, int seconds)
{
	c->idle = (struct timeval){ .tv_sec = seconds };
	(void)bufferevent_set_timeouts(c->bev, NULL, &c->idle);
	read_on(c);
}

static void on_awaited(struct cw_control_answer *answer, void *user)
{
	struct client *c = user;

	c->awaits = false;
	set_timeouts(c, CW_CONTROL_IDLE_S);
	if (reply(c, answer) < 0)
		client_close(c);
}

static void poll_soon(struct cw_control_socket *s)
{
	const struct timeval soon = { .tv_usec = POLL_MS * 1000 };

	/*
	 * Never postpone a poll that is due. Otherwise clients that connect often could stop the
	 * answers to all other clients.
	 */
	if (event_pending(s->poll, EV_TIMEOUT, NULL))
		return;
	if (event_add(s->poll, &soon) < 0)
		log_err("control: no timer, answers wait for the next one");
}

static void on_poll(evutil_socket_t fd, short what, void *user)
{
	struct cw_control_socket *s = user;

	cw_control_nodes_tick(s->nodes);
	cw_stacks_request_tick(s->stacks);
	if (!cw_stacks_request_is_idle(s->stacks) || !cw_control_nodes_is_idle(s->nodes))
		poll_soon(s);
}

/*
 * Makes the client wait for a slow answer. It gets no other answer before, because it could not
 * tell the answers apart: they have no ids.
 */
static void await(struct client *c)
{
	c->awaits = true;
	set_timeouts(c, CW_CONTROL_NODES_STACKS_MS / 1000 + CW_STACKS_WITHIN_NS / CW_NS_PER_S +
				CW_CONTROL_IDLE_S);
	poll_soon(c->socket);
}

static int begin_stacks(struct client *c, const char *json)
{
	json_t *arguments = cw_json_parse_text(*json ? json : "{}", JSON_REJECT_DUPLICATES);

	if (!json_is_object(arguments)) {
		json_decref(arguments);
		return -EPROTO;
	}
	await(c);
	if (!cw_control_nodes_ask(c->socket->nodes, &c->caller, "stacks", json, NULL, on_awaited,
				  c))
		cw_stacks_request(c->socket->stacks, &c->caller, arguments, on_awaited, c);
	json_decref(arguments);
	return 0;
}

static int answer(struct client *c, const struct cw_msg_control_request *q)
{
	struct cw_control_answer a = { 0 };
	int r = 0;

	cw_control_handle(&c->socket->source, &c->caller, q->verb, q->json, &a);
	if (cw_control_nodes_ask(c->socket->nodes, &c->caller, q->verb, q->json, &a, on_awaited, c))
		await(c);
	else
		r = reply(c, &a);
	cw_control_answer_fini(&a);
	return r;
}

static int on_frame(struct client *c, const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL;
	int r = cw_message_decode(payload, len, &msg);

	if (r < 0)
		return r;
	if (unread_bytes(c) > CW_CONTROL_MAX_UNREAD_PER_UID)
		r = -ENOBUFS;
	else if (msg->type != CW_MSG_CONTROL_REQUEST || c->awaits)
		r = -EPROTO;
	else
		c->socket->stats.requests++;
	if (r < 0) {
		cw_message_free(msg);
		return r;
	}
	if (strcmp(msg->control_request.verb, "stacks") == 0)
		r = begin_stacks(c, msg->control_request.json);
	else
		r = answer(c, &msg->control_request);
	cw_message_free(msg);
	return r;
}

static struct share *share_of(struct cw_control_socket *s, uid_t uid)
{
	struct share *oldest = &s->shares[0];

	for (unsigned i = 0; i < MAX_SHARES; i++) {
		struct share *share = &s->shares[i];

		if (share->not_before_ns && share->uid == uid)
			return share;
		if (share->not_before_ns < oldest->not_before_ns)
			oldest = share;
	}
	*oldest = (struct share){ .uid = uid };
	return oldest;
}

/* Answers the first complete request in the client's input, if the user's share allows it now. */
static int serve_one(struct client *c, int64_t now_ns)
{
	size_t len, used, have = evbuffer_get_length(c->in);
	const uint8_t *all = evbuffer_pullup(c->in, -1), *payload;
	struct share *share;
	int r = all ? cw_frame_parse(all, have, &payload, &len, &used) : -ENOMEM;

	if (r == CW_FRAME_NEED_MORE)
		return have < CW_CONTROL_MAX_REQUEST ? r : -EMSGSIZE;
	if (r == 0 && used > CW_CONTROL_MAX_REQUEST)
		r = -EMSGSIZE; /* the last piece of the request exceeded the limit */
	if (r == 0)
		r = on_frame(c, payload, len);
	if (r < 0)
		return r;
	(void)evbuffer_drain(c->in, used); /* cannot fail: the bytes are there */
	read_on(c);
	share = share_of(c->socket, c->caller.uid);
	share->not_before_ns = cw_clock_now_ns(c->socket->clock);
	if (!c->caller.sees_all)
		share->not_before_ns += (CW_CONTROL_SHARE - 1) * (share->not_before_ns - now_ns);
	return 0;
}

/*
 * Answers one request of the client. The next one waits for the next iteration, so a client with a
 * thousand requests does not delay other clients.
 */
static void serve(struct client *c)
{
	int64_t now = cw_clock_now_ns(c->socket->clock), wait_ns;
	struct timeval wait;
	int r = 0;

	if (evbuffer_get_length(c->in) == 0)
		return;
	wait_ns = share_of(c->socket, c->caller.uid)->not_before_ns - now;
	if (wait_ns <= 0) {
		r = serve_one(c, now);
		if (r == CW_FRAME_NEED_MORE)
			return;
		wait_ns = 0;
	}
	wait = (struct timeval){ .tv_sec = wait_ns / CW_NS_PER_S,
				 .tv_usec = wait_ns % CW_NS_PER_S / 1000 };
	if (r == 0 && event_add(c->next_request, &wait) == 0)
		return;
	c->socket->stats.noise++;
	client_close(c);
}

static void on_next_request(evutil_socket_t fd, short what, void *user)
{
	serve(user);
}

static void on_readable(evutil_socket_t fd, short what, void *user)
{
	char buf[READ_BYTES];
	struct client *c = user;
	ssize_t n = what & EV_READ ? cw_unix_recv_bytes(fd, buf, sizeof(buf)) : 0;

	if (n == -EAGAIN || n == -EINTR)
		return;
	c->socket->stats.noise += n == -EBADMSG;
	if (n <= 0 || evbuffer_add(c->in, buf, (size_t)n) < 0) {
		client_close(c);
		return;
	}
	read_on(c);
	if (!event_pending(c->next_request, EV_TIMEOUT, NULL))
		serve(c);
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	client_close(user);
}

/*
 * Sends a last message to a client before we close its connection. The client had sent no request,
 * or had no answer yet.
 */
static void send_refusal(int fd)
{
	static const struct cw_message msg = {
		.type = CW_MSG_CONTROL_REPLY,
		.control_reply = { .code = 1,
				   .json = "",
				   .error = "too many users ask this daemon at once: try again in "
					    "a few seconds" },
	};
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;

	if (cw_message_encode(&msg, &frame, &len) == 0)
		/* We ignore an error, because the connection ends anyway. */
		(void)!send(fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/*
 * Makes room for a client of uid by closing another user's client. All users except root share the
 * limit on clients by quotas. Returns false if no client has to leave.
 */
static bool displace_for(struct cw_control_socket *s, uid_t uid)
{
	struct cw_quota_charge charges[CW_CONTROL_MAX_CLIENTS];
	struct client *c, *displaced;
	void *holder = NULL;
	size_t n = 0;

	DL_FOREACH (s->clients, c)
		if (c->caller.uid != 0) {
			/* The list is in order of arrival, so the index serves as the time. */
			charges[n] = (struct cw_quota_charge){ .uid = c->caller.uid,
							       .since_ns = (int64_t)n,
							       .holder = c };
			n++;
		}
	switch (cw_quota_charge_for(uid, charges, n, CW_CONTROL_MAX_CLIENTS - CW_CONTROL_MAX_ROOT,
				    &holder)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		displaced = holder;
		/* Send no refusal while an answer is partly sent. */
		if (evbuffer_get_length(bufferevent_get_output(displaced->bev)) == 0)
			send_refusal(bufferevent_getfd(displaced->bev));
		client_close(displaced);
		s->stats.displaced++;
		return true;
	default:
		return false;
	}
}

/*
 * True if the caller may connect. Root has no limit per user. An administrator must always be able
 * to connect.
 */
static bool make_room(struct cw_control_socket *s, const struct cw_caller *caller)
{
	const struct client *c;
	unsigned own = 0;

	DL_FOREACH (s->clients, c)
		own += c->caller.uid == caller->uid;
	if (caller->uid == 0)
		return s->stats.clients < CW_CONTROL_MAX_CLIENTS;
	return own < CW_CONTROL_MAX_CLIENTS_PER_UID && displace_for(s, caller->uid);
}

/* Makes a client that owns fd. Returns NULL if out of memory; fd is then closed. */
static struct client *client_new(struct cw_control_socket *s, int fd,
				 const struct cw_caller *caller)
{
	struct client *c = calloc(1, sizeof(*c));

	if (!c) {
		cw_conn_closer_close(s->closer, fd);
		return NULL;
	}
	c->socket = s;
	c->caller = *caller;
	c->bev = bufferevent_socket_new(s->base, fd, 0);
	if (!c->bev)
		cw_conn_closer_close(s->closer, fd);
	c->in = evbuffer_new();
	c->next_request = evtimer_new(s->base, on_next_request, c);
	c->readable = event_new(s->base, fd, EV_READ | EV_PERSIST, on_readable, c);
	if (c->bev && c->in && c->next_request && c->readable)
		return c;
	client_free(c);
	return NULL;
}

/* Makes a client of an accepted connection. Returns NULL if we have refused it. */
static struct client *take(struct cw_control_socket *s, int fd, bool is_for_root)
{
	struct cw_caller caller;
	struct client *c;

	cw_unix_take_oob_inline(fd);
	if (identify(s, fd, &caller) < 0 || (caller.uid != 0 && is_for_root) ||
	    !make_room(s, &caller)) {
		s->stats.refused++;
		send_refusal(fd);
		cw_conn_closer_close(s->closer, fd);
		return NULL;
	}
	c = client_new(s, fd, &caller);
	if (!c) {
		s->stats.refused++;
		return NULL;
	}
	DL_APPEND(s->clients, c);
	s->stats.clients++;
	bufferevent_setcb(c->bev, NULL, NULL, on_event, c);
	set_timeouts(c, CW_CONTROL_IDLE_S);
	return c;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
		      int len, void *user)
{
	struct cw_control_socket *s = user;

	(void)cw_accept_pause_took(s->pause, fd);
	(void)take(s, fd, cw_accept_pause_is_last(s->pause, fd));
}

/* Only root may use the kept descriptor. */
static bool on_accept_kept(int fd, void *user)
{
	struct client *c = take(user, fd, true);

	if (c)
		c->is_kept = true;
	return c != NULL;
}

static gid_t group_named(const char *name)
{
	gid_t gid = NO_GROUP;

	if (*name && cw_account_group(name, &gid) == -ETIMEDOUT)
		log_warn("control_group: the group %s cannot be looked up: its members see only "
			 "their own jobs until the daemon restarts",
			 name);
	return gid;
}

static int start_listening(struct cw_control_socket *s,
			   const struct cw_control_socket_config *config, struct cw_err *err)
{
	int fd = config->listen_fd;

	if (fd < 0) {
		fd = cw_unix_listen(config->path, 0666, NO_GROUP, err);
		if (fd < 0)
			return fd;
		s->path = strdup(config->path);
	}
	(void)evutil_make_socket_nonblocking(fd);
	/* A backlog of 0 leaves the socket's own backlog, which one client cannot fill. */
	s->listener = evconnlistener_new(config->base, on_accept, s,
					 LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!s->listener) {
		(void)close(fd);
		return cw_err_set(err, ENOMEM, "cannot watch %s", config->path);
	}
	if (cw_accept_pause_watch(config->base, config->clock, CW_LISTENER_CONTROL, s->listener,
				  &s->pause) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	cw_accept_pause_keep_one(s->pause, on_accept_kept, s);
	return 0;
}

int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err)
{
	struct cw_control_socket *s = calloc(1, sizeof(*s));
	struct cw_control_nodes_config nodes;
	int r;

	if (!s)
		return cw_err_set(err, ENOMEM, "out of memory");
	s->source = config->source;
	s->base = config->base;
	s->clock = config->clock;
	s->group = group_named(config->group);
	r = cw_conn_closer_new(config->base, config->forks, &s->closer);
	if (r == 0)
		r = cw_stacks_request_new(&config->stacks, &s->stacks);
	nodes = (struct cw_control_nodes_config){ .clock = config->clock,
						  .transport = config->stacks.transport,
						  .source = &s->source,
						  .stacks = s->stacks };
	if (r == 0)
		r = cw_control_nodes_new(&nodes, &s->nodes);
	s->poll = evtimer_new(config->base, on_poll, s);
	r = r == 0 && s->poll ? start_listening(s, config, err)
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
	cw_accept_pause_free(s->pause);
	if (s->listener)
		evconnlistener_free(s->listener);
	event_freep(&s->poll);
	cw_control_nodes_free(s->nodes);
	cw_stacks_request_free(s->stacks);
	s->closer = cw_conn_closer_free(s->closer);
	if (s->path)
		(void)unlink(s->path); /* if this fails, the next start replaces the file */
	free(s->path);
	free(s);
	return NULL;
}

bool cw_control_socket_message(struct cw_control_socket *s, const char *from,
			       const struct cw_message *msg)
{
	if (!cw_control_nodes_message(s->nodes, from, msg))
		return false;
	if (!cw_control_nodes_is_idle(s->nodes))
		poll_soon(s);
	return true;
}

void cw_control_socket_stats(const struct cw_control_socket *s, struct cw_control_socket_stats *ret)
{
	*ret = s->stats;
	ret->over_quota = cw_stacks_request_refused(s->stacks);
	if (s->source.mutes)
		ret->over_quota += cw_mutes_refused(s->source.mutes);
}
