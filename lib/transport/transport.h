/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How daemons talk, behind one narrow interface: send a message to a node, ask one and wait for the
 * answer with a deadline, tell all. A message to the own node takes the same way through the codec
 * and a queue, so a cluster of one exercises the same code and nobody is called
 * back from inside a send. Frames to other nodes go to a backend: tcp.c, or the tests'
 * cluster in memory.
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

/* More daemons in one cluster are a mistake, or a lie. */
#define CW_TRANSPORT_MAX_PEERS 4096u
/* Beats are sent this often: several fit into the silence limit. */
#define CW_PEER_BEAT_NS (2 * CW_NS_PER_S)
/* Two beats missed: its daemon was held up, and what it does next it does late. */
#define CW_PEER_GAP_NS (5 * CW_NS_PER_S)
/* Window and evidence requests in flight; more are refused. */
#define CW_TRANSPORT_MAX_REQUESTS 1024u
/* Own-node frames waiting for the next turn of the loop. */
#define CW_TRANSPORT_MAX_LOCAL_BYTES (64u << 20)

/* Sends one whole frame (header included; borrowed). 0, -ENOTCONN, -ENOBUFS (counted by caller). */
struct cw_transport_ops {
	int (*send)(void *impl, unsigned peer, const uint8_t *frame, size_t len);
};

/*
 * A message that is no reply to a request. The handler may keep it: then it sets *msg to NULL and
 * frees it later with cw_message_free().
 */
typedef void (*cw_transport_fn)(const char *from, struct cw_message **msg, void *user);
/* cw_transport_run() has work: call it at the next turn of the loop. */
typedef void (*cw_transport_wake_fn)(void *user);

struct cw_transport_config {
	const struct cw_clock *clock;
	const char *self;
	const char *const *names, *const *addresses; /* of the peers, without the own node */
	unsigned n_peers;
	bool finds_peers; /* further ones come and go: cw_transport_add_peer() */
	cw_transport_fn on_message;
	cw_transport_wake_fn on_wake;
	void *user;
};

/* Copies the strings. 0 or -ENOMEM. */
int cw_transport_new(const struct cw_transport_config *config, struct cw_transport **ret);
/* Takes NULL; returns NULL. Requests in flight get no callback any more. */
struct cw_transport *cw_transport_free(struct cw_transport *t);
/* ops borrowed until replaced; NULL = no backend. */
void cw_transport_set_backend(struct cw_transport *t, const struct cw_transport_ops *ops,
			      void *impl);

const char *cw_transport_self(const struct cw_transport *t);
const struct cw_peer *cw_transport_peers(const struct cw_transport *t, unsigned *ret_n);
const struct cw_peer *cw_transport_peer(const struct cw_transport *t, const char *name);
/* Connected and heard of within CW_PEER_SILENT_NS; the own node always. */
bool cw_transport_is_alive(const struct cw_transport *t, const char *name);
/* The same of one of cw_transport_peers(), without a search. */
bool cw_transport_peer_is_alive(const struct cw_transport *t, const struct cw_peer *peer);
unsigned cw_transport_n_alive(const struct cw_transport *t); /* peers, without the own node */
/* Whether peers are found while it runs, so that none may mean none yet. */
bool cw_transport_finds_peers(const struct cw_transport *t);

/* Encodes and sends. 0, -ENOTCONN, -ENOBUFS, -EMSGSIZE, -ENOENT (no such peer), -ENOMEM. */
int cw_transport_send(struct cw_transport *t, const char *node, const struct cw_message *msg);
/*
 * Encodes a digest once, sends it to node, and as CW_MSG_DIGEST_COPY to copy_to before that.
 * Returns as cw_transport_send() for node; *ret_copy likewise for the copy, whatever became of the
 * digest.
 */
int cw_transport_send_digest(struct cw_transport *t, const char *node, const char *copy_to,
			     const struct cw_message *msg, int *ret_copy);
/* To every living peer. Returns to how many it went. */
unsigned cw_transport_announce(struct cw_transport *t, const struct cw_message *msg);

/*
 * reply: borrowed; NULL = the deadline passed or the node went away, and nothing more comes. A
 * window or node request has one reply, an evidence request one for each target.
 */
typedef void (*cw_transport_reply_fn)(const char *node, const struct cw_message *reply, void *user);

/*
 * Sends a window, node or evidence request under a fresh id (set in msg). The callback never comes
 * from inside this call. *ret_id serves cw_transport_cancel(). Errors as send; -EAGAIN: too many.
 */
int cw_transport_request(struct cw_transport *t, const char *node, struct cw_message *msg,
			 uint32_t deadline_ms, cw_transport_reply_fn fn, void *user,
			 uint64_t *ret_id);
/* Forgets all requests of this user pointer. */
void cw_transport_cancel(struct cw_transport *t, const void *user);

/* Delivers own-node frames and passes deadlines. Call when woken and at least every 250 ms. */
void cw_transport_run(struct cw_transport *t);

/* ---- for backends ---- */

/*
 * A peer that was found. *ret: its index, good until one is removed. Pointers to peers stay good.
 * -ENOSPC: too many, or peers are listed; -ENOMEM.
 */
int cw_transport_add_peer(struct cw_transport *t, const char *name, unsigned *ret);
/* Forgets one that is not connected; the last one takes its index. Not from inside a callback. */
void cw_transport_remove_peer(struct cw_transport *t, unsigned peer);
/* Something came from the peer. */
void cw_transport_heard(struct cw_transport *t, unsigned peer);
/* A decoded message of the peer; taken. */
void cw_transport_deliver(struct cw_transport *t, unsigned peer, struct cw_message *msg);
/* The same for a frame's payload; what cannot be decoded is counted. */
void cw_transport_receive(struct cw_transport *t, unsigned peer, const uint8_t *payload,
			  size_t len);
void cw_transport_peer_up(struct cw_transport *t, unsigned peer, uint64_t epoch);
/* said_goodbye: it will come back, nobody should worry. */
void cw_transport_peer_down(struct cw_transport *t, unsigned peer, bool said_goodbye);
/* Authentication with it failed: why, a static text. Stands until it is up the next time;
 * ignored while it is. */
void cw_transport_peer_refused(struct cw_transport *t, unsigned peer, const char *why);

struct cw_transport_stats {
	uint64_t sent, received, bad, unknown, dropped, timeouts;
};
void cw_transport_stats(const struct cw_transport *t, struct cw_transport_stats *ret);
