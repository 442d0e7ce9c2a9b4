/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a place in Python code is called: file, line, function. Read from the interpreter's memory,
 * without its lock and without faulting: whatever is not as expected is left out. Some system calls
 * and microseconds; async-signal-safe; errno is kept.
 */
#pragma once

#include <stdint.h>

#include "agent/python/python_layout.h"
#include "record/record_layout.h"

/* A place where a thread is: all but code and instr are of the code object. */
struct cw_python_place {
	uint64_t code, instr;
	uint64_t file, name, line_table; /* addresses of texts, and of bytes */
	int32_t first_line;
};

/* Fills in line, file and function. */
void cw_python_describe(const struct cw_python_layout *layout, const struct cw_python_place *at,
			struct cw_rec_frame *ret);
