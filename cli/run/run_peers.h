/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons of one user on several nodes, for one job. Two environment variables hold the list of the
 * daemons and their common key. `run --peers` sets both, and a launcher hands them to its programs.
 * On each node, `run --standalone` makes a configuration from them.
 */
#pragma once

#include <stdio.h>

#include "common/err.h"

/* The variables: a list of hosts or of NAME=ADDRESS:PORT, and the key in hexadecimal digits. */
#define RUN_PEERS_LIST "COLLWATCH_PEERS"
#define RUN_PEERS_KEY "COLLWATCH_PEER_KEY"

/*
 * Sets both variables, but keeps a key that is already set. Returns 0, or -errno with err set and
 * no variable changed.
 */
int run_peers_hand_on(const char *list, struct cw_err *err);

/*
 * Writes the key to dir/key, and writes the peers that the environment names to conf. We find this
 * node among them by node_name, or by its host name if node_name is NULL. If it is not among them,
 * it has no peers, and we say so on standard error. Returns 0, also if the environment names no
 * peers. Otherwise returns -errno with err set.
 */
int run_peers_configure(FILE *conf, const char *dir, const char *node_name, struct cw_err *err);
