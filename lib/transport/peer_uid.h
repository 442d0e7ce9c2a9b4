/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The owner of the other end of a TCP connection on this machine. Loopback is open to every user of
 * the node. Without an authenticated transport, this check stops users from posing as a peer. Reads
 * one file of /proc; else does not block.
 */
#pragma once

#include <sys/types.h>

/*
 * fd: a connected TCP socket whose peer is on loopback. 0, -ENOENT if the kernel does not list the
 * other end (closed, or in another network namespace), or another -errno.
 */
int cw_peer_uid(int fd, uid_t *ret_uid);
