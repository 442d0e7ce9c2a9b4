/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate is one address that the resolver returned for the host name. The hello from that
 * address tells us the candidate's peer. The peer then has a link, like a peer from the
 * configuration. After each failed dial of a candidate we wait longer, up to a limit.
 *
 * We forget a peer or a candidate if the successful answers of the last ten minutes lacked it. A
 * failed lookup is not an answer, so a broken resolver makes us forget no peer.
 */
#include "transport/discovery.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/htable.h"
#include "common/log.h"
#include "transport/conn.h"
#include "transport/resolve.h"

struct cw_candidate {
	UT_hash_handle hh;
	uint8_t key[16]; /* the address as IPv6; an IPv4 address is mapped */
	struct sockaddr_storage address;
	uint32_t peer; /* the last peer at this address; CW_NO_PEER = none yet */
	bool is_self;
	struct cw_conn *conn; /* the connection that we dialed; NULL = none */
	uint32_t backoff_ms;
	int64_t dial_ns; /* time of the next dial */
	int64_t seen_ns; /* time of the last answer with this address */
	unsigned failures;
	/* Reason of the last refusal, a static text; NULL = no daemon answered. */
	const char *refused;
};

struct cw_discovery {
	struct cw_tcp *tcp;
	char text[sizeof(((struct cw_address *)NULL)->host) + 8];
	struct cw_address name;
	struct cw_candidate *candidates;
	unsigned n_dialing;
	struct cw_resolve *resolve;
	int64_t next_ns;     /* time of the next lookup */
	unsigned alone;      /* consecutive lookups during which no peer was alive */
	int64_t answered_ns; /* time of the last answer with an address; 0 = none */
	bool has_answer;     /* true if the current lookup has returned an address */
	uint64_t failures;   /* number of consecutive failed lookups */
	char error[96];
	uint64_t too_many;
};

static int64_t now_of(const struct cw_discovery *discovery)
{
	return cw_clock_awake_ns(discovery->tcp->config.clock);
}

/* ---- addresses ---- */

static void make_key(const struct sockaddr *address, uint8_t key[16])
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)address;

	memset(key, 0, 16);
	if (address->sa_family == AF_INET) {
		key[10] = key[11] = 0xff;
		memcpy(key + 12, &in4->sin_addr, 4);
	} else {
		memcpy(key, &in6->sin6_addr, 16);
	}
}

static void add_candidate(struct cw_discovery *discovery, const struct sockaddr *address,
			  const uint8_t key[16])
{
	struct cw_candidate *candidate;

	if (HASH_COUNT(discovery->candidates) >= CW_DISCOVERY_MAX_ADDRESSES) {
		if (discovery->too_many++ == 0)
			log_warn("peers_from: %s has more than %u addresses: the others are not "
				 "dialed",
				 discovery->text, CW_DISCOVERY_MAX_ADDRESSES);
		return;
	}
	candidate = calloc(1, sizeof(*candidate));
	if (!candidate)
		return; /* out of memory: the next lookup tries again */
	memcpy(candidate->key, key, sizeof(candidate->key));
	memcpy(&candidate->address, address, cw_sockaddr_len(address));
	candidate->peer = CW_NO_PEER;
	candidate->backoff_ms = CW_TCP_BACKOFF_MIN_MS;
	candidate->seen_ns = now_of(discovery);
	HASH_ADD(hh, discovery->candidates, key, sizeof(candidate->key), candidate);
	if (!cw_htable_added(candidate))
		free(candidate);
}

static void on_address(uint32_t tag, const struct sockaddr *address, const char *error, void *user)
{
	struct cw_discovery *discovery = user;
	struct cw_candidate *candidate;
	uint8_t key[16];

	if (!address) {
		(void)snprintf(discovery->error, sizeof(discovery->error), "%s", error);
		return;
	}
	discovery->has_answer = true;
	make_key(address, key);
	HASH_FIND(hh, discovery->candidates, key, sizeof(key), candidate);
	if (candidate)
		candidate->seen_ns = now_of(discovery);
	else
		add_candidate(discovery, address, key);
}

/*
 * Returns the time until the next lookup. We look up more often while no peer is alive. When a
 * cluster starts, daemons run before DNS lists their addresses.
 */
static int64_t wait_ns(struct cw_discovery *discovery)
{
	unsigned n = discovery->alone < 4 ? discovery->alone : 4;

	if (cw_transport_n_alive(discovery->tcp->config.transport)) {
		discovery->alone = 0;
		return CW_DISCOVERY_LOOK_UP_NS;
	}
	discovery->alone++;
	return CW_NS_PER_S << n;
}

static void on_round_done(void *user)
{
	struct cw_discovery *discovery = user;
	uint64_t n;

	discovery->resolve = cw_resolve_free(discovery->resolve);
	discovery->next_ns = now_of(discovery) + wait_ns(discovery);
	if (discovery->has_answer) {
		discovery->answered_ns = now_of(discovery);
		discovery->failures = 0;
		return;
	}
	n = ++discovery->failures;
	if ((n & (n - 1)) == 0)
		log_warn("peers_from: %s: %s (%llu time%s so far); the earlier addresses stay",
			 discovery->text, discovery->error, (unsigned long long)n,
			 n == 1 ? "" : "s");
}

static void look_up(struct cw_discovery *discovery, int64_t now_ns)
{
	const struct cw_resolve_name name = { .host = discovery->name.host,
					      .port = discovery->name.port,
					      .max = CW_DISCOVERY_MAX_ADDRESSES };
	int r;

	if (discovery->resolve || now_ns < discovery->next_ns)
		return;
	discovery->next_ns = now_ns + CW_TCP_LOOK_UP_NS;
	discovery->has_answer = false;
	(void)snprintf(discovery->error, sizeof(discovery->error), "no answer within %d s",
		       (int)(CW_RESOLVE_NS / CW_NS_PER_S));
	r = cw_resolve_start(discovery->tcp->children, &name, 1, on_address, on_round_done,
			     discovery, &discovery->resolve);
	if (r < 0)
		log_warn("peers_from: %s cannot be looked up: %s; tried again", discovery->text,
			 strerror(-r));
}

/* ---- dialing ---- */

static bool is_connected(const struct cw_discovery *discovery, const struct cw_candidate *candidate)
{
	return candidate->peer != CW_NO_PEER && discovery->tcp->links[candidate->peer].conn;
}

static void dial_all(struct cw_discovery *discovery, int64_t now_ns)
{
	struct cw_candidate *candidate, *tmp;

	HASH_ITER (hh, discovery->candidates, candidate, tmp) {
		if (discovery->n_dialing >= CW_DISCOVERY_MAX_DIALS)
			return; /* the remaining candidates wait for the next call */
		if (candidate->conn || candidate->is_self || now_ns < candidate->dial_ns ||
		    is_connected(discovery, candidate))
			continue;
		(void)cw_conn_dial(discovery->tcp, (const struct sockaddr *)&candidate->address,
				   CW_NO_PEER, candidate);
	}
}

void cw_discovery_dialed(struct cw_conn *c)
{
	if (!c->candidate)
		return;
	c->candidate->conn = c;
	c->tcp->discovery->n_dialing++;
}

void cw_discovery_closed(struct cw_conn *c)
{
	struct cw_discovery *discovery = c->tcp->discovery;
	struct cw_candidate *candidate = c->candidate;
	uint32_t max_ms;

	if (!candidate)
		return;
	discovery->n_dialing -= !c->is_identified;
	candidate->conn = NULL;
	candidate->failures += !c->is_identified;
	max_ms =
		candidate->peer == CW_NO_PEER ? CW_DISCOVERY_BACKOFF_MAX_MS : CW_TCP_BACKOFF_MAX_MS;
	candidate->dial_ns = now_of(discovery) + candidate->backoff_ms * CW_NS_PER_MS;
	candidate->backoff_ms =
		2 * candidate->backoff_ms > max_ms ? max_ms : 2 * candidate->backoff_ms;
}

/* ---- identity ---- */

void cw_discovery_identified(struct cw_conn *c, uint32_t peer)
{
	struct cw_candidate *candidate = c->candidate;

	if (!candidate || c->is_identified)
		return;
	c->is_identified = true;
	c->tcp->discovery->n_dialing--;
	candidate->peer = peer;
	candidate->is_self = peer == CW_NO_PEER;
	candidate->failures = 0;
	candidate->refused = NULL;
	candidate->backoff_ms = CW_TCP_BACKOFF_MIN_MS;
}

void cw_discovery_refused(struct cw_conn *c, const char *why)
{
	if (c->candidate)
		c->candidate->refused = why;
}

uint32_t cw_discovery_add_peer(struct cw_discovery *discovery, const struct cw_conn *c,
			       const char *name)
{
	struct cw_tcp *tcp = discovery->tcp;
	struct cw_link *link;
	unsigned peer;

	if (!cw_node_name_is_valid(name, strlen(name)) ||
	    cw_transport_add_peer(tcp->config.transport, name, &peer) < 0)
		return CW_NO_PEER;
	link = &tcp->links[peer];
	*link = (struct cw_link){ .is_found = true, .n_addresses = 1 };
	/* The copied port is the peer's, and we never use it. */
	memcpy(&link->addresses[0], &c->from, sizeof(c->from));
	tcp->n_links = peer + 1;
	return peer;
}

bool cw_discovery_is_preferred(const struct cw_conn *c, const char *name)
{
	return c->is_dialed == (strcmp(cw_transport_self(c->tcp->config.transport), name) < 0);
}

/* ---- forgetting ---- */

/*
 * Returns whether the successful answers of the last ten minutes lacked the address. A failed
 * lookup is not an answer.
 */
static bool is_stale(const struct cw_discovery *discovery, int64_t since_ns)
{
	return discovery->answered_ns - since_ns > CW_DISCOVERY_FORGET_NS;
}

static void forget_candidates(struct cw_discovery *discovery)
{
	struct cw_candidate *candidate, *tmp;

	HASH_ITER (hh, discovery->candidates, candidate, tmp) {
		if (candidate->conn || is_connected(discovery, candidate) ||
		    !is_stale(discovery, candidate->seen_ns))
			continue;
		HASH_DEL(discovery->candidates, candidate);
		free(candidate);
	}
}

static bool is_wanted(const struct cw_discovery *discovery, uint32_t peer)
{
	const struct cw_link *link = &discovery->tcp->links[peer];
	unsigned n;
	const struct cw_peer *p = &cw_transport_peers(discovery->tcp->config.transport, &n)[peer];

	if (link->conn || !is_stale(discovery, p->last_seen_ns))
		return true;
	for (const struct cw_candidate *candidate = discovery->candidates; candidate;
	     candidate = candidate->hh.next)
		if (candidate->peer == peer)
			return true;
	return false;
}

/*
 * Removes a peer. The last peer then gets the removed peer's index, so we correct every reference
 * to the last peer.
 */
static void remove_peer(struct cw_discovery *discovery, uint32_t peer)
{
	struct cw_tcp *tcp = discovery->tcp;
	uint32_t last = tcp->n_links - 1;
	struct cw_conn *c;

	log_notice("peer %s: forgotten; it is not among the addresses of %s any more",
		   cw_conn_peer_name(tcp, peer), discovery->text);
	cw_transport_remove_peer(tcp->config.transport, peer);
	tcp->links[peer] = tcp->links[last];
	tcp->n_links = last;
	for (c = tcp->conns; c; c = c->next)
		if (c->peer == last)
			c->peer = peer;
	for (struct cw_candidate *candidate = discovery->candidates; candidate;
	     candidate = candidate->hh.next)
		if (candidate->peer == last)
			candidate->peer = peer;
}

void cw_discovery_tick(struct cw_discovery *discovery, int64_t now_ns)
{
	look_up(discovery, now_ns);
	forget_candidates(discovery);
	for (uint32_t i = discovery->tcp->n_links; i-- > 0;)
		if (!is_wanted(discovery, i))
			remove_peer(discovery, i);
	dial_all(discovery, now_ns);
}

/* ---- texts for users ---- */

const char *cw_discovery_note(const struct cw_discovery *discovery, char *buf, size_t len)
{
	char address[INET6_ADDRSTRLEN];
	const struct cw_candidate *worst = NULL;
	unsigned n = 0;

	buf[0] = '\0';
	if (discovery->failures) {
		(void)snprintf(buf, len, "peers_from: %.100s cannot be looked up: %s%s",
			       discovery->text, discovery->error,
			       discovery->answered_ns ? "; the earlier addresses stay" : "");
		return buf;
	}
	for (const struct cw_candidate *candidate = discovery->candidates; candidate;
	     candidate = candidate->hh.next) {
		if (candidate->is_self || is_connected(discovery, candidate) ||
		    !candidate->failures)
			continue;
		if (!worst || (candidate->refused && !worst->refused))
			worst = candidate;
		n++;
	}
	if (n)
		(void)snprintf(buf, len, "peers_from: %u of %u addresses of %.100s not met; %s: %s",
			       n, HASH_COUNT(discovery->candidates), discovery->text,
			       cw_link_format((const struct sockaddr *)&worst->address, address,
					      sizeof(address)),
			       worst->refused ? worst->refused : "no daemon answers");
	return buf;
}

/* ---- life ---- */

int cw_discovery_new(struct cw_tcp *tcp, const char *name, struct cw_discovery **ret,
		     struct cw_err *err)
{
	struct cw_discovery *discovery;
	int r;

	if (!tcp->tls)
		return cw_err_set(err, EACCES, "peers_from: '%s': no key is set", name);
	discovery = calloc(1, sizeof(*discovery));
	if (!discovery)
		return cw_err_set(err, ENOMEM, "out of memory");
	discovery->tcp = tcp;
	(void)snprintf(discovery->text, sizeof(discovery->text), "%s", name);
	r = cw_address_parse(name, &discovery->name, err);
	if (r < 0) {
		free(discovery);
		return r;
	}
	*ret = discovery;
	return 0;
}

struct cw_discovery *cw_discovery_free(struct cw_discovery *discovery)
{
	struct cw_candidate *candidate, *tmp;

	if (!discovery)
		return NULL;
	cw_resolve_free(discovery->resolve);
	HASH_ITER (hh, discovery->candidates, candidate, tmp) {
		HASH_DEL(discovery->candidates, candidate);
		free(candidate);
	}
	free(discovery);
	return NULL;
}
