/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the calling thread's Python frames without the interpreter's lock. While the thread is
 * inside a call, its own frames cannot change, whichever thread holds the lock. We find the frames
 * with the offsets of the Python version (python_layout.h). Before first use we check these
 * offsets: the interpreter's own API gives a stack, and we compare. All reads fail instead of
 * faulting, so a wrong offset or an interpreter in shutdown does no harm.
 */
#pragma once

#include <stdbool.h>

#include "agent/python/python_frame.h"
#include "agent/record/own_memory.h"

#define CW_PYTHON_PLACES CW_REC_STACK_PYTHON
_Static_assert(CW_PYTHON_PLACES <= CW_OWN_READ_MANY, "their code objects are read at once");

/*
 * Queues the check of the offsets if the process has an interpreter. The interpreter runs the check
 * later. Only the first call has an effect. Any thread; keeps errno.
 */
void cw_python_frames_arm(void);

/*
 * Stores the calling thread's innermost frames, innermost first, and returns their number. Returns
 * 0 if the thread has no Python frames, or if the check of the offsets has not succeeded yet.
 * *ret_is_cut: true if the thread has more frames. Takes some microseconds and at least three
 * system calls. No lock, no allocation; keeps errno.
 */
unsigned cw_python_frames(struct cw_python_place places[CW_PYTHON_PLACES], bool *ret_is_cut);

/* Names a place, like cw_python_describe(), with the layout of the running Python. */
void cw_python_frame_describe(const struct cw_python_place *at, struct cw_rec_frame *ret);
