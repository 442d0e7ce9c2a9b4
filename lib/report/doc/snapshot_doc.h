/* SPDX-License-Identifier: Apache-2.0 */
/* collwatch.snapshot/1: lossless conversion of a snapshot to JSON and back, thresholds included. */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "model/snapshot.h"

/* New reference; NULL = out of memory. 64-bit ids are strings "0x…". */
json_t *cw_snapshot_doc(const struct cw_snapshot *snap);

/* The input is untrusted. Returns 0, -ENOMEM, -E2BIG, or -EBADMSG with the field in err. */
int cw_snapshot_from_doc(const json_t *doc, struct cw_snapshot **ret, struct cw_err *err);
