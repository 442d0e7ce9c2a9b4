/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who owns the other end of a TCP connection on this machine. Loopback is open to every user of
 * the node; this is what keeps them from posing as a peer while there is no authenticated
 * transport. Reads one file of /proc; else does not block.
 */
#pragma once

#include <sys/types.h>

/*
 * fd: a connected TCP socket whose peer is on loopback. 0, -ENOENT when the kernel does not list
 * the other end (it has closed, or is in another network namespace), or another -errno.
 */
int cw_peer_uid(int fd, uid_t *ret_uid);
