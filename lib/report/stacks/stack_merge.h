/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the Python and the native stack of one thread. The interpreter runs its loop once for each
 * Python frame that C code called (`entry`), and for the Python frames that such a frame calls. So
 * the frames of the loop in the native stack show the places of the Python frames.
 *
 * We read the two stacks one after the other. They belong together only if the thread slept in
 * between, so that its time on the CPU is the same (`run_ns`).
 *
 * The threads are those of a collwatch.evidence/1, and may be hostile. Pure.
 */
#pragma once

#include <jansson.h>

/*
 * Returns an array of native and Python frames, innermost first. We keep frames of the interpreter
 * only if they are inner to all Python frames, such as the built-in function that waits. python,
 * native: the thread in both parts, or NULL. New reference. NULL = out of memory, or the stacks do
 * not fit together, for example because one of them is incomplete.
 */
json_t *cw_stack_merge(const json_t *python, const json_t *native);
