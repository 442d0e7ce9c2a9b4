/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of a collwatch.snapshot/1. snapshot_doc.c joins them to one document, and
 * snapshot_text.c writes them one by one as text. All functions return a new reference; NULL = out
 * of memory.
 */
#pragma once

#include <jansson.h>

#include "model/snapshot.h"

/*
 * Returns all parts of the document except "ranks" and "comms". n_comms: the number of comms that
 * we write. If it is less than the snapshot has, a note says so.
 */
json_t *cw_snapshot_doc_head(const struct cw_snapshot *snap, size_t n_comms);
json_t *cw_snapshot_doc_rank(const struct cw_snap_rank *rank);
/* Returns the comm without its "members". */
json_t *cw_snapshot_doc_comm(const struct cw_snap_comm *comm);
json_t *cw_snapshot_doc_member(const struct cw_snap_member *m, uint32_t comm_rank);
