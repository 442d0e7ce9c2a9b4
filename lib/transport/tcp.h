/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peers over direct TCP, the backend of transport.c in this version. Of two nodes the one whose
 * name sorts first dials; it tries again for ever with backoff. Both say hello first: name, version
 * range, epoch of their start. A hello is repeated as a beat, so that a daemon that is stopped but
 * still connected is noticed.
 *
 * With a key or certificates, every connection is TLS 1.3 and both sides prove that they belong to
 * the cluster (tls.h); peers may be anywhere, and be given as host names, which a child
 * process looks up (resolve.h). Without a key, only loopback is listened on, dialed and accepted
 * from, and there only sockets of root or of the daemon's own user.
 *
 * A connection is dropped unless its hello, within 5 s of its opening, names a configured peer, or
 * peers are found instead of configured. Of
 * two connections to one peer the one with the newest epoch stays; an epoch that lies in the future
 * tells nothing, and goes before none. What a peer does not read is
 * kept up to a cap; frames beyond it are dropped and counted, never waited for.
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

/* Output waiting for one peer: some windows and digests, not a backlog. */
#define CW_TCP_MAX_OUTPUT (16u << 20)
/* Connections whose hello has not come yet. */
#define CW_TCP_MAX_STRANGERS 64u
/* The same from one address, where addresses tell hosts apart: with a key. */
#define CW_TCP_MAX_STRANGERS_PER_ADDRESS 8u
#define CW_TCP_HELLO_NS (5 * CW_NS_PER_S)
/* Names of peers that are not connected are looked up again after this. */
#define CW_TCP_LOOK_UP_NS (10 * CW_NS_PER_S)
/*
 * The kernel gives a connection up whose data is not acknowledged for this long. Until then a host
 * that is gone is silent, not unreachable, and nobody is alerted; silence begins after 10 s.
 */
#define CW_TCP_UNACKED_MS 15000u
/*
 * A daemon that starts later than this from now has not: a clock is wrong, or it is a lie that
 * would keep the owner of a name out for good. Clocks of a cluster that differ by more have other
 * troubles.
 */
#define CW_TCP_EPOCH_AHEAD_NS (3600 * CW_NS_PER_S)
#define CW_TCP_BACKOFF_MIN_MS 100u
#define CW_TCP_BACKOFF_MAX_MS 2000u

struct cw_tcp_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_transport *transport; /* becomes its backend */
	uint64_t epoch;                 /* of this daemon's start, wall ns */
	const char *listen;             /* "127.0.0.1:7411" */
	const char *find_under;         /* "host:port"; NULL = peers are listed (discovery.h) */
	struct cw_tls_files tls;        /* all NULL = none: loopback only */
};

/* 0, or -errno with err set. */
int cw_tcp_new(const struct cw_tcp_config *config, struct cw_tcp **ret, struct cw_err *err);
/* Says goodbye to the peers (as far as their sockets take it at once) and closes. Takes NULL. */
struct cw_tcp *cw_tcp_free(struct cw_tcp *tcp);

struct cw_tcp_stats {
	uint64_t accepted, refused, dialed, protocol_errors;
	uint64_t too_slow;    /* no hello within CW_TCP_HELLO_NS */
	uint64_t too_many;    /* over a cap of strangers; in refused too */
	uint64_t key_differs; /* handshakes that a different key ended, on either side */
	uint64_t tls_errors;  /* handshakes that failed otherwise */
	uint32_t connections;
};
/* What people should know of peers that are found, not listed; "" = nothing. Returns buf. */
const char *cw_tcp_note(const struct cw_tcp *tcp, char *buf, size_t len);
void cw_tcp_stats(const struct cw_tcp *tcp, struct cw_tcp_stats *ret);
