/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS 1.3 between daemons: how a connection of transport_tcp.c is made once a key is configured.
 * Both sides prove that they hold the cluster's key (external PSK, identity "collwatch", with an
 * ephemeral key exchange); there are no certificates, no tickets, no resumption, no early data.
 * All of it is OpenSSL's, on libevent's bufferevents.
 *
 * Loop thread only; reads the key file once, else nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct bufferevent;
struct cw_tls;
struct event_base;

/* 0, or -errno with err set: what is wrong with the key file. */
int cw_tls_new(const char *key_file, struct cw_tls **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Its bufferevents must be gone. */
struct cw_tls *cw_tls_free(struct cw_tls *tls);

/*
 * Closes fd when freed; fd -1: for bufferevent_socket_connect(). BEV_EVENT_CONNECTED comes after
 * the handshake. NULL = out of memory; then fd stays the caller's.
 */
struct bufferevent *cw_tls_bufferevent(struct cw_tls *tls, struct event_base *base, int fd,
				       bool is_dialed);

/* After BEV_EVENT_CONNECTED: the other side has the key. Forgets this connection's copy of it. */
bool cw_tls_is_authentic(struct bufferevent *bev);

enum cw_tls_failure {
	CW_TLS_LOST = 0, /* closed, or the network failed: says nothing about the key */
	CW_TLS_KEY_DIFFERS = 1,
	CW_TLS_NO_KEY = 2, /* the other side does not speak TLS */
	CW_TLS_OTHER = 3,
};
/* After BEV_EVENT_ERROR or EOF before CONNECTED. Takes the bufferevent's errors away. */
enum cw_tls_failure cw_tls_why(struct bufferevent *bev, char *text, size_t len);

/* As far as the socket takes it at once, then the end of TLS; nothing may wait in the output. */
void cw_tls_write_last(struct bufferevent *bev, const uint8_t *data, size_t len);
