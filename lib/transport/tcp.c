/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The backend has one listener and one timer. A stranger is a connection that has sent no hello
 * yet. We limit the number of strangers, and close a stranger that sends no hello in time (conn.h).
 * The timer sends beats (repeated hellos) to connected peers, starts lookups, and dials the peers
 * that this side has to dial (link.h). discovery.h finds peers that the configuration does not
 * list.
 */
#include "transport/tcp.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "common/log.h"
#include "loop/accept_pause.h"
#include "loop/children.h"
#include "loop/events.h"
#include "transport/conn.h"
#include "transport/discovery.h"
#include "transport/peer_uid.h"
#include "transport/resolve.h"
#include "transport/tls.h"

/* ---- incoming connections ---- */

bool cw_tcp_is_trusted(int fd, const struct sockaddr *from)
{
	uid_t uid;

	return cw_sockaddr_is_loopback(from) && cw_peer_uid(fd, &uid) == 0 &&
	       (uid == 0 || uid == geteuid());
}

static bool has_room(const struct cw_tcp *tcp, const struct sockaddr *from)
{
	const struct cw_conn *c;
	unsigned n = 0, n_from = 0;

	DL_FOREACH (tcp->conns, c) {
		if (c->is_up || c->is_dialed)
			continue;
		n++;
		n_from += cw_link_is_same_source(from, (const struct sockaddr *)&c->from);
	}
	return n < CW_TCP_MAX_STRANGERS && (!tcp->tls || n_from < CW_TCP_MAX_STRANGERS_PER_ADDRESS);
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
		      int len, void *user)
{
	struct cw_tcp *tcp = user;
	struct cw_conn *c = NULL;
	bool is_room = has_room(tcp, from);

	(void)cw_accept_pause_took(tcp->pause, fd);
	tcp->stats.too_many += !is_room;
	if (is_room && (tcp->tls || cw_tcp_is_trusted(fd, from)))
		c = cw_conn_new(tcp, fd, CW_NO_PEER);
	if (!c) {
		tcp->stats.refused++;
		(void)evutil_closesocket(fd);
		return;
	}
	memcpy(&c->from, from, cw_sockaddr_len(from));
	tcp->stats.accepted++;
	if (cw_conn_send_hello(c) < 0)
		cw_conn_close(c);
}

/* ---- time ---- */

static void dial(struct cw_tcp *tcp, uint32_t peer)
{
	struct cw_link *link = &tcp->links[peer];
	const struct sockaddr *address = cw_link_next_address(link);

	if (address)
		link->is_dialing = cw_conn_dial(tcp, address, peer, NULL) != NULL;
}

static void drop_the_slow(struct cw_tcp *tcp, int64_t now)
{
	struct cw_conn *c, *tmp;

	DL_FOREACH_SAFE (tcp->conns, c, tmp) {
		if (c->is_up || now - c->opened_ns <= CW_TCP_HELLO_NS)
			continue;
		tcp->stats.too_slow++;
		cw_conn_close(c);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	struct cw_tcp *tcp = user;
	int64_t now = cw_clock_awake_ns(tcp->config.clock);
	struct cw_conn *c, *tmp;

	drop_the_slow(tcp, now);
	if (now >= tcp->beat_ns) {
		tcp->beat_ns = now + CW_PEER_BEAT_NS;
		DL_FOREACH_SAFE (tcp->conns, c, tmp)
			if (c->is_up) /* if this fails, the peer takes us for silent */
				(void)cw_conn_send_hello(c);
	}
	cw_link_look_up_all(tcp, now);
	if (tcp->discovery)
		cw_discovery_tick(tcp->discovery, now);
	for (uint32_t i = 0; i < tcp->n_links; i++) {
		struct cw_link *link = &tcp->links[i];

		if (link->is_ours && !link->conn && !link->is_dialing && now >= link->dial_ns)
			dial(tcp, i);
	}
}

/* ---- life ---- */

static struct evconnlistener *listen_on(struct cw_tcp *tcp, const struct cw_address *address)
{
	return evconnlistener_new_bind(
		tcp->config.base, on_accept, tcp,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, 64,
		(const struct sockaddr *)&address->numeric, (int)address->len);
}

static int start_listening(struct cw_tcp *tcp, struct cw_err *err)
{
	struct sockaddr_in any4 = { .sin_family = AF_INET };
	struct cw_address address;
	int r;

	r = cw_address_parse(tcp->config.listen, &address, err);
	if (r < 0)
		return r;
	if (!address.len || (!tcp->tls && !cw_address_is_loopback(&address)))
		return cw_err_set(err, EACCES,
				  "listen: '%s' is not a loopback address, and no key "
				  "is set",
				  tcp->config.listen);
	tcp->listener = listen_on(tcp, &address);
	if (!tcp->listener && errno == EAFNOSUPPORT && cw_address_is_any(&address)) {
		any4.sin_port = htons(address.port); /* IPv4 instead, for a kernel without IPv6 */
		memcpy(&address.numeric, &any4, sizeof(any4));
		address.len = sizeof(any4);
		tcp->listener = listen_on(tcp, &address);
	}
	if (!tcp->listener)
		return cw_err_set(err, errno, "cannot listen on %s: %m", tcp->config.listen);
	if (cw_accept_pause_watch(tcp->config.base, tcp->config.clock, CW_LISTENER_PEER,
				  tcp->listener, &tcp->pause) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}

static int start(struct cw_tcp *tcp, struct cw_err *err)
{
	const struct timeval period = { .tv_usec = CW_TCP_BACKOFF_MIN_MS * 1000 };
	int r = 0;

	if (tcp->config.tls.key || tcp->config.tls.cert)
		r = cw_tls_new(&tcp->config.tls, cw_transport_self(tcp->config.transport),
			       &tcp->tls, err);
	if (r >= 0 && cw_children_new(tcp->config.base, &tcp->children) < 0)
		r = cw_err_set(err, ENOMEM, "out of memory");
	if (r >= 0)
		r = cw_link_init_all(tcp, err);
	if (r >= 0 && tcp->config.find_under)
		r = cw_discovery_new(tcp, tcp->config.find_under, &tcp->discovery, err);
	if (r >= 0)
		r = start_listening(tcp, err);
	if (r < 0)
		return r;
	tcp->timer = event_new(tcp->config.base, -1, EV_PERSIST, on_timer, tcp);
	if (!tcp->timer || event_add(tcp->timer, &period) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	return 0;
}

int cw_tcp_new(const struct cw_tcp_config *config, struct cw_tcp **ret, struct cw_err *err)
{
	struct cw_tcp *tcp = calloc(1, sizeof(*tcp));
	int r;

	if (!tcp)
		return cw_err_set(err, ENOMEM, "out of memory");
	tcp->config = *config;
	r = start(tcp, err);
	if (r < 0) {
		cw_tcp_free(tcp);
		return r;
	}
	cw_transport_set_backend(config->transport, &cw_conn_ops, tcp);
	on_timer(-1, 0, tcp); /* dial at once, not only after the first interval */
	*ret = tcp;
	return 0;
}

struct cw_tcp *cw_tcp_free(struct cw_tcp *tcp)
{
	struct cw_conn *c, *tmp;

	if (!tcp)
		return NULL;
	cw_transport_set_backend(tcp->config.transport, NULL, NULL);
	DL_FOREACH_SAFE (tcp->conns, c, tmp) {
		if (c->is_up)
			cw_conn_say_goodbye(c);
		cw_conn_close(c);
	}
	cw_resolve_free(tcp->resolve);
	cw_discovery_free(tcp->discovery);
	(void)cw_children_free(tcp->children); /* always NULL */
	cw_accept_pause_free(tcp->pause);
	if (tcp->listener)
		evconnlistener_free(tcp->listener);
	event_freep(&tcp->timer);
	cw_tls_free(tcp->tls);
	free(tcp->links);
	free(tcp);
	return NULL;
}

const char *cw_tcp_note(const struct cw_tcp *tcp, char *buf, size_t len)
{
	buf[0] = '\0';
	return tcp->discovery ? cw_discovery_note(tcp->discovery, buf, len) : buf;
}

void cw_tcp_stats(const struct cw_tcp *tcp, struct cw_tcp_stats *ret)
{
	*ret = tcp->stats;
}
