/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where CPython keeps the frames of a thread: offsets in bytes, by minor version, the same on all
 * 64-bit machines. A version that is not in the table has no layout: nothing is guessed. What a
 * layout says is compared with the interpreter's own words before it is used
 * (agent/python/call_stack_python.c).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_python_layout {
	/* Of a thread's state: the innermost frame, or a struct on the C stack that has it. */
	uint16_t thread_frame;
	bool is_via_cframe;
	uint16_t cframe_frame;
	/* Of a frame. */
	uint16_t frame_bytes; /* without its variables */
	uint16_t code, previous, instr, owner;
	/* Of a code object; its first line, its texts and its table of lines lie side by side. */
	uint16_t first_line, file, name, line_table, instructions;
	uint16_t text_data, wide_text_data; /* of a text: its characters if all are ASCII, else */
};

/* From the first line of a code object to the end of the others of its fields, at most. */
#define CW_PYTHON_CODE_BYTES 80
/* Of texts and bytes, in all of these versions. */
#define CW_PYTHON_LENGTH 16
#define CW_PYTHON_TEXT_STATE 32
#define CW_PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7) /* bytes of a character */
#define CW_PYTHON_TEXT_IS_COMPACT (1u << 5)
#define CW_PYTHON_TEXT_IS_ASCII (1u << 6)
#define CW_PYTHON_BYTES_DATA 32
/* Frames with such an owner, or a higher one, are no Python code. */
#define CW_PYTHON_OWNER_C 3

/* Of Python 3.minor; NULL = not known. Static. */
const struct cw_python_layout *cw_python_layout_of(unsigned minor);
