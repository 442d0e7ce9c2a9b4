/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Close untrusted connections on UNIX sockets. A client can put descriptors into its connection.
 * When the last process closes the connection, the kernel closes those descriptors in that process.
 * Some block as long as their owner likes: for example a TCP socket with SO_LINGER whose peer does
 * not read. So a child closes each connection that holds descriptors: at the end of a process no
 * close lingers.
 *
 * We must not read the descriptors out of the connection either: see cw_unix_recv_bytes().
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdint.h>

struct cw_conn_closer;
struct cw_fork_server;
struct event_base;

/*
 * We collect connections for this long and give them to one child, so that a flood of connections
 * does not become a flood of forks.
 */
#define CW_CONN_CLOSER_EVERY_MS 20
/*
 * Limit of children. All but the first of them hang in a close that even the end of a process
 * waits for.
 */
#define CW_CONN_CLOSER_CHILDREN 8u

/* A job of the fork server. */
int cw_conn_closer_child(int fd);

/* forks must have that job; we borrow it for life. 0 or -ENOMEM. */
int cw_conn_closer_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_conn_closer **ret);
/*
 * Takes NULL; returns NULL. Forks a last child for the remaining connections, and waits at most
 * 200 ms for it.
 */
struct cw_conn_closer *cw_conn_closer_free(struct cw_conn_closer *c);
/* Takes ownership of fd. The caller no longer reads from it or writes to it. */
void cw_conn_closer_close(struct cw_conn_closer *c, int fd);
/* Connections that wait for a child now, and the total of those since the start. */
uint32_t cw_conn_closer_waiting(const struct cw_conn_closer *c);
uint64_t cw_conn_closer_total(const struct cw_conn_closer *c);
