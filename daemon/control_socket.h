/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: frames with a ControlRequest come in, one ControlReply each goes out. Who
 * asks is known from the kernel (SO_PEERCRED, SO_PEERGROUPS), never from the message. All but
 * `stacks` are answered at once.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <sys/types.h>

#include "common/err.h"
#include "daemon/control.h"
#include "daemon/stacks_request.h"

struct event_base;
struct cw_control_socket;

#define CW_CONTROL_MAX_CLIENTS 32u
/* A request is a verb and an id; a client that sends more or nothing is dropped. */
#define CW_CONTROL_MAX_REQUEST (64u << 10)
#define CW_CONTROL_IDLE_S 10

struct cw_control_socket_config {
	struct event_base *base;
	const char *path;
	const char *group; /* owns the socket if it exists; "" = none */
	int listen_fd;     /* from socket activation; -1 = listen on path */
	struct cw_control_source source;
	struct cw_stacks_config stacks;
};

/* 0, or -errno with err set. */
int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Removes the socket file if it made it. */
struct cw_control_socket *cw_control_socket_free(struct cw_control_socket *c);
