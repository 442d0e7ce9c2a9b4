/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds ranks that run the same code on other data: peers. Only a comparison of peers can show that
 * a rank differs by accident. Pipeline stages differ by design, and so do the first and the last
 * stage.
 *
 * Ranks that exchange sends and receives form a pipeline. Two ranks of one pipeline are never
 * peers. Members of a communicator without two ranks of one pipeline are peers, and so are the
 * peers of a peer. An all-to-all consists of sends and receives too, but joins all members equally
 * and makes no pipeline.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

/*
 * Writes the number of its group of peers for each rank of the snapshot, or CW_SNAP_NONE if the
 * rank's role is not known. The group's number is the lowest index of a member. ret has room for
 * snap->n_ranks. Pure; O(members + sends and receives). Returns 0 or -ENOMEM.
 */
int cw_peers_find(const struct cw_snapshot *snap, uint32_t *ret);
