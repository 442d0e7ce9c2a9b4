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
 * Called for each whole line, the head first; kind and line are borrowed. -EBADMSG: not a
 * valid line.
 */
typedef int (*cw_tensor_line_fn)(const char *kind, json_t *line, void *user);

/*
 * 0, or the first -errno, and err names file and line: -ENOENT …, -EBADMSG an invalid line,
 * -ENOTSUP another schema, or the result of on_line.
 */
int cw_tensor_file_each(const char *path, cw_tensor_line_fn on_line, void *user,
			struct cw_err *err);

/* The value at key; "" or fallback if it is missing, of another type, or below 0. */
const char *cw_tensor_line_text(const json_t *line, const char *key);
int64_t cw_tensor_line_number(const json_t *line, const char *key, int64_t fallback);
uint64_t cw_tensor_line_count(const json_t *line, const char *key);
