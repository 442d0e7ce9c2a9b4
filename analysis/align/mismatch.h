/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the difference of two calls is called. That calls differ, and who makes which, is found by
 * align.c; that one was left out or added, by skipped_call.c; who is to blame, by culprit.c. Pure.
 */
#pragma once

#include "model/snapshot.h"
#include "model/verdict_types.h"

/*
 * The first field in which b is not a, in the words of docs/design.md section 10; where NCCL
 * compares bytes, so does this. CW_DETAIL_ORDER where no field differs.
 */
enum cw_detail mismatch_field(const struct cw_op *a, const struct cw_op *b);
