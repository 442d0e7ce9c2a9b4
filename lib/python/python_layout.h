/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where CPython keeps its threads and their frames: offsets in bytes by minor version,
 * the same on all 64-bit machines. A version that is not in the table has no layout: we do not
 * guess. The agent compares a layout with a stack from the interpreter's own API before it uses it
 * (agent/python/call_stack_python.c). A reader from outside checks each object's type
 * (lib/python/reader/python_reader.h).
 *
 * Pure; any thread; async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The format of a code object's table of lines (CPython's Objects/lnotab_notes.txt, locations.md).
 */
enum cw_python_lines {
	CW_PYTHON_LINES_LNOTAB = 0, /* to 3.9 */
	CW_PYTHON_LINES_DELTAS,     /* 3.10 */
	CW_PYTHON_LINES_LOCATIONS,  /* from 3.11 on */
};

struct cw_python_layout {
	/*
	 * Offset in a thread's state: the pointer to the innermost frame, or to a struct on the C
	 * stack that points to the frame.
	 */
	uint16_t thread_frame;
	bool is_via_cframe;
	uint16_t cframe_frame;
	/*
	 * Offsets in a frame, and its size. Before 3.11 a frame is an object; it has an index in
	 * place of the address of the instruction, and no owner. The index counts instructions of
	 * index_bytes bytes.
	 */
	bool has_frame_objects;
	uint16_t index_bytes;
	uint16_t frame_bytes; /* without its variables */
	uint16_t code, previous, instr, owner;
	/*
	 * Offsets in a code object. Its first line, its texts and its table of lines lie side by
	 * side. The agent records the qualified name; before 3.11 a code object has none.
	 */
	enum cw_python_lines lines;
	uint16_t first_line, file, name, qualified_name, line_table, instructions;
	/* Offset of a text's characters: in an ASCII text, and in any other text. */
	uint16_t text_data, wide_text_data;

	/* The fields below are for readers from outside. */

	/* Offset in _PyRuntime: the pointer to the first interpreter. */
	uint16_t runtime_interpreters;
	/*
	 * Offsets in an interpreter. The lock is in _PyRuntime before 3.12; from 3.12 on,
	 * interpreter_lock is the offset of a pointer to it.
	 */
	uint16_t interpreter_next, interpreter_threads;
	uint16_t runtime_lock, interpreter_lock;
	/*
	 * Offsets in a lock: the thread that took it last, whether it is taken, how often it went
	 * to another thread, its condition.
	 */
	uint16_t lock_holder, lock_is_taken, lock_switches, lock_condition;
	/* Offsets in a thread's state. 0 as thread_native_id: the state has no number of the
	 * kernel. */
	uint16_t thread_previous, thread_next, thread_interpreter, thread_id, thread_native_id;
};

/* The most bytes from a code object's first line to the end of its other fields. */
#define CW_PYTHON_CODE_BYTES 88
/* Offsets in objects. They are the same in all of these versions. */
#define CW_PYTHON_TYPE 8
#define CW_PYTHON_LENGTH 16
#define CW_PYTHON_TEXT_STATE 32
#define CW_PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7) /* bytes of a character */
#define CW_PYTHON_TEXT_IS_COMPACT (1u << 5)
#define CW_PYTHON_TEXT_IS_ASCII (1u << 6)
#define CW_PYTHON_BYTES_DATA 32
/* A frame with this owner, or a higher one, has no Python code. */
#define CW_PYTHON_OWNER_C 3
/* The lowest bits of a frame's pointer to its code may be tags. */
#define CW_PYTHON_POINTER_TAGS UINT64_C(7)
/* A lock's condition is a pthread_cond_t, of this size on all of these machines. */
#define CW_PYTHON_CONDITION_BYTES 48

/* The minor versions of the table: 3.8 to 3.14. */
#define CW_PYTHON_MINOR_MIN 8
#define CW_PYTHON_MINOR_MAX 14

/* Returns the layout of Python 3.minor; NULL = not known. Static. */
const struct cw_python_layout *cw_python_layout_of(unsigned minor);
