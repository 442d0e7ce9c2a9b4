/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the calling thread is in Python, without the interpreter's lock: its own frames cannot
 * change while it is inside of a call, whoever holds the lock. They are found with the offsets of
 * the version (python_layout.h), which are used only after the interpreter itself, asked once
 * through its API for a stack, has said the same. Everything is read in the way that fails instead
 * of faulting, so neither a wrong offset nor an interpreter that is being taken down can do harm.
 */
#pragma once

#include <stdbool.h>

#include "agent/python/python_code.h"
#include "agent/record/own_memory.h"

#define CW_PYTHON_PLACES CW_REC_STACK_PYTHON
_Static_assert(CW_PYTHON_PLACES <= CW_OWN_READ_MANY, "their code objects are read at once");

/*
 * Asks the interpreter, if there is one, to have its offsets checked when it gets to it. The first
 * call counts. Any thread; keeps errno.
 */
void cw_python_frames_arm(void);

/*
 * The calling thread's innermost frames, innermost first; how many. 0: none, or not armed.
 * *ret_is_cut: there are more. Some microseconds, three system calls and more; no lock, no
 * allocation; keeps errno.
 */
unsigned cw_python_frames(struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut);

/* As cw_python_describe(), with the layout in use. */
void cw_python_frame_describe(const struct cw_python_place *at, struct cw_rec_frame *ret);
