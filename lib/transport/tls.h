/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 between daemons, for tcp.c with a key or certificates. With a key, both sides prove that
 * they hold the cluster's key (external PSK, identity "collwatch"). With certificates, both sides
 * show a certificate of the cluster's authority (peer_cert.h), which also names the node. The key
 * exchange is ephemeral in both cases; no tickets, no resumption, no early data. OpenSSL does all
 * of it, on libevent's bufferevents.
 *
 * Loop thread only. Reads the files once; otherwise nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct bufferevent;
struct cw_tls;
struct event_base;

/* The caller sets either the key or the other three; NULL = not configured. */
struct cw_tls_files {
	const char *key;
	const char *ca, *cert, *private_key;
};

/* Returns 0, or -errno with err set to the problem with the files. */
int cw_tls_new(const struct cw_tls_files *files, const char *node_name, struct cw_tls **ret,
	       struct cw_err *err);
/* Takes NULL; returns NULL. The owner must have freed its bufferevents. */
struct cw_tls *cw_tls_free(struct cw_tls *tls);

/*
 * Creates a bufferevent, which closes fd when freed. fd -1 is for bufferevent_socket_connect().
 * BEV_EVENT_CONNECTED follows the handshake. Returns NULL if out of memory; fd then stays the
 * caller's.
 */
struct bufferevent *cw_tls_bufferevent(struct cw_tls *tls, struct event_base *base, int fd,
				       bool is_dialed);

/*
 * Call this after BEV_EVENT_CONNECTED. Returns true if the other side has the key, or a certificate
 * of our authority. Wipes this connection's copy of the key.
 */
bool cw_tls_is_authentic(struct bufferevent *bev);
/*
 * Returns whether the other side may use this node name. With a key every name is allowed, with a
 * certificate only the names in it.
 */
bool cw_tls_may_be(struct bufferevent *bev, const char *node);

enum cw_tls_failure {
	CW_TLS_LOST = 0, /* closed, or the network failed; says nothing about the key */
	CW_TLS_KEY_DIFFERS = 1,
	CW_TLS_NO_KEY = 2, /* the other side does not speak TLS */
	CW_TLS_OTHER = 3,
	CW_TLS_CERTIFICATE = 4, /* one side rejects the other's certificate */
};
/*
 * Says why a connection failed. Call this after BEV_EVENT_ERROR or EOF, before CONNECTED or before
 * the first message. Only with the first message does the dialing side learn that the other side
 * rejects its certificate. Consumes the bufferevent's errors.
 */
enum cw_tls_failure cw_tls_why(struct bufferevent *bev, char *text, size_t len);

/* Writes as much as the socket accepts at once, then ends TLS. The output must be empty. */
void cw_tls_write_last(struct bufferevent *bev, const uint8_t *data, size_t len);
