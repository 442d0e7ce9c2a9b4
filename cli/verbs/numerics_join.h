/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that another has gathered (collwatch.summaries/1), beside those that `numerics` has read.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "import/numerics_files.h"

/*
 * path: where they are said to be from; else (NULL) of processes on `node`. Copies what it takes;
 * ranks that are there already it does not (cw_looks_join()). 0, -EBADMSG, -E2BIG with err set, or
 * -ENOMEM; after an error only cw_numerics_input_fini() may follow.
 */
int numerics_join(struct cw_numerics_input *in, const json_t *doc, const char *path,
		  const char *node, struct cw_err *err);
