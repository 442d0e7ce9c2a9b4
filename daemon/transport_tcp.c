/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/transport_tcp.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/config.h"
#include "daemon/peer_uid.h"
#include "proto/codec.h"
#include "proto/frame.h"

#define NO_PEER UINT32_MAX

struct conn {
	struct conn *next, *prev;
	struct cw_tcp *tcp;
	struct bufferevent *bev;
	uint32_t peer; /* whom it was dialed to, or who said hello; NO_PEER before */
	bool is_dialed, is_up, said_goodbye, is_refused;
	uint64_t epoch; /* of the other side */
	int64_t opened_ns;
};

struct link { /* one per peer */
	struct sockaddr_storage address;
	struct conn *conn; /* the one that is up */
	bool is_ours;      /* this side dials */
	bool is_dialing;
	uint32_t backoff_ms;
	int64_t dial_ns; /* next try */
};

struct cw_tcp {
	struct cw_tcp_config config;
	struct evconnlistener *listener;
	struct event *timer;
	struct conn *conns;
	struct link *links;
	unsigned n_links;
	int64_t beat_ns;
	struct cw_tcp_stats stats;
};

static void conn_close(struct conn *c);

/* ---- output ---- */

static int send_frame(struct conn *c, const uint8_t *frame, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (evbuffer_get_length(out) + len > CW_TCP_MAX_OUTPUT)
		return -ENOBUFS;
	return bufferevent_write(c->bev, frame, len) < 0 ? -ENOMEM : 0;
}

static int send_message(struct conn *c, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r = cw_message_encode(msg, &frame, &len);

	return r < 0 ? r : send_frame(c, frame, len);
}

static int send_hello(struct conn *c)
{
	struct cw_message msg = {
		.type = CW_MSG_PEER_HELLO,
		.peer_hello = { .node = cw_transport_self(c->tcp->config.transport),
				.version_min = CW_WIRE_VERSION_MIN,
				.version_max = CW_WIRE_VERSION,
				.epoch = c->tcp->config.epoch },
	};

	return send_message(c, &msg);
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct cw_tcp *tcp = impl;
	struct conn *c = tcp->links[peer].conn;

	return c ? send_frame(c, frame, len) : -ENOTCONN;
}

static const struct cw_transport_ops tcp_ops = { .send = on_send };

/* ---- hello ---- */

static uint32_t find_peer(const struct cw_tcp *tcp, const char *name)
{
	const struct cw_peer *peers;
	unsigned n;

	peers = cw_transport_peers(tcp->config.transport, &n);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(peers[i].name, name))
			return i;
	return NO_PEER;
}

static const char *name_of(const struct cw_tcp *tcp, uint32_t peer)
{
	unsigned n;

	return cw_transport_peers(tcp->config.transport, &n)[peer].name;
}

/* NULL = welcome; else why not. */
static const char *refuse_hello(const struct conn *c, const struct cw_msg_peer_hello *hello,
				uint32_t peer)
{
	const struct conn *other;

	if (peer == NO_PEER)
		return "it is not among the peers";
	if (c->is_dialed && peer != c->peer)
		return "another node answers at its address";
	if (hello->version_max < CW_WIRE_VERSION_MIN || hello->version_min > CW_WIRE_VERSION)
		return "no protocol version in common";
	other = c->tcp->links[peer].conn;
	if (other && other != c && other->epoch > hello->epoch)
		return "a newer daemon of that name is connected";
	return NULL;
}

/* A stranger may come back ten times a second: say it ever more rarely. */
static void log_refusal(struct cw_tcp *tcp, const char *name, const char *why)
{
	uint64_t n = ++tcp->stats.refused;

	if ((n & (n - 1)) == 0)
		log_warn("peer %s refused (%llu refused so far): %s", name, (unsigned long long)n,
			 why);
}

static void on_hello(struct conn *c, const struct cw_msg_peer_hello *hello)
{
	uint32_t peer = find_peer(c->tcp, hello->node);
	const char *why = refuse_hello(c, hello, peer);
	struct link *link;

	if (c->is_up && !why && peer == c->peer)
		return; /* a beat: receiving it is all it is for */
	if (why || c->is_up) {
		log_refusal(c->tcp, hello->node, why ? why : "it changed its name");
		c->is_refused = true;
		return;
	}
	link = &c->tcp->links[peer];
	if (link->conn)
		conn_close(link->conn);
	c->peer = peer;
	c->epoch = hello->epoch;
	c->is_up = true;
	link->conn = c;
	link->is_dialing = false;
	link->backoff_ms = CW_TCP_BACKOFF_MIN_MS;
	cw_transport_peer_up(c->tcp->config.transport, peer, hello->epoch);
	log_info("peer %s: connected", hello->node);
}

/* ---- input ---- */

/* -EPROTO: this connection has no future. */
static int on_frame(struct conn *c, const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL;
	int r;

	r = cw_message_decode(payload, len, &msg);
	if (r < 0)
		return -EPROTO;
	if (msg->type == CW_MSG_PEER_HELLO)
		on_hello(c, &msg->peer_hello);
	else if (msg->type == CW_MSG_PEER_GOODBYE)
		c->said_goodbye = true;
	else if (!c->is_up)
		r = -EPROTO; /* anything before a hello */
	if (c->is_refused)
		r = -EPROTO;
	else if (r == 0 && c->is_up)
		cw_transport_heard(c->tcp->config.transport, c->peer);
	if (r < 0 || msg->type == CW_MSG_PEER_HELLO || msg->type == CW_MSG_PEER_GOODBYE) {
		cw_message_free(msg);
		return r;
	}
	cw_transport_deliver(c->tcp->config.transport, c->peer, msg);
	return 0;
}

static void on_read(struct bufferevent *bev, void *user)
{
	struct conn *c = user;
	struct evbuffer *in = bufferevent_get_input(bev);
	const uint8_t *payload;
	size_t have, len, used;
	int r = 0;

	/* Several frames may have come at once, and no further call is made for those. */
	while (r == 0 && (have = evbuffer_get_length(in)) > 0) {
		uint8_t head[CW_FRAME_HEADER_BYTES];
		const uint8_t *all;

		if (evbuffer_copyout(in, head, sizeof(head)) < (ev_ssize_t)sizeof(head))
			return;
		r = cw_frame_parse(head, sizeof(head), &payload, &len, &used);
		if (r == CW_FRAME_NEED_MORE) {
			all = evbuffer_pullup(in, -1);
			if (!all)
				break;
			r = cw_frame_parse(all, have, &payload, &len, &used);
		}
		if (r == CW_FRAME_NEED_MORE)
			return;
		if (r == 0)
			r = on_frame(c, payload, len);
		if (r == 0)
			(void)evbuffer_drain(in, used); /* cannot fail for what is there */
	}
	if (r < 0) {
		c->tcp->stats.protocol_errors += !c->is_refused;
		conn_close(c);
	}
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	struct conn *c = user;

	if (what & BEV_EVENT_CONNECTED)
		return;
	conn_close(c);
}

/* ---- connections ---- */

static void conn_close(struct conn *c)
{
	struct cw_tcp *tcp = c->tcp;
	struct link *link = c->peer == NO_PEER ? NULL : &tcp->links[c->peer];

	if (link && link->conn == c) {
		link->conn = NULL;
		cw_transport_peer_down(tcp->config.transport, c->peer, c->said_goodbye);
		log_info("peer %s: %s", name_of(tcp, c->peer),
			 c->said_goodbye ? "said goodbye" : "connection lost");
	}
	if (link && c->is_dialed) {
		link->is_dialing = false;
		link->dial_ns =
			cw_clock_now_ns(tcp->config.clock) + link->backoff_ms * CW_NS_PER_MS;
		link->backoff_ms = link->backoff_ms * 2 > CW_TCP_BACKOFF_MAX_MS
					   ? CW_TCP_BACKOFF_MAX_MS
					   : link->backoff_ms * 2;
	}
	DL_DELETE(tcp->conns, c);
	tcp->stats.connections--;
	bufferevent_free(c->bev);
	free(c);
}

static struct conn *conn_new(struct cw_tcp *tcp, int fd, uint32_t peer)
{
	struct conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->bev = bufferevent_socket_new(tcp->config.base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->bev) {
		free(c);
		return NULL;
	}
	c->tcp = tcp;
	c->peer = peer;
	c->is_dialed = peer != NO_PEER;
	c->opened_ns = cw_clock_now_ns(tcp->config.clock);
	bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
	/* A peer that sends faster than it is read waits in its own kernel. */
	bufferevent_setwatermark(c->bev, EV_READ, 0,
				 2 * (CW_FRAME_MAX_BYTES + CW_FRAME_HEADER_BYTES));
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	DL_APPEND(tcp->conns, c);
	tcp->stats.connections++;
	return c;
}

static unsigned count_strangers(const struct cw_tcp *tcp)
{
	const struct conn *c;
	unsigned n = 0;

	DL_FOREACH (tcp->conns, c)
		n += !c->is_up && !c->is_dialed;
	return n;
}

/*
 * From this machine, and opened by root or the daemon's own user: while peers do not authenticate,
 * other users of the node must not be able to pose as one.
 */
static bool is_trusted(int fd, const struct sockaddr *from)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)from;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)from;
	bool is_local = from->sa_family == AF_INET ? ntohl(in4->sin_addr.s_addr) >> 24 == 127
						   : IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	uid_t uid;

	return is_local && cw_peer_uid(fd, &uid) == 0 && (uid == 0 || uid == geteuid());
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
		      int len, void *user)
{
	struct cw_tcp *tcp = user;
	struct conn *c = NULL;

	if (is_trusted(fd, from) && count_strangers(tcp) < CW_TCP_MAX_STRANGERS)
		c = conn_new(tcp, fd, NO_PEER);
	if (!c) {
		tcp->stats.refused++;
		(void)evutil_closesocket(fd);
		return;
	}
	tcp->stats.accepted++;
	if (send_hello(c) < 0)
		conn_close(c);
}

static void dial(struct cw_tcp *tcp, uint32_t peer)
{
	struct link *link = &tcp->links[peer];
	struct conn *c = conn_new(tcp, -1, peer);
	socklen_t len = link->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							   : sizeof(struct sockaddr_in6);

	if (!c)
		return; /* the next tick tries again */
	tcp->stats.dialed++;
	link->is_dialing = true;
	if (bufferevent_socket_connect(c->bev, (struct sockaddr *)&link->address, (int)len) < 0 ||
	    send_hello(c) < 0)
		conn_close(c);
}

static void drop_the_slow(struct cw_tcp *tcp, int64_t now)
{
	struct conn *c, *tmp;

	DL_FOREACH_SAFE (tcp->conns, c, tmp)
		if (!c->is_up && now - c->opened_ns > CW_TCP_HELLO_NS)
			conn_close(c);
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	struct cw_tcp *tcp = user;
	int64_t now = cw_clock_now_ns(tcp->config.clock);
	struct conn *c, *tmp;

	drop_the_slow(tcp, now);
	if (now >= tcp->beat_ns) {
		tcp->beat_ns = now + CW_PEER_BEAT_NS;
		DL_FOREACH_SAFE (tcp->conns, c, tmp)
			if (c->is_up)
				(void)send_hello(c); /* full: it is not reading, and is noticed */
	}
	for (uint32_t i = 0; i < tcp->n_links; i++) {
		struct link *link = &tcp->links[i];

		if (link->is_ours && !link->conn && !link->is_dialing && now >= link->dial_ns)
			dial(tcp, i);
	}
}

/* ---- life ---- */

static int init_links(struct cw_tcp *tcp, struct cw_err *err)
{
	const char *self = cw_transport_self(tcp->config.transport);
	const struct cw_peer *peers;
	int r;

	peers = cw_transport_peers(tcp->config.transport, &tcp->n_links);
	tcp->links = calloc(tcp->n_links ? tcp->n_links : 1, sizeof(*tcp->links));
	if (!tcp->links)
		return cw_err_set(err, ENOMEM, "out of memory");
	for (unsigned i = 0; i < tcp->n_links; i++) {
		r = cw_config_parse_address(peers[i].address, &tcp->links[i].address, err);
		if (r < 0)
			return r;
		tcp->links[i].is_ours = strcmp(self, peers[i].name) < 0;
		tcp->links[i].backoff_ms = CW_TCP_BACKOFF_MIN_MS;
	}
	return 0;
}

static int start_listening(struct cw_tcp *tcp, struct cw_err *err)
{
	struct sockaddr_storage address;
	socklen_t len;
	int r;

	r = cw_config_parse_address(tcp->config.listen, &address, err);
	if (r < 0)
		return r;
	len = address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
					   : sizeof(struct sockaddr_in6);
	tcp->listener = evconnlistener_new_bind(tcp->config.base, on_accept, tcp,
						LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC |
							LEV_OPT_REUSEABLE,
						64, (struct sockaddr *)&address, (int)len);
	if (!tcp->listener)
		return cw_err_set(err, errno, "cannot listen on %s: %m", tcp->config.listen);
	return 0;
}

int cw_tcp_new(const struct cw_tcp_config *config, struct cw_tcp **ret, struct cw_err *err)
{
	const struct timeval period = { .tv_usec = CW_TCP_BACKOFF_MIN_MS * 1000 };
	struct cw_tcp *tcp = calloc(1, sizeof(*tcp));
	int r;

	if (!tcp)
		return cw_err_set(err, ENOMEM, "out of memory");
	tcp->config = *config;
	r = init_links(tcp, err);
	if (r >= 0)
		r = start_listening(tcp, err);
	if (r >= 0) {
		tcp->timer = event_new(config->base, -1, EV_PERSIST, on_timer, tcp);
		if (!tcp->timer || event_add(tcp->timer, &period) < 0)
			r = cw_err_set(err, ENOMEM, "out of memory");
	}
	if (r < 0) {
		cw_tcp_free(tcp);
		return r;
	}
	cw_transport_set_backend(config->transport, &tcp_ops, tcp);
	on_timer(-1, 0, tcp); /* dial at once */
	*ret = tcp;
	return 0;
}

static void say_goodbye(struct conn *c)
{
	struct cw_message msg = {
		.type = CW_MSG_PEER_GOODBYE,
		.peer_goodbye = { .reason = "stopping" },
	};
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;

	/* What is queued cannot be flushed now, and a goodbye must not land inside a frame. */
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) > 0)
		return;
	if (cw_message_encode(&msg, &frame, &len) == 0)
		(void)send(bufferevent_getfd(c->bev), frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

struct cw_tcp *cw_tcp_free(struct cw_tcp *tcp)
{
	struct conn *c, *tmp;

	if (!tcp)
		return NULL;
	cw_transport_set_backend(tcp->config.transport, NULL, NULL);
	DL_FOREACH_SAFE (tcp->conns, c, tmp) {
		if (c->is_up)
			say_goodbye(c);
		conn_close(c);
	}
	if (tcp->listener)
		evconnlistener_free(tcp->listener);
	if (tcp->timer)
		event_free(tcp->timer);
	free(tcp->links);
	free(tcp);
	return NULL;
}

void cw_tcp_stats(const struct cw_tcp *tcp, struct cw_tcp_stats *ret)
{
	*ret = tcp->stats;
}
