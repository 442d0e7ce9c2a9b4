/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the tensor summaries in an incident's bundle (collwatch.summaries/1), from its leader's
 * node and from others, into the input of `numerics`. Reading files blocks.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"
#include "numerics/read/numerics_files.h"

/* True if the path is a directory, which may be a bundle but not a record. */
bool numerics_bundle_is(const char *path);
/*
 * Reads the summaries in a bundle. Borrows path. Returns 0; ret->silent then names the nodes whose
 * answer is unreadable. -ENODATA: the bundle has no summaries. Other -errno: err is set and names
 * the path. The caller calls cw_numerics_input_fini() in any case.
 */
int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err);
