/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of a process as the python part of collwatch.evidence/1 (docs/schemas.md). The
 * names in it come from the process: a receiver cleans them.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/reader/python_process.h"

/* The limit of the threads as compact JSON. Beyond it we leave out threads. */
#define CW_PYTHON_DOC_BYTES (64u << 10)

/*
 * Reads the process's stacks and makes the part. The main thread comes last, as faulthandler has
 * it. New reference; NULL = out of memory. Blocks as cw_python_process_read() does.
 */
json_t *cw_python_doc(struct cw_python_process *process, pid_t pid);

/* The part for a process that cw_python_process_open() cannot open. New reference or NULL. */
json_t *cw_python_doc_not_opened(int error);
