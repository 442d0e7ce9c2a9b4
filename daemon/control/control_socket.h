/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control socket. Frames with a ControlRequest come in, and each gets one ControlReply. The
 * kernel identifies the caller (SO_PEERCRED, SO_PEERGROUPS); we never believe the message about
 * this. If other nodes may know more, we ask them (control_nodes.h).
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

/* Maximum number of clients at the same time, and the part of them that is reserved for root. */
#define CW_CONTROL_MAX_CLIENTS 64u
#define CW_CONTROL_MAX_ROOT 8u
/*
 * Maximum number of clients of one user. Every user may connect, so one user must not use up the
 * limit on all clients. Users share them by quotas (identity/quota.h).
 */
#define CW_CONTROL_MAX_CLIENTS_PER_UID 8u
/*
 * Maximum size of all replies to one user that its clients have not read. Without this limit, one
 * user could take all memory. A status or a report has at most 1 MiB. If a client makes requests
 * beyond the limit, we close its connection.
 */
#define CW_CONTROL_MAX_UNREAD_PER_UID (4u << 20)
/*
 * Answers to one user may take 1/5 of a core. After each answer, the user's next request waits for
 * four times as long as the answer took.
 */
#define CW_CONTROL_SHARE 5
/*
 * Limits of a request, which is a verb and an id. If a client sends more bytes, or nothing for
 * CW_CONTROL_IDLE_S, we close its connection.
 */
#define CW_CONTROL_MAX_REQUEST (64u << 10)
#define CW_CONTROL_IDLE_S 10

struct cw_control_socket_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_fork_server *forks; /* borrowed for the socket's life */
	const char *path;
	const char *group; /* members of this group see all jobs; "" = no group */
	int listen_fd;     /* from socket activation; -1 = we listen on path */
	struct cw_control_source source;
	struct cw_stacks_config stacks;
};

/*
 * refused: clients beyond a limit. displaced: clients whose place another user got. over_quota:
 * stacks and mutes beyond a limit. noise: clients that broke the protocol.
 */
struct cw_control_socket_stats {
	uint32_t clients;
	uint64_t requests, refused, displaced, over_quota, noise;
};

/*
 * Opens the socket. Every user may connect (0666), but sees only its own jobs. Returns 0, or -errno
 * with err set.
 */
int cw_control_socket_new(const struct cw_control_socket_config *config,
			  struct cw_control_socket **ret, struct cw_err *err);
/* Removes the socket's file if we made it. Takes NULL; returns NULL. */
struct cw_control_socket *cw_control_socket_free(struct cw_control_socket *c);
/*
 * Handles a query of another node for one of that node's users. Returns false if the message is not
 * a query.
 */
bool cw_control_socket_message(struct cw_control_socket *c, const char *from,
			       const struct cw_message *msg);
void cw_control_socket_stats(const struct cw_control_socket *c,
			     struct cw_control_socket_stats *ret);
