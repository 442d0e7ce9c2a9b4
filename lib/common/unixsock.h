/* SPDX-License-Identifier: Apache-2.0 */
/* UNIX stream sockets, peer identity, descriptor passing. All descriptors are CLOEXEC. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Listens on path, non-blocking, with the given mode of the file. With group -1 its group is
 * unchanged. Replaces a stale socket file, but returns -EADDRINUSE if a process listens on it.
 * Makes missing parent directories (0755). Returns the descriptor, or -errno with err set.
 */
int cw_unix_listen(const char *path, mode_t mode, gid_t group, struct cw_err *err);

/* Connects, blocking for at most timeout_ms. Returns a blocking descriptor or -errno. */
int cw_unix_connect(const char *path, int timeout_ms);

struct cw_peer_cred {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	int pidfd; /* SO_PEERPIDFD if the kernel has it, else pidfd_open(pid); -1 = not available */
};

/*
 * Stores the user and group of the connected peer, from the kernel. Works even if the peer's
 * process is not visible to us. Returns 0 or -errno.
 */
int cw_unix_peer_user(int fd, uid_t *ret_uid, gid_t *ret_gid);
/*
 * Stores the pid, user and group of the connected peer, but no pidfd. Returns -ESRCH if the peer is
 * in a pid namespace that this process cannot see into.
 */
int cw_unix_peer_ids(int fd, struct cw_peer_cred *ret);
/* Adds the peer's pidfd to *cred, which costs as much as the connection. The caller closes it. */
void cw_unix_peer_pidfd(int fd, struct cw_peer_cred *cred);

/*
 * Like recvmsg(), but accepts at most one descriptor and closes further ones. Returns the bytes
 * read (0 = end of stream), or -errno. Returns -EMFILE if a descriptor came, but this process had
 * no room for it. The descriptor and the bytes are then lost. *ret_fd = -1 if none came.
 */
ssize_t cw_unix_recv_fd(int fd, void *buf, size_t len, int *ret_fd);

/*
 * Sends buf with one descriptor attached to its first byte (-1 = none). Returns the bytes sent or
 * -errno.
 */
ssize_t cw_unix_send_fd(int fd, const void *buf, size_t len, int send_fd);

/*
 * Call it for an untrusted connection right after accept(). Out-of-band data then arrives in the
 * normal stream, where we inspect it, too.
 */
void cw_unix_take_oob_inline(int fd);
/*
 * Like recv() of the pending bytes, without waiting. Returns the bytes read (0 = end of stream), or
 * -errno. -EAGAIN means that no bytes are pending. -EBADMSG means that descriptors are attached to
 * these bytes or to later ones, and we read nothing. If we read bytes without their descriptors,
 * this process would close the descriptors, which may take long: loop/conn_closer.h.
 */
ssize_t cw_unix_recv_bytes(int fd, void *buf, size_t len);
/*
 * Shuts down the reading side, then reads and drops the pending bytes up to the first one with
 * descriptors. Returns true if the socket holds descriptors.
 */
bool cw_unix_has_descriptors(int fd);
