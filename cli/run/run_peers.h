/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons of one user on several nodes, for one job: who they are, and the key that they share,
 * come with the environment that a launcher hands to its programs. `run --peers` puts both there;
 * `run --standalone` on each node makes a configuration of them.
 */
#pragma once

#include <stdio.h>

#include "common/err.h"

/* The variables: a list of hosts, or of NAME=ADDRESS:PORT; and the key, in hex. */
#define RUN_PEERS_LIST "COLLWATCH_PEERS"
#define RUN_PEERS_KEY "COLLWATCH_PEER_KEY"

/* Sets both; a key that is there already stays. 0, or -errno with err set: nothing is changed. */
int run_peers_hand_on(const char *list, struct cw_err *err);

/*
 * Writes dir/key, and to conf the peers that the environment names, this node among them under
 * node_name, or, where that is NULL, under its host name. Where it is not among them it has none;
 * a line on standard error says so. 0, also where the environment names none, or -errno with err
 * set.
 */
int run_peers_configure(FILE *conf, const char *dir, const char *node_name, struct cw_err *err);
