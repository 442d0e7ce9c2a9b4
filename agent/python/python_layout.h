/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where CPython keeps a thread's frames: offsets in bytes by minor version, the same on
 * all 64-bit machines. A version that is not in the table has no layout: we do not guess. Before we
 * use a layout, we compare it with a stack from the interpreter's own
 * API (agent/python/call_stack_python.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_python_layout {
	/*
	 * Offset in a thread's state: the pointer to the innermost frame, or to a struct on the C
	 * stack that points to the frame.
	 */
	uint16_t thread_frame;
	bool is_via_cframe;
	uint16_t cframe_frame;
	/* Offsets in a frame, and its size. */
	uint16_t frame_bytes; /* without its variables */
	uint16_t code, previous, instr, owner;
	/*
	 * Offsets in a code object. Its first line, its texts and its table of lines lie side by
	 * side.
	 */
	uint16_t first_line, file, name, line_table, instructions;
	/* Offset of a text's characters: in an ASCII text, and in any other text. */
	uint16_t text_data, wide_text_data;
};

/* The most bytes from a code object's first line to the end of its other fields. */
#define CW_PYTHON_CODE_BYTES 80
/* Offsets in texts and bytes objects. They are the same in all of these versions. */
#define CW_PYTHON_LENGTH 16
#define CW_PYTHON_TEXT_STATE 32
#define CW_PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7) /* bytes of a character */
#define CW_PYTHON_TEXT_IS_COMPACT (1u << 5)
#define CW_PYTHON_TEXT_IS_ASCII (1u << 6)
#define CW_PYTHON_BYTES_DATA 32
/* A frame with this owner, or a higher one, has no Python code. */
#define CW_PYTHON_OWNER_C 3

/* Returns the layout of Python 3.minor; NULL = not known. Static. */
const struct cw_python_layout *cw_python_layout_of(unsigned minor);
