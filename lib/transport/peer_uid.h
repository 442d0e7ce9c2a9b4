/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the owner of the other end of a TCP connection on this machine. Loopback is open to every
 * user of the node. Without an authenticated transport, this check stops users from posing as a
 * peer. Reads one file of /proc; otherwise it does not block.
 */
#pragma once

#include <sys/types.h>

/*
 * fd: a connected TCP socket whose peer is on loopback. Returns 0 or -errno. -ENOENT: the kernel
 * does not list the other end, because it is closed or in another network namespace.
 */
int cw_peer_uid(int fd, uid_t *ret_uid);
