/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: frames with a ControlRequest come in, one ControlReply each goes out. Who
 * asks is known from the kernel (SO_PEERCRED, SO_PEERGROUPS), never from the message. What other
 * nodes know better is asked there (control_nodes.h).
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <sys/types.h>

#include "common/err.h"
#include "daemon/control/control.h"
#include "daemon/control/stacks_request.h"

struct event_base;
struct cw_control_socket;
struct cw_fork_server;

/* Clients at once; so many of them are kept for root. */
#define CW_CONTROL_MAX_CLIENTS 64u
#define CW_CONTROL_MAX_ROOT 8u
/* Open to all users, so nobody may take all places: they share them (identity/shares.h) … */
#define CW_CONTROL_MAX_CLIENTS_PER_UID 8u
/*
 * … or the memory: replies that a user's clients have not read yet. A status or a report is at most
 * 1 MiB; whoever asks for more without reading is dropped.
 */
#define CW_CONTROL_MAX_UNREAD_PER_UID (4u << 20)
/*
 * Answers to one user take at most 1/5 of a core: after each, that user's next waits for four times
 * what it took.
 */
#define CW_CONTROL_SHARE 5
/* A request is a verb and an id; a client that sends more or nothing is dropped. */
#define CW_CONTROL_MAX_REQUEST (64u << 10)
#define CW_CONTROL_IDLE_S 10

struct cw_control_socket_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_fork_server *forks; /* borrowed for life */
	const char *path;
	const char *group; /* its members see all jobs; "" = none */
	int listen_fd;     /* from socket activation; -1 = listen on path */
	struct cw_control_source source;
	struct cw_stacks_config stacks;
};

/*
 * Refused: clients beyond a limit; displaced: those whose place went to another user; over_quota:
 * stacks and mutes beyond one; noise: clients that did not speak as they should.
 */
struct cw_control_socket_stats {
	uint32_t clients;
	uint64_t requests, refused, displaced, over_quota, noise;
};

/* 0, or -errno with err set. The socket is for everybody (0666): a caller sees what is its own. */
int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Removes the socket file if it made it. */
struct cw_control_socket *cw_control_socket_free(struct cw_control_socket *c);
/* What another node asks for somebody there. False: it is no question. */
bool cw_control_socket_message(struct cw_control_socket *c, const char *from,
			       const struct cw_message *msg);
void cw_control_socket_stats(const struct cw_control_socket *c,
			     struct cw_control_socket_stats *ret);
