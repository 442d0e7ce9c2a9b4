/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's Python frames, without the interpreter's lock. While the thread is inside a
 * call, its own frames cannot change, no matter which thread holds the lock. We find them with the
 * offsets of the Python version (python_layout.h). We use these offsets only after a check: once,
 * we ask the interpreter's own API for a stack and compare. All reads fail instead of faulting, so
 * a wrong offset or an interpreter in shutdown does no harm.
 */
#pragma once

#include <stdbool.h>

#include "agent/python/python_code.h"
#include "agent/record/own_memory.h"

#define CW_PYTHON_PLACES CW_REC_STACK_PYTHON
_Static_assert(CW_PYTHON_PLACES <= CW_OWN_READ_MANY, "their code objects are read at once");

/*
 * If there is an interpreter, queues the check of its offsets, which the interpreter runs later.
 * The first call counts. Any thread; keeps errno.
 */
void cw_python_frames_arm(void);

/*
 * Stores the calling thread's innermost frames, innermost first, and returns their number; 0: none,
 * or not armed. *ret_is_cut: there are more. Some microseconds, three system calls and more; no
 * lock, no allocation; keeps errno.
 */
unsigned cw_python_frames(struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut);

/* Same as cw_python_describe(), with the layout in use. */
void cw_python_frame_describe(const struct cw_python_place *at, struct cw_rec_frame *ret);
