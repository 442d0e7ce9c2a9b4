/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calling thread's Python frames, without the interpreter's lock. While the thread is inside a
 * call, its own frames cannot change, no matter which thread holds the lock. We find the frames
 * with the offsets of the Python version (python_layout.h). Before we use these offsets, we check
 * them once: we ask the interpreter's own API for a stack and compare. All reads fail instead of
 * faulting, so a wrong offset or an interpreter in shutdown does no harm.
 */
#pragma once

#include <stdbool.h>

#include "agent/python/python_frame.h"
#include "agent/record/own_memory.h"

#define CW_PYTHON_PLACES CW_REC_STACK_PYTHON
_Static_assert(CW_PYTHON_PLACES <= CW_OWN_READ_MANY, "their code objects are read at once");

/*
 * If the process has an interpreter, queues the check of its offsets, which the interpreter runs
 * later. Only the first call has an effect. Any thread; keeps errno.
 */
void cw_python_frames_arm(void);

/*
 * Stores the calling thread's innermost frames, innermost first, and returns their number. Returns
 * 0 if the thread has no Python frames, or before the check. *ret_is_cut: the thread has more
 * frames. Takes some microseconds and at least three system calls. No lock, no allocation; keeps
 * errno.
 */
unsigned cw_python_frames(struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut);

/* Like cw_python_describe(), but with the layout of the running Python. */
void cw_python_frame_describe(const struct cw_python_place *at, struct cw_rec_frame *ret);
