/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file of collwatch.torch (docs/schemas.md: collwatch.tensors/1), line by line. While the
 * program still writes it, the last line may be incomplete; we skip it.
 *
 * Hostile input. Reading blocks.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "common/err.h"

/*
 * Called for each complete line, the head first. Borrows kind and line. Returns 0 or -errno;
 * -EBADMSG: the line is not valid.
 */
typedef int (*cw_tensor_line_fn)(const char *kind, json_t *line, void *user);

/*
 * Calls on_line for each line of the file. Returns 0 or the first -errno, and err names file and
 * line: -ENOENT …, -EBADMSG an invalid line, -ENOTSUP another schema, or the result of on_line.
 */
int cw_tensor_file_each(const char *path, cw_tensor_line_fn on_line, void *user,
			struct cw_err *err);

/*
 * Return the value at key, or "", fallback or 0 if it is missing or of another type.
 * cw_tensor_line_count() also returns 0 for a value below 0.
 */
const char *cw_tensor_line_text(const json_t *line, const char *key);
int64_t cw_tensor_line_number(const json_t *line, const char *key, int64_t fallback);
uint64_t cw_tensor_line_count(const json_t *line, const char *key);
