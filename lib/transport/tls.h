/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 between daemons, for tcp.c. With a key, both sides prove that they hold the cluster's key
 * (external PSK, identity "collwatch"). With certificates, both sides show a certificate that the
 * cluster's authority signed (peer_cert.h). The certificate also names the node. In both cases the
 * key exchange is ephemeral. We use no tickets, no resumption and no early data. OpenSSL does all
 * the work, on bufferevents of libevent.
 *
 * Loop thread only. cw_tls_new() reads the files; otherwise nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct bufferevent;
struct cw_tls;
struct event_base;

/* Paths of the files. The caller sets either key alone or the other three; NULL = not set. */
struct cw_tls_files {
	const char *key;
	const char *ca, *cert, *private_key;
};

/* Returns 0, or -errno with err set to the problem of the file. */
int cw_tls_new(const struct cw_tls_files *files, const char *node_name, struct cw_tls **ret,
	       struct cw_err *err);
/* Takes NULL; returns NULL. The caller must have freed all bufferevents made from tls. */
struct cw_tls *cw_tls_free(struct cw_tls *tls);

/*
 * Creates a bufferevent that owns fd. fd: a connected socket; -1 = the caller uses
 * bufferevent_socket_connect() next. BEV_EVENT_CONNECTED comes after the handshake. Returns NULL if
 * out of memory; the caller then still owns fd.
 */
struct bufferevent *cw_tls_bufferevent(struct cw_tls *tls, struct event_base *base, int fd,
				       bool is_dialed);

/*
 * Returns true if the other side has our key, or a certificate of our authority. Call this once,
 * after BEV_EVENT_CONNECTED: it also overwrites this connection's copy of the key.
 */
bool cw_tls_is_authentic(struct bufferevent *bev);
/*
 * Returns whether the other side may use this node name. With a key it may use any name. With a
 * certificate it may use only the names in the certificate.
 */
bool cw_tls_may_be(struct bufferevent *bev, const char *node);

enum cw_tls_failure {
	CW_TLS_LOST = 0, /* closed, or the network failed; this says nothing about the key */
	CW_TLS_KEY_DIFFERS = 1,
	CW_TLS_NO_KEY = 2, /* the other side does not speak TLS */
	CW_TLS_OTHER = 3,
	CW_TLS_CERTIFICATE = 4, /* one side rejects the other's certificate */
};
/*
 * Explains why a connection failed, and writes OpenSSL's message into text. Call this after
 * BEV_EVENT_ERROR or BEV_EVENT_EOF if no message has arrived yet. That includes the time after
 * BEV_EVENT_CONNECTED, because the dialing side learns only then that the other side rejects its
 * certificate. Removes the errors from the bufferevent.
 */
enum cw_tls_failure cw_tls_why(struct bufferevent *bev, char *text, size_t len);

/*
 * Sends data as far as the socket accepts it at once, then ends TLS. The bufferevent's output must
 * be empty.
 */
void cw_tls_write_last(struct bufferevent *bev, const uint8_t *data, size_t len);
