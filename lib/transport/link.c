/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A link is what we know about reaching one peer: its addresses, and the time of the next dial. We
 * dial the addresses in turn. One child process looks up the host names of all links; we call this
 * a round. The next round begins after the last link that got an answer. One slow name therefore
 * does not starve the others.
 */
#include "transport/link.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "transport/conn.h"
#include "transport/resolve.h"

int cw_link_init_all(struct cw_tcp *tcp, struct cw_err *err)
{
	const char *self = cw_transport_self(tcp->config.transport);
	const struct cw_peer *peers;
	int r;

	peers = cw_transport_peers(tcp->config.transport, &tcp->n_links);
	/*
	 * Allocate the largest size at once. The kernel provides memory only for the pages that we
	 * use.
	 */
	tcp->links = calloc(tcp->config.find_under ? CW_TRANSPORT_MAX_PEERS : tcp->n_links + 1,
			    sizeof(*tcp->links));
	if (!tcp->links)
		return cw_err_set(err, ENOMEM, "out of memory");
	for (unsigned i = 0; i < tcp->n_links; i++) {
		struct cw_link *link = &tcp->links[i];

		r = cw_address_parse(peers[i].address, &link->address, err);
		if (r < 0)
			return r;
		if (!tcp->tls && !cw_address_is_loopback(&link->address))
			return cw_err_set(err, EACCES,
					  "peer %s: '%s' is not loopback, and no key "
					  "is set",
					  peers[i].name, peers[i].address);
		if (link->address.len)
			link->addresses[link->n_addresses++] = link->address.numeric;
		link->is_ours = strcmp(self, peers[i].name) < 0;
		link->backoff_ms = CW_TCP_BACKOFF_MIN_MS;
	}
	return 0;
}

const struct sockaddr *cw_link_next_address(struct cw_link *link)
{
	if (!link->n_addresses)
		return NULL;
	return (struct sockaddr *)&link->addresses[link->next_address++ % link->n_addresses];
}

void cw_link_back_off(struct cw_tcp *tcp, struct cw_link *link)
{
	link->is_dialing = false;
	link->dial_ns = cw_clock_awake_ns(tcp->config.clock) + link->backoff_ms * CW_NS_PER_MS;
	link->backoff_ms = link->backoff_ms * 2 > CW_TCP_BACKOFF_MAX_MS ? CW_TCP_BACKOFF_MAX_MS
									: link->backoff_ms * 2;
}

/* ---- names ---- */

static void on_address(uint32_t tag, const struct sockaddr *address, const char *error, void *user)
{
	struct cw_tcp *tcp = user;
	struct cw_link *link;
	uint64_t n;

	if (tag >= tcp->n_links)
		return;
	link = &tcp->links[tag];
	tcp->resolve_next = tag + 1;
	if (!address) {
		n = ++link->unresolved; /* the addresses of earlier lookups stay */
		if ((n & (n - 1)) == 0)
			log_warn("peer %s: host name %s: %s (%llu time%s so far)",
				 cw_conn_peer_name(tcp, tag), link->address.host, error,
				 (unsigned long long)n, n == 1 ? "" : "s");
		return;
	}
	if (link->n_found >= CW_LINK_MAX_ADDRESSES)
		return;
	memset(&link->addresses[link->n_found], 0, sizeof(link->addresses[0]));
	memcpy(&link->addresses[link->n_found++], address, cw_sockaddr_len(address));
	link->n_addresses = link->n_found;
	link->unresolved = 0;
}

static void on_round_done(void *user)
{
	struct cw_tcp *tcp = user;

	/*
	 * Skip the name whose lookup did not end within the round. Otherwise each round would begin
	 * with this name, and the names after it would get no answer.
	 */
	tcp->resolve_next++;
	tcp->resolve = cw_resolve_free(tcp->resolve);
	tcp->resolve_ns = cw_clock_awake_ns(tcp->config.clock) + CW_TCP_LOOK_UP_NS;
}

void cw_link_look_up_all(struct cw_tcp *tcp, int64_t now_ns)
{
	_cleanup_(freep) struct cw_resolve_name *names = NULL;
	unsigned n = 0;
	int r;

	if (tcp->resolve || now_ns < tcp->resolve_ns || !tcp->n_links)
		return;
	names = calloc(tcp->n_links, sizeof(*names));
	for (uint32_t k = 0; names && k < tcp->n_links; k++) {
		uint32_t i = (tcp->resolve_next + k) % tcp->n_links;
		struct cw_link *link = &tcp->links[i];

		link->n_found = 0;
		if (link->address.len || link->conn || link->is_found)
			continue;
		names[n++] = (struct cw_resolve_name){ .host = link->address.host,
						       .port = link->address.port,
						       .tag = i };
	}
	tcp->resolve_ns = now_ns + CW_TCP_LOOK_UP_NS;
	if (!n)
		return;
	r = cw_resolve_start(tcp->children, names, n, on_address, on_round_done, tcp,
			     &tcp->resolve);
	if (r < 0)
		log_warn("host names of peers cannot be looked up: %s; tried again", strerror(-r));
}

/* ---- addresses ---- */

/*
 * Returns the bytes of an address. An IPv4 address that is mapped into IPv6 gives its 4 bytes. A
 * socket that listens for both families shows IPv4 addresses in this form.
 */
static const uint8_t *bytes_of(const struct sockaddr *a, size_t *ret_len)
{
	const struct in6_addr *in6 = &((const struct sockaddr_in6 *)a)->sin6_addr;

	if (a->sa_family == AF_INET) {
		*ret_len = 4;
		return (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr;
	}
	*ret_len = IN6_IS_ADDR_V4MAPPED(in6) ? 4 : 16;
	return *ret_len == 4 ? in6->s6_addr + 12 : in6->s6_addr;
}

static bool has_same_prefix(const struct sockaddr *a, const struct sockaddr *b, size_t max_bytes)
{
	size_t len_a, len_b;
	const uint8_t *bytes_a, *bytes_b;

	if (!cw_sockaddr_len(a) || !cw_sockaddr_len(b))
		return false;
	bytes_a = bytes_of(a, &len_a);
	bytes_b = bytes_of(b, &len_b);
	return len_a == len_b && !memcmp(bytes_a, bytes_b, len_a < max_bytes ? len_a : max_bytes);
}

bool cw_link_is_same_source(const struct sockaddr *a, const struct sockaddr *b)
{
	return has_same_prefix(a, b, 8);
}

uint32_t cw_link_at(const struct cw_tcp *tcp, const struct sockaddr *address)
{
	uint32_t found = CW_NO_PEER;

	for (uint32_t i = 0; i < tcp->n_links; i++) {
		const struct cw_link *link = &tcp->links[i];
		bool is_there = false;

		for (unsigned k = 0; k < link->n_addresses; k++)
			is_there |= has_same_prefix(address, (struct sockaddr *)&link->addresses[k],
						    16);
		if (is_there && found != CW_NO_PEER)
			return CW_NO_PEER;
		if (is_there)
			found = i;
	}
	return found;
}

const char *cw_link_format(const struct sockaddr *address, char *buf, size_t len)
{
	size_t n = 0;
	const uint8_t *bytes = cw_sockaddr_len(address) ? bytes_of(address, &n) : NULL;

	if (!bytes || !inet_ntop(n == 4 ? AF_INET : AF_INET6, bytes, buf, (socklen_t)len))
		(void)snprintf(buf, len, "somebody");
	return buf;
}
