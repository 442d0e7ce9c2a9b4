/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closing connections of strangers on UNIX sockets. Whoever is at the other end can put descriptors
 * into one; the kernel closes those together with it, in the process that has it last, and some
 * take as long as their owner likes (a TCP socket with SO_LINGER whose peer does not read). So a
 * connection with descriptors in it is closed by a child: at the end of a process nothing lingers.
 *
 * What may not be done either is reading them away: cw_unix_recv_bytes().
 *
 * Loop thread only; does not block.
 */
#pragma once

#include <stdint.h>

struct cw_conn_closer;
struct cw_fork_server;
struct event_base;

/* So long connections are collected for one child: a flood of them must not become one of forks. */
#define CW_CONN_CLOSER_EVERY_MS 20
/* Children at once: all but the first hang at something that even the end of a process waits for.
 */
#define CW_CONN_CLOSER_CHILDREN 8u

/* A job of the fork server's. */
int cw_conn_closer_child(int fd);

/* forks, which has that job, is borrowed for life. 0 or -ENOMEM. */
int cw_conn_closer_new(struct event_base *base, struct cw_fork_server *forks,
		       struct cw_conn_closer **ret);
/* Takes NULL; returns NULL. Forks a last child for what waits, and waits 200 ms for it at most. */
struct cw_conn_closer *cw_conn_closer_free(struct cw_conn_closer *c);
/* Takes fd, which nothing is read from or written to any more. */
void cw_conn_closer_close(struct cw_conn_closer *c, int fd);
/* Connections that wait for a child; those that were given to one so far. */
uint32_t cw_conn_closer_waiting(const struct cw_conn_closer *c);
uint64_t cw_conn_closer_total(const struct cw_conn_closer *c);
