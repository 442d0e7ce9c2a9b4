/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the user that owns the other end of a TCP connection on this machine. Every user of the
 * node can connect to a loopback port. Without a key or certificates, only this check stops other
 * users from posing as a peer. Reads one file of /proc; otherwise nothing here blocks.
 */
#pragma once

#include <sys/types.h>

/*
 * Stores the owner of the other end in *ret_uid. fd: a TCP socket that is connected over loopback.
 * Returns 0 or -errno. -ENOENT: the kernel does not list the other end, because it is closed or in
 * another network namespace.
 */
int cw_peer_uid(int fd, uid_t *ret_uid);
