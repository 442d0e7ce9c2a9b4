/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a place in Python code: file, line, function. We read it from the interpreter's
 * memory, without its lock and without faulting. We leave out all parts that look unexpected. Takes
 * some system calls and microseconds. Async-signal-safe; keeps errno.
 */
#pragma once

#include <stdint.h>

#include "agent/python/python_layout.h"
#include "record/record_layout.h"

/* A place in a thread's stack. We read all fields except code and instr from the code object. */
struct cw_python_place {
	uint64_t code, instr;
	uint64_t file, name, line_table; /* addresses: of two texts and of a bytes object */
	int32_t first_line;
};

/* Sets line, file and function of *ret. */
void cw_python_describe(const struct cw_python_layout *layout, const struct cw_python_place *at,
			struct cw_rec_frame *ret);
