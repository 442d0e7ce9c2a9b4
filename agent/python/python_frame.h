/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a place in Python code: file, line, function. We read the name from the interpreter's
 * memory, without its lock and without faulting. We omit all parts that look unexpected. Takes some
 * system calls and microseconds. Async-signal-safe; keeps errno.
 */
#pragma once

#include "python/python_code.h"
#include "python/python_layout.h"
#include "record/record_layout.h"

/* Sets line, file and function of *ret. */
void cw_python_describe(const struct cw_python_layout *layout, const struct cw_python_place *at,
			struct cw_rec_frame *ret);
