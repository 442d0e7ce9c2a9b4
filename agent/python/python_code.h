/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a place in Python code: file, line, function. We read it from the interpreter's
 * memory, without its lock and without faulting, and leave out all parts that look unexpected. Some
 * system calls and microseconds; async-signal-safe; errno is kept.
 */
#pragma once

#include <stdint.h>

#include "agent/python/python_layout.h"
#include "record/record_layout.h"

/* A place in a thread's stack. All fields but code and instr come from the code object. */
struct cw_python_place {
	uint64_t code, instr;
	uint64_t file, name, line_table; /* addresses: two texts, one bytes object */
	int32_t first_line;
};

/* Fills in line, file and function. */
void cw_python_describe(const struct cw_python_layout *layout, const struct cw_python_place *at,
			struct cw_rec_frame *ret);
