/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python stacks of a process as the python part of collwatch.evidence/1 (docs/schemas.md). The
 * names in the part come from the process, so a receiver must clean them.
 */
#pragma once

#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/reader/python_process.h"

/* Limit of the threads' size as compact JSON. We omit threads that exceed the limit. */
#define CW_PYTHON_DOC_BYTES (64u << 10)

/*
 * Reads the process's stacks and makes the part. The main thread comes last, as in faulthandler.
 * New reference; NULL = out of memory. Blocks like cw_python_process_read().
 */
json_t *cw_python_doc(struct cw_python_process *process, pid_t pid);

/*
 * Makes the part for a process that cw_python_process_open() cannot open. `error` is the result of
 * that function. New reference; NULL = out of memory.
 */
json_t *cw_python_doc_not_opened(int error);
