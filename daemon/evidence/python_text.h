/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text CPython's faulthandler writes about its threads, as the "threads" array of the python
 * part of collwatch.evidence/1 (docs/schemas.md). The text comes out of somebody's process: any
 * bytes must be survived, and what does not look like a traceback is skipped.
 *
 * Pure; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many as faulthandler itself writes. */
#define CW_PYTHON_MAX_THREADS 100u
#define CW_PYTHON_MAX_FRAMES 100u
/* Of the array as compact JSON: what does not fit is left out, later threads first. */
#define CW_PYTHON_MAX_BYTES (64u << 10)

/*
 * New reference (an empty array when there is no traceback); NULL = out of memory. *ret_cut: some
 * of the text was left out, here or by faulthandler.
 */
json_t *cw_python_text_parse(const char *text, size_t len, bool *ret_cut);

/*
 * The whole python part from an agent's answer; status: enum cw_python_status (proto/messages.h).
 * New reference; NULL = out of memory.
 */
json_t *cw_python_text_part(uint32_t status, const char *text);
