/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket: frames with a ControlRequest come in, and each gets one ControlReply. The
 * kernel identifies the caller (SO_PEERCRED, SO_PEERGROUPS); the message never does. If other nodes
 * know more, we ask them (control_nodes.h).
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

/* The limit of concurrent clients, and the part of it that is reserved for root. */
#define CW_CONTROL_MAX_CLIENTS 64u
#define CW_CONTROL_MAX_ROOT 8u
/*
 * The limit of one user's clients. The socket is open to all users, so no user may take all places;
 * they share them (identity/quota.h).
 */
#define CW_CONTROL_MAX_CLIENTS_PER_UID 8u
/*
 * The limit of one user's replies that its clients have not read yet, so that no user takes all
 * memory. A status or a report has at most 1 MiB. We drop a client that asks for more without
 * reading.
 */
#define CW_CONTROL_MAX_UNREAD_PER_UID (4u << 20)
/*
 * Answers to one user take at most 1/5 of a core. After each answer, the user's next request waits
 * for four times the time that the answer took.
 */
#define CW_CONTROL_SHARE 5
/*
 * A request is a verb and an id. We drop a client that sends more than this many bytes, or nothing
 * for CW_CONTROL_IDLE_S.
 */
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
 * refused: clients beyond a limit. displaced: clients whose place went to another user. over_quota:
 * stacks and mutes beyond a limit. noise: clients that broke the protocol.
 */
struct cw_control_socket_stats {
	uint32_t clients;
	uint64_t requests, refused, displaced, over_quota, noise;
};

/*
 * Opens the socket. Every user may connect (0666), and sees only its own jobs. 0, or -errno with
 * err set.
 */
int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err);
/* Removes the socket file if this object made it. Takes NULL; returns NULL. */
struct cw_control_socket *cw_control_socket_free(struct cw_control_socket *c);
/*
 * Handles a query that another node sends for one of its callers. False if the message is not a
 * query.
 */
bool cw_control_socket_message(struct cw_control_socket *c, const char *from,
			       const struct cw_message *msg);
void cw_control_socket_stats(const struct cw_control_socket *c,
			     struct cw_control_socket_stats *ret);
