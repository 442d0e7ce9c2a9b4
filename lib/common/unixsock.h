/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UNIX stream sockets, the identity of their peers, and the passing of descriptors. All descriptors
 * are CLOEXEC.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * Listens on path, non-blocking. The socket file gets the given mode and group; with group -1 its
 * group is unchanged. Replaces a stale socket file, but returns -EADDRINUSE if a process listens on
 * it. Makes missing parent directories (0755). Returns the descriptor, or -errno with err set.
 */
int cw_unix_listen(const char *path, mode_t mode, gid_t group, struct cw_err *err);

/*
 * Connects to the socket at path, blocking for at most timeout_ms. Returns a blocking descriptor or
 * -errno.
 */
int cw_unix_connect(const char *path, int timeout_ms);

struct cw_peer_cred {
	pid_t pid;
	uid_t uid;
	gid_t gid;
	/* From SO_PEERPIDFD if the kernel has it, else from pidfd_open(pid); -1 = not available. */
	int pidfd;
};

/*
 * Stores the user and group of the connected peer, which the kernel knows. Works even if the peer's
 * process is not visible to us. Returns 0 or -errno.
 */
int cw_unix_peer_user(int fd, uid_t *ret_uid, gid_t *ret_gid);
/*
 * Stores the pid, user and group of the connected peer, but no pidfd. Returns 0 or -errno; -ESRCH
 * if the peer is in a pid namespace that this process cannot see into.
 */
int cw_unix_peer_ids(int fd, struct cw_peer_cred *ret);
/*
 * Adds the peer's pidfd to *cred. This call costs as much as the connection itself. The caller
 * closes the pidfd.
 */
void cw_unix_peer_pidfd(int fd, struct cw_peer_cred *cred);

/*
 * Like recvmsg(), but accepts at most one descriptor and closes all others. Returns the bytes read
 * (0 = end of stream), or -errno. -EMFILE means that a descriptor came, but this process is at its
 * limit of descriptors; the descriptor and the bytes are then lost. *ret_fd = -1 if no descriptor
 * came.
 */
ssize_t cw_unix_recv_fd(int fd, void *buf, size_t len, int *ret_fd);

/*
 * Sends buf with one descriptor attached to its first byte. send_fd = -1: without a descriptor.
 * Returns the bytes sent or -errno.
 */
ssize_t cw_unix_send_fd(int fd, const void *buf, size_t len, int send_fd);

/*
 * Makes out-of-band data arrive in the normal stream. Callers inspect only that stream, so an
 * untrusted peer could otherwise hide data from us. Call this function right after accept().
 */
void cw_unix_take_oob_inline(int fd);
/*
 * Reads the pending bytes without waiting, like recv(). Returns the bytes read (0 = end of stream),
 * or -errno. -EAGAIN means that no bytes are pending. -EBADMSG means that descriptors are attached
 * to these bytes or to later ones, and that we read nothing. If we read such bytes without their
 * descriptors, the kernel would close the descriptors in this process. A close may take long: see
 * loop/conn_closer.h.
 */
ssize_t cw_unix_recv_bytes(int fd, void *buf, size_t len);
/*
 * Shuts down the reading side. Then reads and drops the pending bytes up to the first byte with
 * descriptors. Returns true if the socket holds descriptors.
 */
bool cw_unix_has_descriptors(int fd);
