/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter of a process: where its state begins, which version it has, and the layout
 * of that version. From 3.13 on the state carries most offsets itself (_Py_DebugOffsets). Before
 * 3.11 the version follows from the functions that the interpreter exports, because no object says
 * it.
 *
 * A lookup costs about ten reads per program file, so we cache nothing by build id.
 *
 * Any thread; reads through the given memory only.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "python/python_layout.h"
#include "python/python_memory.h"

enum cw_python_result {
	CW_PYTHON_READ = 0,
	CW_PYTHON_NONE,      /* no program file exports an interpreter's state */
	CW_PYTHON_UNKNOWN,   /* a version without a layout */
	CW_PYTHON_NO_LOCK,   /* a build without an interpreter lock: not read */
	CW_PYTHON_IDLE,      /* the interpreter has not started, or has ended */
	CW_PYTHON_ODD,       /* the memory is not as the version says */
	CW_PYTHON_UNSTEADY,  /* the list of threads changed in each attempt */
	CW_PYTHON_EXHAUSTED, /* more reads than we make for one process */
};

/* Returns the sentence for a result other than CW_PYTHON_READ. Static. */
const char *cw_python_result_text(enum cw_python_result result);

struct cw_python_runtime {
	uint64_t address;   /* of _PyRuntime */
	uint64_t code_type; /* address of the type of code objects */
	unsigned minor;     /* version 3.minor; set for CW_PYTHON_UNKNOWN, too, if it is known */
	struct cw_python_layout layout;
};

/*
 * Searches the program files that are mapped at bases[0..n), in this order. CW_PYTHON_READ fills
 * *ret.
 */
enum cw_python_result cw_python_runtime_find(const struct cw_python_memory *memory,
					     const uint64_t *bases, size_t n,
					     struct cw_python_runtime *ret);
