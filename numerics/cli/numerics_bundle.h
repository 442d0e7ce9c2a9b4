/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tensor summaries that an incident's bundle holds (collwatch.summaries/1), of its leader's
 * node and of others, as `numerics` takes those of flight records. Reading files blocks.
 */
#pragma once

#include <stdbool.h>

#include "common/err.h"
#include "numerics/read/numerics_files.h"

/* It is a directory, and so no record. */
bool numerics_bundle_is(const char *path);
/*
 * 0; what another node gave and cannot be read is named in ret->silent. -ENODATA: the bundle has no
 * summaries; other -errno with err set, which names the path. For
 * cw_numerics_input_fini() also then. Borrows path.
 */
int numerics_bundle_read(const char *path, struct cw_numerics_input *ret, struct cw_err *err);
