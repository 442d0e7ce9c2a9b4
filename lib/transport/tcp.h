/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connects peers over direct TCP. This is the backend of transport.c. Of two nodes, the node whose
 * name sorts first dials. It retries forever, with growing pauses. Each side first sends a hello
 * with its name, its range of versions and the epoch (start time) of its daemon. Each side repeats
 * its hello regularly; we call this a beat. Without beats we would not notice a daemon that is
 * stopped but still connected.
 *
 * With a key or certificates, every connection uses TLS 1.3, and both sides prove that they belong
 * to the cluster (tls.h). Peers may then be on other hosts and have host names, which a child
 * process looks up (resolve.h). Without a key, we listen, dial and accept only on loopback. We then
 * accept only sockets of root or of the daemon's own user.
 *
 * A hello must arrive within 5 s after the connection opens. Unless we discover peers, it must name
 * a configured peer. Otherwise we close the connection. Of two connections to one peer we keep the
 * connection with the newest epoch. An epoch in the future counts as the oldest. We store a peer's
 * unsent output up to a limit. Beyond the limit we drop and count frames, without waiting.
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

/* Maximum size of unsent output for one peer. Some windows and digests fit, but no long backlog. */
#define CW_TCP_MAX_OUTPUT (16u << 20)
/* Maximum number of connections that have not sent a hello yet. We call them strangers. */
#define CW_TCP_MAX_STRANGERS 64u
/*
 * Maximum number of strangers per source address. The limit applies only with a key. Without a key
 * all connections come from loopback, so the address does not tell hosts apart.
 */
#define CW_TCP_MAX_STRANGERS_PER_ADDRESS 8u
#define CW_TCP_HELLO_NS (5 * CW_NS_PER_S)
/* Time until we look up the names of unconnected peers again. */
#define CW_TCP_LOOK_UP_NS (10 * CW_NS_PER_S)
/*
 * If the kernel gets no acknowledgement for this long, it ends the connection. Before that, a
 * vanished host counts as silent instead of unreachable, and we send no alert. A peer counts as
 * silent after 10 s.
 */
#define CW_TCP_UNACKED_MS 15000u
/*
 * We accept no epoch that is further in the future. Such an epoch means a wrong clock or a lie. A
 * false epoch would otherwise be the newest for good, and the real owner of the name could not
 * connect. If the clocks of a cluster differ by more, the cluster has other problems.
 */
#define CW_TCP_EPOCH_AHEAD_NS (3600 * CW_NS_PER_S)
#define CW_TCP_BACKOFF_MIN_MS 100u
#define CW_TCP_BACKOFF_MAX_MS 2000u

struct cw_tcp_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_transport *transport; /* borrowed; cw_tcp_new() sets its backend */
	uint64_t epoch;                 /* wall time of this daemon's start, ns */
	const char *listen;             /* address and port, such as "127.0.0.1:7411" */
	/*
	 * Where to discover peers (discovery.h), "host:port"; NULL = the configuration lists the
	 * peers.
	 */
	const char *find_under;
	struct cw_tls_files tls; /* all NULL = no TLS, and loopback only */
};

/* Returns 0, or -errno with err set. */
int cw_tcp_new(const struct cw_tcp_config *config, struct cw_tcp **ret, struct cw_err *err);
/*
 * Sends a goodbye to each peer, if its socket accepts it at once. Then closes all connections.
 * Takes NULL; returns NULL.
 */
struct cw_tcp *cw_tcp_free(struct cw_tcp *tcp);

struct cw_tcp_stats {
	uint64_t accepted, refused, dialed, protocol_errors;
	uint64_t too_slow; /* connections closed because no hello came within CW_TCP_HELLO_NS */
	/* Connections closed at a limit of strangers; `refused` includes them. */
	uint64_t too_many;
	uint64_t key_differs; /* handshakes that failed on either side because the keys differ */
	uint64_t tls_errors;  /* handshakes that failed for other reasons */
	uint32_t connections;
};
/* Writes a note for users about problems of discovery. "" = there are none. Returns buf. */
const char *cw_tcp_note(const struct cw_tcp *tcp, char *buf, size_t len);
void cw_tcp_stats(const struct cw_tcp *tcp, struct cw_tcp_stats *ret);
