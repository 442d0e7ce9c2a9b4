/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the line of a place in Python code, and the characters of a text object. We read both from
 * the interpreter's memory without its lock. An object that looks unexpected gives no line or no
 * text.
 *
 * Any thread; async-signal-safe if the memory's read() is. Bounded: a call reads at most some 1
 * MiB.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "python/python_layout.h"
#include "python/python_memory.h"

/*
 * A place in a thread's stack. code and instr come from the frame, the other fields from the code
 * object.
 */
struct cw_python_place {
	/*
	 * instr: address of an instruction. If the layout has frame objects: the instruction's
	 * index.
	 */
	uint64_t code, instr;
	uint64_t file, name, line_table; /* addresses of two texts and of a bytes object */
	int32_t first_line;
};

/* Returns the line of the place; 0 = none, or not known. */
uint32_t cw_python_line(const struct cw_python_memory *memory,
			const struct cw_python_layout *layout, const struct cw_python_place *at);

/* The longest text that we read, in characters: PATH_MAX. */
#define CW_PYTHON_TEXT_CHARACTERS 4096u

struct cw_python_characters {
	uint64_t from;  /* address of the first character */
	uint32_t n;     /* at most CW_PYTHON_TEXT_CHARACTERS */
	uint32_t width; /* bytes of a character: 1 (Latin-1), 2 or 4 */
};

/*
 * Finds the characters of the text object at `text`. Returns false if the object is not a usual
 * text.
 */
bool cw_python_characters(const struct cw_python_memory *memory,
			  const struct cw_python_layout *layout, uint64_t text,
			  struct cw_python_characters *ret);
