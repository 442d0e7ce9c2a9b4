/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 between daemons: how a connection of tcp.c is made once a key is configured.
 * Either both sides prove that they hold the cluster's key (external PSK, identity "collwatch"), or
 * both show a certificate of the cluster's authority (peer_cert.h), which also says which node it
 * is. The key exchange is ephemeral in both cases; no tickets, no resumption, no early data. All of
 * it is OpenSSL's, on libevent's bufferevents.
 *
 * Loop thread only; reads the files once, else nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct bufferevent;
struct cw_tls;
struct event_base;

/* The key, or the other three; NULL = not given. */
struct cw_tls_files {
	const char *key;
	const char *ca, *cert, *private_key;
};

/* 0, or -errno with err set: what is wrong with the files. */
int cw_tls_new(const struct cw_tls_files *files, const char *node_name, struct cw_tls **ret,
	       struct cw_err *err);
/* Takes NULL; returns NULL. Its bufferevents must be gone. */
struct cw_tls *cw_tls_free(struct cw_tls *tls);

/*
 * Closes fd when freed; fd -1: for bufferevent_socket_connect(). BEV_EVENT_CONNECTED comes after
 * the handshake. NULL = out of memory; then fd stays the caller's.
 */
struct bufferevent *cw_tls_bufferevent(struct cw_tls *tls, struct event_base *base, int fd,
				       bool is_dialed);

/*
 * After BEV_EVENT_CONNECTED: the other side has the key, or a certificate of our authority. Forgets
 * this connection's copy of the key.
 */
bool cw_tls_is_authentic(struct bufferevent *bev);
/* May who is there call itself so? With a key anybody may; a certificate says. */
bool cw_tls_may_be(struct bufferevent *bev, const char *node);

enum cw_tls_failure {
	CW_TLS_LOST = 0, /* closed, or the network failed: says nothing about the key */
	CW_TLS_KEY_DIFFERS = 1,
	CW_TLS_NO_KEY = 2, /* the other side does not speak TLS */
	CW_TLS_OTHER = 3,
	CW_TLS_CERTIFICATE = 4, /* one side does not accept the other's */
};
/*
 * After BEV_EVENT_ERROR or EOF before CONNECTED, or before the first message: whoever dials learns
 * only then what the other side thinks of its certificate. Takes the bufferevent's errors away. */
enum cw_tls_failure cw_tls_why(struct bufferevent *bev, char *text, size_t len);

/* As far as the socket takes it at once, then the end of TLS; nothing may wait in the output. */
void cw_tls_write_last(struct bufferevent *bev, const uint8_t *data, size_t len);
