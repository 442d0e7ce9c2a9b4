/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication between daemons, behind one narrow interface: send a message to a node, send a
 * request and wait for its reply with a deadline, announce to all. A message to our own node takes
 * the same path through the codec and a queue. A cluster of one therefore exercises the same code,
 * and no callback runs inside a send. Frames to other nodes go to a backend: tcp.c, or the tests'
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

/* A cluster with more daemons is a mistake, or a lie. */
#define CW_TRANSPORT_MAX_PEERS 4096u
/* Interval of beats; several fit into the silence limit. */
#define CW_PEER_BEAT_NS (2 * CW_NS_PER_S)
/* After two missed beats the peer's daemon was held up, and its next messages are late. */
#define CW_PEER_GAP_NS (5 * CW_NS_PER_S)
/* Window and evidence requests in flight; we refuse more. */
#define CW_TRANSPORT_MAX_REQUESTS 1024u
/* Own-node frames that wait for the next iteration of the loop. */
#define CW_TRANSPORT_MAX_LOCAL_BYTES (64u << 20)

/*
 * Sends one whole frame (header included; borrowed). 0, -ENOTCONN, -ENOBUFS (the caller counts it).
 */
struct cw_transport_ops {
	int (*send)(void *impl, unsigned peer, const uint8_t *frame, size_t len);
};

/*
 * Receives a message that is not a reply to a request. To keep the message, the handler sets *msg
 * to NULL and frees it later with cw_message_free().
 */
typedef void (*cw_transport_fn)(const char *from, struct cw_message **msg, void *user);
/* cw_transport_run() has work: call it in the next iteration of the loop. */
typedef void (*cw_transport_wake_fn)(void *user);

struct cw_transport_config {
	const struct cw_clock *clock;
	const char *self;
	const char *const *names, *const *addresses; /* of the peers, without our own node */
	unsigned n_peers;
	bool finds_peers; /* further ones come and go: cw_transport_add_peer() */
	cw_transport_fn on_message;
	cw_transport_wake_fn on_wake;
	void *user;
};

/* Copies the strings. 0 or -ENOMEM. */
int cw_transport_new(const struct cw_transport_config *config, struct cw_transport **ret);
/* Takes NULL; returns NULL. Requests in flight get no callback. */
struct cw_transport *cw_transport_free(struct cw_transport *t);
/* Borrows ops until replaced; NULL = no backend. */
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
/* The same for an element of cw_transport_peers(), without a search. */
bool cw_transport_peer_is_alive(const struct cw_transport *t, const struct cw_peer *peer);
unsigned cw_transport_n_alive(const struct cw_transport *t); /* peers, without our own node */
/* True if peers may still appear at run time: an empty list then means none yet. */
bool cw_transport_finds_peers(const struct cw_transport *t);

/* Encodes and sends. 0, -ENOTCONN, -ENOBUFS, -EMSGSIZE, -ENOENT (no such peer), -ENOMEM. */
int cw_transport_send(struct cw_transport *t, const char *node, const struct cw_message *msg);
/*
 * Encodes a digest once, sends it first to copy_to as CW_MSG_DIGEST_COPY, then to node. Returns as
 * cw_transport_send() for node. *ret_copy is the result for the copy, whether or not the digest
 * itself failed.
 */
int cw_transport_send_digest(struct cw_transport *t, const char *node, const char *copy_to,
			     const struct cw_message *msg, int *ret_copy);
/* Sends to every living peer. Returns the number of peers reached. */
unsigned cw_transport_announce(struct cw_transport *t, const struct cw_message *msg);

/*
 * reply: borrowed; NULL = the deadline passed or the node left, and no further reply follows. A
 * window or node request has one reply, an evidence request one per target.
 */
typedef void (*cw_transport_reply_fn)(const char *node, const struct cw_message *reply, void *user);

/*
 * Sends a window, node or evidence request under a fresh id (set in msg). Never calls back from
 * inside this call. *ret_id: the new id; may be NULL. cw_transport_cancel() ends it early. Errors
 * as send; -EAGAIN: too many.
 */
int cw_transport_request(struct cw_transport *t, const char *node, struct cw_message *msg,
			 uint32_t deadline_ms, cw_transport_reply_fn fn, void *user,
			 uint64_t *ret_id);
/* Drops all requests of this user pointer. */
void cw_transport_cancel(struct cw_transport *t, const void *user);

/* Delivers own-node frames and expires requests. Call when woken and at least every 250 ms. */
void cw_transport_run(struct cw_transport *t);

/* ---- for backends ---- */

/*
 * Adds a discovered peer. *ret: its index, valid until a peer is removed. Pointers to peers stay
 * valid. -ENOSPC: too many, or the configuration lists the peers; -ENOMEM.
 */
int cw_transport_add_peer(struct cw_transport *t, const char *name, unsigned *ret);
/*
 * Removes a peer that is not connected; the last peer takes its index. Not from inside a callback.
 */
void cw_transport_remove_peer(struct cw_transport *t, unsigned peer);
/* The peer has sent something. */
void cw_transport_peer_seen(struct cw_transport *t, unsigned peer);
/* Delivers a decoded message of the peer; takes msg. */
void cw_transport_deliver(struct cw_transport *t, unsigned peer, struct cw_message *msg);
/* The same for a frame's payload; counts undecodable ones. */
void cw_transport_receive(struct cw_transport *t, unsigned peer, const uint8_t *payload,
			  size_t len);
void cw_transport_peer_up(struct cw_transport *t, unsigned peer, uint64_t epoch);
/* said_goodbye: the peer will return, so this is no reason to alert. */
void cw_transport_peer_down(struct cw_transport *t, unsigned peer, bool said_goodbye);
/*
 * Authentication of the peer failed: why, a static text. Stands until the peer is up the next time;
 * ignored while it is.
 */
void cw_transport_peer_refused(struct cw_transport *t, unsigned peer, const char *why);

struct cw_transport_stats {
	uint64_t sent, received, bad, unknown, dropped, timeouts;
};
void cw_transport_stats(const struct cw_transport *t, struct cw_transport_stats *ret);
