/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python stacks of one process, read from its memory (lib/python/reader/python_reader.h). The process
 * runs on meanwhile. The child opens the process's memory, confines itself, and only then parses
 * what it reads. The daemon reads the child's output and does not trust it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/evidence/stack.h"

/* The limit of a child's output: the threads (CW_PYTHON_DOC_BYTES), and what surrounds them. */
#define CW_PYTHON_TAKE_MAX_OUTPUT (72u << 10)

/*
 * Writes the python part of collwatch.evidence/1 to out_fd. Returns the exit status. Blocks, and
 * confines the process, so call it in a child only.
 */
int cw_python_take_child(int out_fd, const struct cw_stack_target *target);

/*
 * Builds the part from the child's output. is_whole: the child ended by itself. We drop threads and
 * frames without the expected shape. New reference; NULL = out of memory. Pure.
 */
json_t *cw_python_take_read(const char *output, size_t len, bool is_whole);
