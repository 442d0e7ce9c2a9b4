/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers over direct TCP, the backend of transport.c in this version. Of two nodes, the one whose
 * name sorts first dials, and retries forever with backoff. Both sides say hello first: name,
 * version range, epoch of their start. A repeated hello is a beat, so we notice a daemon that is
 * stopped but still connected.
 *
 * With a key or certificates, every connection is TLS 1.3 and both sides prove that they belong to
 * the cluster (tls.h). Peers may then be anywhere, and may have host names, which a child process
 * looks up (resolve.h). Without a key, we listen, dial and accept only on loopback, and there only
 * sockets of root or of the daemon's own user.
 *
 * A hello must arrive within 5 s of the connection's opening, and must name a configured peer
 * unless we discover peers. Otherwise we drop the connection. Of two connections to one peer we
 * keep the one with the newest epoch; an epoch in the future means nothing, and counts as the
 * oldest. We store a peer's unread output up to a cap, and drop and count frames beyond it
 * without waiting.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"
#include "transport/tls.h"
#include "transport/transport.h"

struct event_base;
struct cw_tcp;

/*
 * Most unsent output for one peer. It has room for some windows and digests, but not for a backlog.
 */
#define CW_TCP_MAX_OUTPUT (16u << 20)
/* Most connections that have not sent a hello yet. */
#define CW_TCP_MAX_STRANGERS 64u
/*
 * Most such connections per source address. Applies only with a key, because only then do addresses
 * distinguish hosts.
 */
#define CW_TCP_MAX_STRANGERS_PER_ADDRESS 8u
#define CW_TCP_HELLO_NS (5 * CW_NS_PER_S)
/* If peers are not connected, we repeat their lookup after this time. */
#define CW_TCP_LOOK_UP_NS (10 * CW_NS_PER_S)
/*
 * If data stays unacknowledged for this long, the kernel gives up the connection. Until then a
 * vanished host is silent rather than unreachable, and we alert no user. Silence begins after 10 s.
 */
#define CW_TCP_UNACKED_MS 15000u
/*
 * No daemon starts later than this from now. A later epoch means a wrong clock, or a lie that would
 * lock out the owner of a name for good. If the clocks of a cluster differ by more, the cluster has
 * other problems.
 */
#define CW_TCP_EPOCH_AHEAD_NS (3600 * CW_NS_PER_S)
#define CW_TCP_BACKOFF_MIN_MS 100u
#define CW_TCP_BACKOFF_MAX_MS 2000u

struct cw_tcp_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_transport *transport; /* borrowed; we become its backend */
	uint64_t epoch;                 /* wall time of this daemon's start, ns */
	const char *listen;             /* "127.0.0.1:7411" */
	const char *find_under;         /* "host:port"; NULL = the configuration lists the peers
					   (discovery.h) */
	struct cw_tls_files tls;        /* all NULL = no TLS, loopback only */
};

/* 0, or -errno with err set. */
int cw_tcp_new(const struct cw_tcp_config *config, struct cw_tcp **ret, struct cw_err *err);
/*
 * Says goodbye to the peers, as far as their sockets accept it at once, and closes all connections.
 * Takes NULL.
 */
struct cw_tcp *cw_tcp_free(struct cw_tcp *tcp);

struct cw_tcp_stats {
	uint64_t accepted, refused, dialed, protocol_errors;
	uint64_t too_slow;    /* no hello within CW_TCP_HELLO_NS */
	uint64_t too_many;    /* over a limit of strangers; `refused` counts these, too */
	uint64_t key_differs; /* handshakes that failed on either side because the keys differ */
	uint64_t tls_errors;  /* handshakes that failed for other reasons */
	uint32_t connections;
};
/* Writes a note for people about discovered peers; "" = none. Returns buf. */
const char *cw_tcp_note(const struct cw_tcp *tcp, char *buf, size_t len);
void cw_tcp_stats(const struct cw_tcp *tcp, struct cw_tcp_stats *ret);
