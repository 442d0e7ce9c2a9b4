/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of collwatch.torch (docs/schemas.md: collwatch.tensors/1), line by line. Of a file that is
 * being written the last line may be half there, and is left out.
 *
 * Hostile input. Reading blocks.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

/* Of each whole line, the head first; its kind and the line are borrowed. -EBADMSG: is none. */
typedef int (*cw_tensor_line_fn)(const char *kind, json_t *line, void *user);

/*
 * 0, or the first -errno, with err naming file and line: -ENOENT …, -EBADMSG no such line, -ENOTSUP
 * another schema, or what on_line gave.
 */
int cw_tensor_file_each(const char *path, cw_tensor_line_fn on_line, void *user,
			struct cw_err *err);

/* "" and fallback, 0 where it is not there, or is of another type, or below 0. */
const char *cw_tensor_line_text(const json_t *line, const char *key);
int64_t cw_tensor_line_number(const json_t *line, const char *key, int64_t fallback);
uint64_t cw_tensor_line_count(const json_t *line, const char *key);
