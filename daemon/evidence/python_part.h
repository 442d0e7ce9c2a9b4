/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The python part of collwatch.evidence/1 (docs/schemas.md), from one of two sources.
 *
 * python_take.c reads the stacks from the process's memory (lib/python/reader/python_reader.h)
 * while the process runs. A child opens the memory, confines itself, and only then parses what it
 * reads. The daemon reads the child's output and does not trust it.
 *
 * python_text.c parses the thread dump of CPython's faulthandler, which the agent sends. The text
 * comes from a foreign process: the parser must survive any bytes, and skips lines that do not look
 * like a traceback.
 *
 * Pure, except for the child; any thread.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/evidence/stack.h"

/* ---- from memory ---- */

/* The limit of a child's output: the threads (CW_PYTHON_DOC_BYTES), and what surrounds them. */
#define CW_PYTHON_TAKE_MAX_OUTPUT (72u << 10)

/*
 * Writes the part to out_fd. Returns the exit status. Blocks, and confines the process, so call it
 * in a child only.
 */
int cw_python_take_child(int out_fd, const struct cw_stack_target *target);

/*
 * Builds the part from the child's output. is_whole: the child ended by itself. We drop threads and
 * frames without the expected shape. New reference; NULL = out of memory.
 */
json_t *cw_python_take_read(const char *output, size_t len, bool is_whole);

/* ---- from the agent's text ---- */

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
