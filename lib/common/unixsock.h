/* SPDX-License-Identifier: Apache-2.0 */
/* UNIX stream sockets, peer identity, descriptor passing. All descriptors are CLOEXEC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Listens non-blocking on path with the given mode; group -1 = unchanged. A stale socket file is
 * replaced (only if nobody answers on it: else -EADDRINUSE); missing parent directories are made
 * (0755). Returns the descriptor or -errno with err set.
 */
int cw_unix_listen(const char *path, mode_t mode, gid_t group, struct cw_err *err);

/* Connects, blocking for at most timeout_ms. Returns a blocking descriptor or -errno. */
int cw_unix_connect(const char *path, int timeout_ms);

struct cw_peer_cred {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd; /* SO_PEERPIDFD where the kernel has it, else pidfd_open(pid); -1 = not to be had
		    */
};

/* Identity of the connected peer from the kernel: its user alone, whatever process that is. 0 or
 * -errno. */
int cw_unix_peer_user(int fd, uid_t *ret_uid, gid_t *ret_gid);
/* Its process, too: -ESRCH of one in a pid namespace that this process cannot see into. */
int cw_unix_peer_ids(int fd, struct cw_peer_cred *ret);
/* And its pidfd, which costs as much as the connection; the caller closes it. */
void cw_unix_peer_pidfd(int fd, struct cw_peer_cred *cred);

/*
 * recvmsg() that takes at most one descriptor; further ones are closed. Returns bytes read (0 = end
 * of stream), or -errno; -EMFILE: one came, and this process has no room for it, so it is lost with
 * the bytes. *ret_fd = -1 when none came.
 */
ssize_t cw_unix_recv_fd(int fd, void *buf, size_t len, int *ret_fd);

/* Sends buf with one descriptor attached to its first byte (-1 = none). Bytes sent or -errno. */
ssize_t cw_unix_send_fd(int fd, const void *buf, size_t len, int send_fd);

/*
 * Of a connection of a stranger, right after accept(): what he sends out of band lies among the
 * rest, where it is looked at, too.
 */
void cw_unix_take_oob_inline(int fd);
/*
 * recv() of what lies there, without waiting. Bytes read (0 = end of stream), or -errno: -EAGAIN,
 * -EBADMSG: descriptors came with some of it, or with what is behind it. Then nothing is read,
 * because to read bytes without the descriptors that came with them is to close those, which may
 * take long: loop/conn_closer.h.
 */
ssize_t cw_unix_recv_bytes(int fd, void *buf, size_t len);
/* Nothing comes any more: reads what lies there and drops it. True: as far as descriptors are. */
bool cw_unix_has_descriptors(int fd);
