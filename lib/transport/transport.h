/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication between daemons. The interface has three operations: send a message to a node, send
 * a request with a deadline for its reply, and announce to all. A message to our own node takes the
 * same path through the codec and a queue. A cluster of one therefore exercises the same code, and
 * no callback runs inside a send. Frames to other nodes go to a backend: tcp.c, or the tests'
 * in-memory cluster.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"
#include "model/peer.h"
#include "proto/messages.h"

struct cw_transport;

/* If a cluster has more daemons, that is a mistake or a lie. */
#define CW_TRANSPORT_MAX_PEERS 4096u
/* Interval of beats. Several beats fit into the silence limit. */
#define CW_PEER_BEAT_NS (2 * CW_NS_PER_S)
/*
 * If nothing arrived for this long, two beats are missing. The peer's daemon was held up, and its
 * next messages are late.
 */
#define CW_PEER_GAP_NS (5 * CW_NS_PER_S)
/* Most window and evidence requests in flight. We refuse more. */
#define CW_TRANSPORT_MAX_REQUESTS 1024u
/* Most bytes of frames to our own node that wait for the next iteration of the loop. */
#define CW_TRANSPORT_MAX_LOCAL_BYTES (64u << 20)

/*
 * Sends one whole frame, including its header. The frame is borrowed. Returns 0, -ENOTCONN, or
 * -ENOBUFS, which the caller counts.
 */
struct cw_transport_ops {
	int (*send)(void *impl, unsigned peer, const uint8_t *frame, size_t len);
};

/*
 * Receives a message that is not a reply to a request. To keep the message, the handler sets *msg
 * to NULL and frees it later with cw_message_free().
 */
typedef void (*cw_transport_fn)(const char *from, struct cw_message **msg, void *user);
/*
 * Called when cw_transport_run() has work. The owner must call cw_transport_run() in the next
 * iteration of the loop.
 */
typedef void (*cw_transport_wake_fn)(void *user);

struct cw_transport_config {
	const struct cw_clock *clock;
	const char *self;
	const char *const *names, *const *addresses; /* of the peers, without our own node */
	unsigned n_peers;
	bool finds_peers; /* peers come and go at run time: cw_transport_add_peer() */
	cw_transport_fn on_message;
	cw_transport_wake_fn on_wake;
	void *user;
};

/* Copies the strings. Returns 0 or -ENOMEM. */
int cw_transport_new(const struct cw_transport_config *config, struct cw_transport **ret);
/* Takes NULL; returns NULL. Requests in flight get no callback. */
struct cw_transport *cw_transport_free(struct cw_transport *t);
/* Borrows ops until another call replaces it. NULL = no backend. */
void cw_transport_set_backend(struct cw_transport *t, const struct cw_transport_ops *ops,
			      void *impl);

const char *cw_transport_self(const struct cw_transport *t);
const struct cw_peer *cw_transport_peers(const struct cw_transport *t, unsigned *ret_n);
const struct cw_peer *cw_transport_peer(const struct cw_transport *t, const char *name);
/*
 * True if the peer is connected and we heard from it within CW_PEER_SILENT_NS. Always true for our
 * own node.
 */
bool cw_transport_is_alive(const struct cw_transport *t, const char *name);
/* Like cw_transport_is_alive(), but for an element of cw_transport_peers(), without a search. */
bool cw_transport_peer_is_alive(const struct cw_transport *t, const struct cw_peer *peer);
unsigned cw_transport_n_alive(const struct cw_transport *t); /* peers without our own node */
/* True if peers may still appear at run time. An empty list then means that there are none yet. */
bool cw_transport_finds_peers(const struct cw_transport *t);

/*
 * Encodes and sends a message. Returns 0, -ENOTCONN, -ENOBUFS, -EMSGSIZE, -ENOENT (no such peer) or
 * -ENOMEM.
 */
int cw_transport_send(struct cw_transport *t, const char *node, const struct cw_message *msg);
/*
 * Encodes a digest once. Sends it first to copy_to as CW_MSG_DIGEST_COPY, then to `node`. Returns
 * the result for `node`, as cw_transport_send() does. *ret_copy is the result for the copy, whether
 * or not the digest itself failed.
 */
int cw_transport_send_digest(struct cw_transport *t, const char *node, const char *copy_to,
			     const struct cw_message *msg, int *ret_copy);
/* Sends the message to every living peer. Returns the number of peers reached. */
unsigned cw_transport_announce(struct cw_transport *t, const struct cw_message *msg);

/*
 * reply: borrowed; NULL = the deadline passed or the node left, and no further reply follows. A
 * window or node request has one reply. An evidence request has one reply per target.
 */
typedef void (*cw_transport_reply_fn)(const char *node, const struct cw_message *reply, void *user);

/*
 * Sends a window, node or evidence request under a fresh id, which we set in msg. Never calls fn
 * from inside this call. *ret_id: the new id; ret_id may be NULL. cw_transport_cancel() ends the
 * request early. Errors are those of cw_transport_send(), and -EAGAIN for too many requests.
 */
int cw_transport_request(struct cw_transport *t, const char *node, struct cw_message *msg,
			 uint32_t deadline_ms, cw_transport_reply_fn fn, void *user,
			 uint64_t *ret_id);
/* Drops all requests of this user pointer. */
void cw_transport_cancel(struct cw_transport *t, const void *user);

/*
 * Delivers frames to our own node and expires requests. Call this when woken and at least every
 * 250 ms.
 */
void cw_transport_run(struct cw_transport *t);

/* ---- for backends ---- */

/*
 * Adds a discovered peer. *ret: the peer's index, valid until a peer is removed. Pointers to peers
 * stay valid. -ENOSPC: too many, or the configuration lists the peers; -ENOMEM.
 */
int cw_transport_add_peer(struct cw_transport *t, const char *name, unsigned *ret);
/*
 * Removes a peer that is not connected. The last peer takes its index. Must not be called from
 * inside a callback.
 */
void cw_transport_remove_peer(struct cw_transport *t, unsigned peer);
/* Call this when the peer has sent something. */
void cw_transport_peer_seen(struct cw_transport *t, unsigned peer);
/* Delivers a decoded message of the peer, and takes msg. */
void cw_transport_deliver(struct cw_transport *t, unsigned peer, struct cw_message *msg);
/* Like cw_transport_deliver(), but for a frame's payload. Counts payloads that it cannot decode. */
void cw_transport_receive(struct cw_transport *t, unsigned peer, const uint8_t *payload,
			  size_t len);
void cw_transport_peer_up(struct cw_transport *t, unsigned peer, uint64_t epoch);
/* said_goodbye: the peer will return, so its absence is no reason to alert. */
void cw_transport_peer_down(struct cw_transport *t, unsigned peer, bool said_goodbye);
/*
 * Notes that authentication of the peer failed. The note stands until the peer is up again. If the
 * peer is up, we ignore the call.
 */
void cw_transport_peer_refused(struct cw_transport *t, unsigned peer, enum cw_peer_refusal why);

struct cw_transport_stats {
	uint64_t sent, received, bad, unknown, dropped, timeouts;
};
void cw_transport_stats(const struct cw_transport *t, struct cw_transport_stats *ret);
