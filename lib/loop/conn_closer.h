/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closes untrusted connections on UNIX sockets. A client can put descriptors into its connection.
 * When the last process closes the connection, the kernel closes those descriptors in that process.
 * Some of these closes block as long as the client likes. An example is a TCP socket with SO_LINGER
 * whose peer does not read. Such a close does not block when it is part of a process's end. A child
 * therefore closes each connection that holds descriptors, by its exit.
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
 * We collect connections for this many ms and give them all to one child. A flood of connections
 * therefore causes few forks.
 */
#define CW_CONN_CLOSER_EVERY_MS 20
/* Limit of children. There is more than one only if a close hangs even at the end of a process. */
#define CW_CONN_CLOSER_CHILDREN 8u

/*
 * Closes connections in a child of the fork server. fd is the child's end of the pair of sockets.
 */
int cw_conn_closer_child(int fd);

/*
 * Creates the closer. The fork server `forks` must have cw_conn_closer_child() among its jobs, and
 * must outlive the closer. Returns 0 or -ENOMEM.
 */
int cw_conn_closer_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_conn_closer **ret);
/*
 * Frees the closer. Forks a last child for the remaining connections, and waits at most 200 ms for
 * it. c may be NULL. Returns NULL.
 */
struct cw_conn_closer *cw_conn_closer_free(struct cw_conn_closer *c);
/*
 * Closes a connection. Takes ownership of fd: the caller no longer reads from it or writes to it.
 */
void cw_conn_closer_close(struct cw_conn_closer *c, int fd);
/*
 * Return the number of connections that wait for a child now, and of all connections that ever
 * waited.
 */
uint32_t cw_conn_closer_waiting(const struct cw_conn_closer *c);
uint64_t cw_conn_closer_total(const struct cw_conn_closer *c);
