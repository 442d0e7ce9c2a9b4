/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each side of a new connection sends a hello first. Before the other side's hello we accept only a
 * hello or a goodbye. The hello decides which peer it is. We check the key or certificate first,
 * and then the name. A peer repeats its hello every two seconds; we call a repeated hello a beat.
 *
 * libevent calls us once for all bytes that have arrived. We therefore read frames until the input
 * holds no complete frame.
 */
#include "transport/conn.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "transport/discovery.h"
#include "transport/tls.h"

/* ---- output ---- */

static int send_frame(struct cw_conn *c, const uint8_t *frame, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (evbuffer_get_length(out) + len > CW_TCP_MAX_OUTPUT)
		return -ENOBUFS;
	return bufferevent_write(c->bev, frame, len) < 0 ? -ENOMEM : 0;
}

static int send_message(struct cw_conn *c, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r = cw_message_encode(msg, &frame, &len);

	return r < 0 ? r : send_frame(c, frame, len);
}

int cw_conn_send_hello(struct cw_conn *c)
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
	struct cw_conn *c = tcp->links[peer].conn;

	return c ? send_frame(c, frame, len) : -ENOTCONN;
}

const struct cw_transport_ops cw_conn_ops = { .send = on_send };

/* ---- hello ---- */

static uint32_t find_peer(const struct cw_tcp *tcp, const char *name)
{
	const struct cw_peer *peers;
	unsigned n;

	peers = cw_transport_peers(tcp->config.transport, &n);
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(peers[i].name, name))
			return i;
	return CW_NO_PEER;
}

const char *cw_conn_peer_name(const struct cw_tcp *tcp, uint32_t peer)
{
	unsigned n;

	return cw_transport_peers(tcp->config.transport, &n)[peer].name;
}

/*
 * Checks the hello of a peer that no list names. Returns NULL if we accept the peer, otherwise the
 * reason for the refusal.
 */
static const char *refuse_stranger(const struct cw_conn *c, const struct cw_msg_peer_hello *hello)
{
	if (!strcmp(hello->node, cw_transport_self(c->tcp->config.transport)))
		return "it has the name of this node";
	if (hello->version_max < CW_WIRE_VERSION_MIN || hello->version_min > CW_WIRE_VERSION)
		return "no protocol version in common";
	if (c->tcp->tls && !cw_tls_may_be(c->bev, hello->node))
		return "its certificate does not name that node";
	/*
	 * Check the owner of the listener that we dialed. We do it only now, because the kernel
	 * shows the connection as root's until the owner has accepted it. The hello proves that the
	 * owner has accepted it.
	 */
	if (!c->tcp->tls && c->is_dialed && !c->is_up &&
	    !cw_tcp_is_trusted(bufferevent_getfd(c->bev), (const struct sockaddr *)&c->from))
		return "the listening process runs as neither root nor this daemon's user";
	return NULL;
}

/*
 * Returns the epoch of the hello, or 0 if the epoch is too far in the future. Any other epoch is
 * newer than 0. Of two connections with epoch 0, the newest wins.
 */
static uint64_t believable_epoch(const struct cw_conn *c, const struct cw_msg_peer_hello *hello)
{
	uint64_t now = (uint64_t)cw_clock_wall_ns(c->tcp->config.clock);

	return hello->epoch <= now + CW_TCP_EPOCH_AHEAD_NS ? hello->epoch : 0;
}

static const char *refuse_peer(const struct cw_conn *c, const struct cw_msg_peer_hello *hello,
			       uint32_t peer)
{
	const struct cw_conn *other;

	if (peer == CW_NO_PEER)
		return c->tcp->discovery ? "there are too many peers" : "it is not among the peers";
	if (c->is_dialed && c->peer != CW_NO_PEER && peer != c->peer)
		return "another node answers at its address";
	other = c->tcp->links[peer].conn;
	if (other && other != c && other->epoch > believable_epoch(c, hello))
		return "a newer daemon of that name is connected";
	return NULL;
}

static bool is_myself(const struct cw_conn *c, const struct cw_msg_peer_hello *hello)
{
	return c->tcp->discovery && hello->epoch == c->tcp->config.epoch &&
	       !strcmp(hello->node, cw_transport_self(c->tcp->config.transport));
}

/*
 * Returns whether to drop this connection, because both sides dialed and there are now two. Both
 * sides must drop the same connection. Otherwise each could drop the one that the other keeps.
 */
static bool is_spare(const struct cw_conn *c, const struct cw_msg_peer_hello *hello, uint32_t peer)
{
	const struct cw_conn *other = c->tcp->links[peer].conn;

	return c->tcp->discovery && other && other != c &&
	       other->epoch == believable_epoch(c, hello) &&
	       cw_discovery_is_preferred(other, hello->node) &&
	       !cw_discovery_is_preferred(c, hello->node);
}

void cw_conn_log_refusal(const char *name, uint64_t n, const char *why)
{
	if ((n & (n - 1)) == 0)
		log_warn("peer %s refused (%llu refused so far): %s", name, (unsigned long long)n,
			 why);
}

static void be_up(struct cw_conn *c, uint32_t peer, const struct cw_msg_peer_hello *hello)
{
	struct cw_link *link = &c->tcp->links[peer];

	if (link->conn) {
		link->conn->is_replaced = true;
		cw_conn_close(link->conn);
	}
	c->peer = peer;
	c->epoch = believable_epoch(c, hello);
	c->is_up = true;
	link->conn = c;
	link->is_dialing = false;
	link->backoff_ms = CW_TCP_BACKOFF_MIN_MS;
	cw_transport_peer_up(c->tcp->config.transport, peer, c->epoch);
	log_info("peer %s: connected", hello->node);
}

static void on_hello(struct cw_conn *c, const struct cw_msg_peer_hello *hello)
{
	uint32_t peer = find_peer(c->tcp, hello->node);
	const char *why;

	if (is_myself(c, hello)) {
		cw_discovery_identified(c, CW_NO_PEER);
		c->is_refused = true;
		return;
	}
	why = refuse_stranger(c, hello);
	if (!why && peer == CW_NO_PEER && c->tcp->discovery && !c->is_up)
		peer = cw_discovery_add_peer(c->tcp->discovery, c, hello->node);
	if (!why)
		why = refuse_peer(c, hello, peer);
	if (!why && c->is_up && peer == c->peer)
		return; /* a beat needs no further work */
	if (why || c->is_up) {
		why = why ? why : "it changed its name";
		cw_conn_log_refusal(hello->node, ++c->tcp->stats.refused, why);
		cw_discovery_refused(c, why);
		c->is_refused = true;
		return;
	}
	cw_discovery_identified(c, peer);
	c->is_refused = is_spare(c, hello, peer);
	if (!c->is_refused)
		be_up(c, peer, hello);
}

/* ---- input ---- */

/* Handles one frame. Returns -EPROTO if the connection must be closed. */
static int on_frame(struct cw_conn *c, const uint8_t *payload, size_t len)
{
	struct cw_message *msg = NULL;
	int r;

	if (c->tcp->tls && !c->is_authentic)
		return -EPROTO; /* no message is valid before the end of the handshake */
	r = cw_message_decode_received(payload, len, &msg);
	if (r < 0)
		return -EPROTO;
	if (msg->type == CW_MSG_PEER_HELLO)
		on_hello(c, &msg->peer_hello);
	else if (msg->type == CW_MSG_PEER_GOODBYE)
		c->said_goodbye = true;
	else if (!c->is_up)
		r = -EPROTO; /* a message came before the hello */
	if (c->is_refused)
		r = -EPROTO;
	else if (r == 0 && c->is_up)
		cw_transport_peer_seen(c->tcp->config.transport, c->peer);
	if (r < 0 || msg->type == CW_MSG_PEER_HELLO || msg->type == CW_MSG_PEER_GOODBYE) {
		cw_message_free(msg);
		return r;
	}
	cw_transport_deliver(c->tcp->config.transport, c->peer, msg);
	return 0;
}

static void on_read(struct bufferevent *bev, void *user)
{
	struct cw_conn *c = user;
	struct evbuffer *in = bufferevent_get_input(bev);
	const uint8_t *payload;
	size_t have, len, used;
	int r = 0;

	/* Read all frames that have arrived, because libevent does not call us again for them. */
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
			(void)evbuffer_drain(in, used); /* cannot fail: the bytes are there */
	}
	if (r < 0) {
		c->tcp->stats.protocol_errors += !c->is_refused;
		cw_conn_close(c);
	}
}

/* ---- end of a handshake ---- */

static void refuse_key(struct cw_conn *c, enum cw_peer_refusal why, const char *text)
{
	struct cw_tcp *tcp = c->tcp;
	const struct sockaddr *from = (struct sockaddr *)&c->from;
	uint32_t peer = c->peer != CW_NO_PEER ? c->peer : cw_link_at(tcp, from);
	char address[INET6_ADDRSTRLEN];

	tcp->stats.refused++;
	cw_discovery_refused(c, cw_peer_refusal_words(why));
	if (peer == CW_NO_PEER) {
		cw_conn_log_refusal(cw_link_format(from, address, sizeof(address)),
				    tcp->stats.refused, text);
		return;
	}
	cw_transport_peer_refused(tcp->config.transport, peer, why);
	cw_conn_log_refusal(cw_conn_peer_name(tcp, peer), ++tcp->links[peer].refused, text);
}

static void explain_failure(struct cw_conn *c)
{
	char text[128];

	switch (cw_tls_why(c->bev, text, sizeof(text))) {
	case CW_TLS_KEY_DIFFERS:
		c->tcp->stats.key_differs++;
		refuse_key(c, CW_PEER_KEY_DIFFERS,
			   "its key differs from the one in this node's peer_key_file");
		break;
	case CW_TLS_NO_KEY:
		c->tcp->stats.tls_errors++;
		refuse_key(c, CW_PEER_NO_KEY,
			   "it speaks without TLS: neither key nor certificate is set there");
		break;
	case CW_TLS_CERTIFICATE:
		c->tcp->stats.tls_errors++;
		refuse_key(c, CW_PEER_CERTIFICATE, text);
		break;
	case CW_TLS_OTHER:
		c->tcp->stats.tls_errors++;
		refuse_key(c, CW_PEER_TLS, text);
		break;
	case CW_TLS_LOST:
		break;
	}
}

static void on_event(struct bufferevent *bev, short what, void *user)
{
	struct cw_conn *c = user;

	if (what & BEV_EVENT_CONNECTED) {
		c->is_authentic = c->tcp->tls && cw_tls_is_authentic(bev);
		if (!c->tcp->tls || c->is_authentic)
			return;
		refuse_key(c, CW_PEER_TLS, "it did not prove that it belongs to the cluster");
	} else if (c->tcp->tls && !c->is_up) {
		explain_failure(c);
	}
	cw_conn_close(c);
}

/* ---- life ---- */

void cw_conn_close(struct cw_conn *c)
{
	struct cw_tcp *tcp = c->tcp;
	struct cw_link *link = c->peer == CW_NO_PEER ? NULL : &tcp->links[c->peer];

	if (link && link->conn == c) {
		link->conn = NULL;
		cw_transport_peer_down(tcp->config.transport, c->peer, c->said_goodbye);
		if (!c->is_replaced)
			log_info("peer %s: %s", cw_conn_peer_name(tcp, c->peer),
				 c->said_goodbye ? "said goodbye" : "connection lost");
	}
	if (link && c->is_dialed && !c->candidate)
		cw_link_back_off(tcp, link);
	cw_discovery_closed(c);
	DL_DELETE(tcp->conns, c);
	tcp->stats.connections--;
	bufferevent_free(c->bev);
	free(c);
}

/*
 * Sets socket options that end the connection if the other host vanishes. We ignore errors: without
 * the options such a connection only ends later.
 */
static void tune_socket(const struct cw_tcp *tcp, int fd)
{
	const unsigned unacked_ms = CW_TCP_UNACKED_MS;
	const int yes = 1;

	if (!tcp->tls)
		return;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

struct cw_conn *cw_conn_new(struct cw_tcp *tcp, int fd, uint32_t peer)
{
	struct event_base *base = tcp->config.base;
	struct cw_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->bev = tcp->tls ? cw_tls_bufferevent(tcp->tls, base, fd, fd < 0)
			  : bufferevent_socket_new(base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!c->bev) {
		free(c);
		return NULL;
	}
	c->tcp = tcp;
	c->peer = peer;
	c->is_dialed = fd < 0;
	c->opened_ns = cw_clock_awake_ns(tcp->config.clock);
	bufferevent_setcb(c->bev, on_read, NULL, on_event, c);
	/*
	 * Limit our input buffer. If a peer sends faster than we read, its data then waits in the
	 * peer's kernel.
	 */
	bufferevent_setwatermark(c->bev, EV_READ, 0,
				 2 * (CW_FRAME_MAX_BYTES + CW_FRAME_HEADER_BYTES));
	(void)bufferevent_enable(c->bev, EV_READ | EV_WRITE);
	if (fd >= 0)
		tune_socket(tcp, fd);
	DL_APPEND(tcp->conns, c);
	tcp->stats.connections++;
	return c;
}

struct cw_conn *cw_conn_dial(struct cw_tcp *tcp, const struct sockaddr *address, uint32_t peer,
			     struct cw_candidate *candidate)
{
	struct cw_conn *c = cw_conn_new(tcp, -1, peer);

	if (!c)
		return NULL;
	tcp->stats.dialed++;
	memcpy(&c->from, address, cw_sockaddr_len(address));
	c->candidate = candidate;
	cw_discovery_dialed(c);
	if (bufferevent_socket_connect(c->bev, address, (int)cw_sockaddr_len(address)) < 0 ||
	    cw_conn_send_hello(c) < 0) {
		cw_conn_close(c);
		return NULL;
	}
	tune_socket(tcp, bufferevent_getfd(c->bev));
	return c;
}

void cw_conn_say_goodbye(struct cw_conn *c)
{
	struct cw_message msg = {
		.type = CW_MSG_PEER_GOODBYE,
		.peer_goodbye = { .reason = "stopping" },
	};
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;

	/*
	 * If some output is still unsent, send no goodbye. The goodbye could land inside a frame
	 * that was sent only in part.
	 */
	if (evbuffer_get_length(bufferevent_get_output(c->bev)) > 0)
		return;
	if (cw_message_encode(&msg, &frame, &len) < 0)
		return;
	if (c->tcp->tls)
		cw_tls_write_last(c->bev, frame, len);
	else
		(void)send(bufferevent_getfd(c->bev), frame, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}
