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
/* Limit of the array as compact JSON: we drop later threads first. */
#define CW_PYTHON_MAX_BYTES (64u << 10)

/*
 * New reference (an empty array if there is no traceback); NULL = out of memory. *ret_cut: some of
 * the text is missing, cut here or by faulthandler.
 */
json_t *cw_python_text_parse(const char *text, size_t len, bool *ret_cut);

/*
 * Builds the whole python part from an agent's answer; status: enum cw_python_status
 * (proto/messages.h). New reference; NULL = out of memory.
 */
json_t *cw_python_text_part(uint32_t status, const char *text);
