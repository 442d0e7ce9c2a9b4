/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The "python" part of collwatch.evidence/1 (docs/schemas.md). It has one of two sources.
 *
 * python_take.c reads the stacks from the memory of the running process
 * (lib/python/reader/python_reader.h). A child opens this memory, confines itself, and only then
 * parses what it reads. The daemon does not trust the child's output.
 *
 * python_text.c parses the text of CPython's faulthandler, which the agent sends. The text comes
 * from another user's process. The parser must therefore survive any bytes. It skips lines that do
 * not look like a traceback.
 *
 * Depends only on its arguments, except for the child; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/evidence/stack.h"

/* ---- from memory ---- */

/* Maximum size of a child's output: the threads (CW_PYTHON_DOC_BYTES), and the JSON around them. */
#define CW_PYTHON_TAKE_MAX_OUTPUT (72u << 10)

/*
 * Reads the stacks, and writes the part to out_fd. Returns an exit status. Blocks, and confines the
 * process, so call this only in a child.
 */
int cw_python_take_child(int out_fd, const struct cw_stack_target *target);

/*
 * Reads the stacks of n processes of one user. Writes a line of JSON for each process with facts
 * about its main thread: {"index": i, "proc": {…}}. Then it confines itself, and writes a line for
 * each with the part: {"index": i, "python": {…}}. Returns an exit status. Blocks, so call this
 * only in a child.
 */
int cw_python_take_all_child(int out_fd, const struct cw_stack_target *targets, size_t n);

/*
 * Makes the part from the child's output, as a new reference; NULL = out of memory. is_whole: the
 * child ended by itself. Drops threads and frames that do not have the expected fields.
 */
json_t *cw_python_take_read(const char *output, size_t len, bool is_whole);
/* Makes the part from the part that a child wrote, which may be any value. */
json_t *cw_python_take_clean(const json_t *part);

/* ---- from the agent's text ---- */

/* The limits of faulthandler itself. */
#define CW_PYTHON_MAX_THREADS 100u
#define CW_PYTHON_MAX_FRAMES 100u
/* Maximum size of the array as compact JSON. If the array is longer, we drop the last threads. */
#define CW_PYTHON_MAX_BYTES (64u << 10)

/*
 * Returns the threads as an array, a new reference; NULL = out of memory. The array is empty if the
 * text has no traceback. *ret_cut: part of the text is missing, because we or faulthandler cut it.
 */
json_t *cw_python_text_parse(const char *text, size_t len, bool *ret_cut);

/*
 * Makes the whole part from an agent's answer, as a new reference; NULL = out of memory. status: an
 * enum cw_python_status (proto/messages.h).
 */
json_t *cw_python_text_part(uint32_t status, const char *text);
