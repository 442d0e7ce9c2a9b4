/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collwatch.snapshot/1 is put together from, as a whole (snapshot_doc.c) or piece by piece
 * as text (snapshot_text.c). All return a new reference, NULL = out of memory.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/* All but "ranks" and "comms". n_comms: so many are kept; a note says so where not all are. */
json_t *cw_snapshot_doc_head(const struct cw_snapshot *snap, size_t n_comms);
json_t *cw_snapshot_doc_rank(const struct cw_snap_rank *rank);
/* Without "members". */
json_t *cw_snapshot_doc_comm(const struct cw_snap_comm *comm);
json_t *cw_snapshot_doc_member(const struct cw_snap_member *m, uint32_t comm_rank);
