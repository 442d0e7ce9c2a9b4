/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places where CPython keeps its threads and their frames: offsets in bytes by minor version.
 * The offsets are the same on all 64-bit machines. A version that is not in the table has no
 * layout, because a guess could give a wrong stack. Before first use the agent compares a layout
 * with a stack from the interpreter's own API (agent/python/call_stack_python.c). A reader in
 * another process checks each object's type (lib/python/reader/python_reader.h).
 *
 * Pure; any thread; async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The format in which a code object stores its line numbers (CPython's Objects/lnotab_notes.txt,
 * locations.md).
 */
enum cw_python_lines {
	CW_PYTHON_LINES_LNOTAB = 0, /* up to 3.9 */
	CW_PYTHON_LINES_DELTAS,     /* 3.10 */
	CW_PYTHON_LINES_LOCATIONS,  /* 3.11 and later */
};

struct cw_python_layout {
	/*
	 * Offset in a thread's state of a pointer to the innermost frame. If is_via_cframe, the
	 * pointer leads to a struct on the C stack, and the struct points to the frame.
	 */
	uint16_t thread_frame;
	bool is_via_cframe;
	uint16_t cframe_frame;
	/*
	 * Offsets in a frame, and the size of a frame. Before 3.11 a frame is an object without an
	 * owner. It has the index of the instruction in place of the instruction's address. The
	 * index counts instructions of index_bytes bytes.
	 */
	bool has_frame_objects;
	uint16_t index_bytes;
	uint16_t frame_bytes; /* size without the frame's variables */
	uint16_t code, previous, instr, owner;
	/*
	 * Offset in a frame of the flag that says that C code called the frame. 0 = there is no
	 * such flag. If frames are objects, C code called each of them. Otherwise C code called the
	 * frame before a frame without Python code.
	 */
	uint16_t is_entry;
	/*
	 * Offsets in a code object. Its first line, its texts and its table of lines lie side by
	 * side. The agent records the qualified name. Before 3.11 a code object has no qualified
	 * name.
	 */
	enum cw_python_lines lines;
	uint16_t first_line, file, name, qualified_name, line_table, instructions;
	/* Offset of a text's characters in an ASCII text, and in any other text. */
	uint16_t text_data, wide_text_data;

	/* Only readers in another process use the fields below. */

	/* Offset in _PyRuntime of the pointer to the first interpreter. */
	uint16_t runtime_interpreters;
	/*
	 * Offsets in an interpreter. The interpreter lock lies in _PyRuntime before 3.12. From 3.12
	 * on, interpreter_lock is the offset of a pointer to the lock.
	 */
	uint16_t interpreter_next, interpreter_threads;
	uint16_t runtime_lock, interpreter_lock;
	/*
	 * Offsets in an interpreter lock: the last thread that took the lock, the flag for a taken
	 * lock, the number of its moves between threads, and its condition variable.
	 */
	uint16_t lock_holder, lock_is_taken, lock_switches, lock_condition;
	/*
	 * Offsets in a thread's state. thread_native_id is 0 if the state lacks the kernel's number
	 * of the thread.
	 */
	uint16_t thread_previous, thread_next, thread_interpreter, thread_id, thread_native_id;
};

/*
 * No code object of the versions in the table has more bytes from its first line to the end of its
 * other fields.
 */
#define CW_PYTHON_CODE_BYTES 88
/* Offsets in objects. All versions in the table have the same ones. */
#define CW_PYTHON_TYPE 8
#define CW_PYTHON_LENGTH 16
#define CW_PYTHON_TEXT_STATE 32
#define CW_PYTHON_TEXT_WIDTH(state) ((state) >> 2 & 7) /* bytes of a character */
#define CW_PYTHON_TEXT_IS_COMPACT (1u << 5)
#define CW_PYTHON_TEXT_IS_ASCII (1u << 6)
#define CW_PYTHON_BYTES_DATA 32
/* A frame with this owner, or with a higher number, has no Python code. */
#define CW_PYTHON_OWNER_C 3
/* The lowest bits of a frame's pointer to its code object may be tags. */
#define CW_PYTHON_POINTER_TAGS UINT64_C(7)
/* The condition of a lock is a pthread_cond_t, which has this size on all of these machines. */
#define CW_PYTHON_CONDITION_BYTES 48

/* The minor versions of the table: 3.8 to 3.14. */
#define CW_PYTHON_MINOR_MIN 8
#define CW_PYTHON_MINOR_MAX 14

/* Returns the layout of Python 3.minor; NULL = not known. Static. */
const struct cw_python_layout *cw_python_layout_of(unsigned minor);
