/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication between daemons. The interface has three operations. We send a message to one node,
 * send a request that has a deadline for its reply, or announce a message to all nodes. A message
 * to our own node goes through the codec and a queue, like any other. A cluster of one node
 * therefore runs the same code, and no callback comes from inside a send. Frames to other nodes go
 * to a backend: tcp.c, or the in-memory cluster of the tests.
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

/* A bound on the daemons of one cluster. More of them mean a mistake or an attack. */
#define CW_TRANSPORT_MAX_PEERS 4096u
/*
 * Interval of beats (messages that only show that a peer lives). Several beats fit into the silence
 * limit CW_PEER_SILENT_NS.
 */
#define CW_PEER_BEAT_NS (2 * CW_NS_PER_S)
/*
 * If nothing arrived from a peer for this long, two beats are missing. Something delayed the peer's
 * daemon, so its next messages are late.
 */
#define CW_PEER_GAP_NS (5 * CW_NS_PER_S)
/* Maximum number of requests in flight. cw_transport_request() refuses more. */
#define CW_TRANSPORT_MAX_REQUESTS 1024u
/* Maximum size of all frames to our own node that wait for the next iteration of the loop. */
#define CW_TRANSPORT_MAX_LOCAL_BYTES (64u << 20)

/*
 * Sends one whole frame, including its header. Borrows the frame for the call. Returns 0,
 * -ENOTCONN, or -ENOBUFS if the peer's output is full. The caller counts -ENOBUFS.
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
 * Called when messages to our own node wait. The owner must call cw_transport_run() in the next
 * iteration of the loop.
 */
typedef void (*cw_transport_wake_fn)(void *user);

struct cw_transport_config {
	const struct cw_clock *clock;
	const char *self;
	/* Names and addresses of the peers, without our own node. */
	const char *const *names, *const *addresses;
	unsigned n_peers;
	bool finds_peers; /* true if peers come and go at run time by cw_transport_add_peer() */
	cw_transport_fn on_message;
	cw_transport_wake_fn on_wake;
	void *user;
};

/* Copies the strings of config. Returns 0 or -ENOMEM. */
int cw_transport_new(const struct cw_transport_config *config, struct cw_transport **ret);
/* Takes NULL; returns NULL. Requests in flight get no callback. */
struct cw_transport *cw_transport_free(struct cw_transport *t);
/* Borrows ops and impl until the next call. ops: NULL = no backend. */
void cw_transport_set_backend(struct cw_transport *t, const struct cw_transport_ops *ops,
			      void *impl);

const char *cw_transport_self(const struct cw_transport *t);
const struct cw_peer *cw_transport_peers(const struct cw_transport *t, unsigned *ret_n);
const struct cw_peer *cw_transport_peer(const struct cw_transport *t, const char *name);
/*
 * True if the peer is connected and has sent something within CW_PEER_SILENT_NS. Always true for
 * our own node.
 */
bool cw_transport_is_alive(const struct cw_transport *t, const char *name);
/*
 * Like cw_transport_is_alive(), but takes an element of cw_transport_peers(), which saves a search.
 */
bool cw_transport_peer_is_alive(const struct cw_transport *t, const struct cw_peer *peer);
/* Number of living peers, without our own node. */
unsigned cw_transport_n_alive(const struct cw_transport *t);
/*
 * True if peers may still appear at run time. An empty list of peers then means that we have not
 * found any yet.
 */
bool cw_transport_finds_peers(const struct cw_transport *t);

/*
 * Encodes and sends a message. Returns 0, -ENOTCONN, -ENOBUFS (too much unsent output), -EMSGSIZE,
 * -ENOENT (no such peer) or -ENOMEM.
 */
int cw_transport_send(struct cw_transport *t, const char *node, const struct cw_message *msg);
/*
 * Encodes a digest once. Sends it first to copy_to as CW_MSG_DIGEST_COPY, then to `node`. Returns
 * the result for `node`, as cw_transport_send() does. Always stores the result for copy_to in
 * *ret_copy.
 */
int cw_transport_send_digest(struct cw_transport *t, const char *node, const char *copy_to,
			     const struct cw_message *msg, int *ret_copy);
/* Sends the message to every living peer. Returns the number of peers reached. */
unsigned cw_transport_announce(struct cw_transport *t, const struct cw_message *msg);

/*
 * Receives a reply. reply: borrowed; NULL = the deadline passed or the node left, and no further
 * reply follows. Window and node requests get one reply. An evidence request gets one reply per
 * target.
 */
typedef void (*cw_transport_reply_fn)(const char *node, const struct cw_message *reply, void *user);

/*
 * Sends a window, node or evidence request. Gives the request a new id, stores it in msg and,
 * unless ret_id is NULL, in *ret_id. Never calls fn from inside this call. cw_transport_cancel()
 * ends the request early. Returns the values of cw_transport_send(), or -EAGAIN for too many
 * requests in flight.
 */
int cw_transport_request(struct cw_transport *t, const char *node, struct cw_message *msg,
			 uint32_t deadline_ms, cw_transport_reply_fn fn, void *user,
			 uint64_t *ret_id);
/* Drops all requests with this user pointer. Their callbacks do not follow. */
void cw_transport_cancel(struct cw_transport *t, const void *user);

/*
 * Delivers the queued messages to our own node, and ends requests whose deadline has passed. Call
 * this after on_wake, and at least every 250 ms.
 */
void cw_transport_run(struct cw_transport *t);

/* ---- for backends ---- */

/*
 * Adds a peer that was discovered at run time. *ret: the peer's index, which is valid until a peer
 * is removed. Pointers to peers stay valid. Returns 0, -ENOMEM, or -ENOSPC if there are too many
 * peers or the configuration lists them.
 */
int cw_transport_add_peer(struct cw_transport *t, const char *name, unsigned *ret);
/*
 * Removes a peer that is not connected. The last peer then gets the removed peer's index. Must not
 * be called from inside a callback.
 */
void cw_transport_remove_peer(struct cw_transport *t, unsigned peer);
/* Call this when any bytes of the peer have arrived. */
void cw_transport_peer_seen(struct cw_transport *t, unsigned peer);
/* Delivers a decoded message from the peer. Owns and frees msg. */
void cw_transport_deliver(struct cw_transport *t, unsigned peer, struct cw_message *msg);
/*
 * Like cw_transport_deliver(), but decodes the payload of a frame first. Counts payloads that it
 * cannot decode.
 */
void cw_transport_receive(struct cw_transport *t, unsigned peer, const uint8_t *payload,
			  size_t len);
void cw_transport_peer_up(struct cw_transport *t, unsigned peer, uint64_t epoch);
/* said_goodbye: the peer's daemon stopped on purpose and will return, so we send no alert. */
void cw_transport_peer_down(struct cw_transport *t, unsigned peer, bool said_goodbye);
/*
 * Notes that authentication of the peer failed. The note stays until the peer is connected again.
 * If the peer is connected now, the call does nothing.
 */
void cw_transport_peer_refused(struct cw_transport *t, unsigned peer, enum cw_peer_refusal why);

struct cw_transport_stats {
	uint64_t sent, received, bad, unknown, dropped, timeouts;
};
void cw_transport_stats(const struct cw_transport *t, struct cw_transport_stats *ret);
