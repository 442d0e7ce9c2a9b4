/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds peers: ranks that run the same code on different data. Only a comparison of peers shows
 * that a rank differs by accident. Pipeline stages differ by design, and so do the first and the
 * last stage.
 *
 * Ranks that exchange sends and receives form a pipeline. Two ranks of one pipeline are never
 * peers. If a communicator has no two ranks of one pipeline, its members are peers. Peers of peers
 * are peers, too. An all-to-all consists of sends and receives, but joins all members equally and
 * makes no pipeline.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

/*
 * Writes each rank's group of peers to ret, which has room for snap->n_ranks numbers. The number of
 * a group is its lowest rank index. CW_SNAP_NONE = the role of the rank is not known. Pure;
 * O(members + sends and receives). Returns 0 or -ENOMEM.
 */
int cw_peers_find(const struct cw_snapshot *snap, uint32_t *ret);
