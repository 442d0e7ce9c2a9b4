/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons of one user on several nodes, for one job. A list of these daemons and their shared key
 * travel in the environment, which a launcher hands to its programs. `run --peers` sets both
 * variables. On each node, `run --standalone` turns them into a configuration.
 */
#pragma once

#include <stdio.h>

#include "common/err.h"

/* The variables: a list of hosts or of NAME=ADDRESS:PORT, and the key in hex. */
#define RUN_PEERS_LIST "COLLWATCH_PEERS"
#define RUN_PEERS_KEY "COLLWATCH_PEER_KEY"

/*
 * Sets both variables, but keeps an existing key. Returns 0 or -errno with err set. After an error
 * nothing is changed.
 */
int run_peers_hand_on(const char *list, struct cw_err *err);

/*
 * Writes dir/key, and writes to conf the peers that the environment names. We find this node among
 * them under node_name, or under its host name if node_name is NULL. If this node is not among
 * them, it has no peers, and we say so on standard error. Returns 0, also if the environment names
 * no peers, or -errno with err set.
 */
int run_peers_configure(FILE *conf, const char *dir, const char *node_name, struct cw_err *err);
