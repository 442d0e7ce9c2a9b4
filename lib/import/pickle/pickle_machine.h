/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine that runs a pickle's instructions. pickle.c drives it, and pickle_opcodes.c
 * implements the instructions.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "import/pickle/pickle.h"

/* The kind of argument that follows an opcode. The number in the name is a number of bytes. */
enum argument {
	ARG_NONE,
	ARG_1, /* a little-endian number of 1 byte */
	ARG_2,
	ARG_4,
	ARG_8,
	ARG_DOUBLE, /* eight bytes, big-endian */
	ARG_TEXT_1, /* a length of 1 byte, then a text of that length */
	ARG_TEXT_4,
	ARG_TEXT_8,
};

struct machine {
	const uint8_t *data;
	size_t size, at;
	size_t op_at; /* offset of the current opcode */
	const char *op_name;
	struct cw_arena *arena;
	size_t spent; /* bytes of memory allocated so far */
	struct cw_err *err;
	struct cw_value **stack;
	size_t n_stack, stack_room;
	struct cw_value **memo;
	size_t memo_room, n_memoized;
	size_t marks[CW_PICKLE_MAX_MARKS];
	unsigned n_marks;
	bool is_done;
	int r; /* the first error, which ends the run; 0 = none */
};

struct argument_value {
	uint64_t number;
	const char *text;
	size_t len;
};

struct opcode {
	const char *name;
	uint8_t argument; /* enum argument */
	void (*run)(struct machine *m, const struct argument_value *arg);
};

/* The instructions, indexed by opcode. `run` is NULL for an unknown opcode. */
extern const struct opcode pickle_opcodes[256];

/* Ends the run with an error of the current instruction. */
void pickle_fail(struct machine *m, int errno_value, const char *what);

/*
 * The functions below are in pickle_stack.c. After an error they may do nothing, but what they
 * return is valid.
 */

/* Makes room for at least `wanted` pointers. New pointers are NULL. */
void pickle_grow(struct machine *m, struct cw_value ***array, size_t *room, size_t wanted);
void pickle_push(struct machine *m, struct cw_value *v);
/* Makes a new value of this type. pickle_push_new() also pushes it. Never NULL. */
struct cw_value *pickle_new(struct machine *m, enum cw_value_type type);
struct cw_value *pickle_push_new(struct machine *m, enum cw_value_type type);
/* Returns the number of values above the newest mark. */
size_t pickle_height(const struct machine *m);
/* Fails and returns false if fewer than n values lie above the newest mark. */
bool pickle_need(struct machine *m, size_t n);
/* Moves the values at stack index `from` and above into `to`. */
void pickle_take_above(struct machine *m, size_t from, struct cw_value *to);
