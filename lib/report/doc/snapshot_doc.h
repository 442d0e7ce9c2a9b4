/* SPDX-License-Identifier: Apache-2.0 */
/* collwatch.snapshot/1: lossless conversion of a snapshot to JSON and back, thresholds included. */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "model/snapshot.h"

/*
 * Converts the snapshot to JSON. 64-bit ids become strings "0x…". New reference; NULL = out of
 * memory.
 */
json_t *cw_snapshot_doc(const struct cw_snapshot *snap);

/*
 * Converts an untrusted document to a snapshot. Returns 0, -ENOMEM, -E2BIG, or -EBADMSG with the
 * field in err.
 */
int cw_snapshot_from_doc(const json_t *doc, struct cw_snapshot **ret, struct cw_err *err);
