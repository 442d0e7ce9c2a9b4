/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the interpreter of a process: the address of its state, its version, and the layout of that
 * version. From 3.13 on the state carries most offsets itself (_Py_DebugOffsets). Before 3.11 no
 * object contains the version. We derive it from the functions that the interpreter exports.
 *
 * A lookup costs about ten reads per program file, so we need no cache by build id.
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
	CW_PYTHON_UNKNOWN,   /* we have no layout for this version */
	CW_PYTHON_NO_LOCK,   /* the build has no interpreter lock, so we do not read it */
	CW_PYTHON_IDLE,      /* the interpreter has not started, or has ended */
	CW_PYTHON_ODD,       /* the memory does not fit the Python version */
	CW_PYTHON_UNSTEADY,  /* the list of threads changed in each attempt */
	CW_PYTHON_EXHAUSTED, /* the reads exceed the limit for one process */
};

/* Returns a sentence for users that explains a result other than CW_PYTHON_READ. Static. */
const char *cw_python_result_text(enum cw_python_result result);

struct cw_python_runtime {
	uint64_t address;   /* address of _PyRuntime */
	uint64_t code_type; /* address of the type of code objects */
	unsigned minor;     /* version 3.minor; set even for CW_PYTHON_UNKNOWN if we know it */
	struct cw_python_layout layout;
};

/*
 * Searches the program files that are mapped at bases[0..n), in this order. Fills *ret if the
 * result is CW_PYTHON_READ.
 */
enum cw_python_result cw_python_runtime_find(const struct cw_python_memory *memory,
					     const uint64_t *bases, size_t n,
					     struct cw_python_runtime *ret);
