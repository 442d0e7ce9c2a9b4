/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the thread dump of CPython's faulthandler into the "threads" array of the python part of
 * collwatch.evidence/1 (docs/schemas.md). The text comes from a foreign process: the parser must
 * survive any bytes, and skips lines that do not look like a traceback.
 *
 * Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limits of faulthandler itself. */
#define CW_PYTHON_MAX_THREADS 100u
#define CW_PYTHON_MAX_FRAMES 100u
/* The limit of the array as compact JSON. Beyond it we drop the later threads first. */
#define CW_PYTHON_MAX_BYTES (64u << 10)

/*
 * Returns a new reference to the array, which is empty if there is no traceback. NULL = out of
 * memory. *ret_cut: some of the text is missing, because we or faulthandler cut it.
 */
json_t *cw_python_text_parse(const char *text, size_t len, bool *ret_cut);

/*
 * Builds the whole python part from an agent's answer. status is an enum cw_python_status
 * (proto/messages.h). New reference; NULL = out of memory.
 */
json_t *cw_python_text_part(uint32_t status, const char *text);
