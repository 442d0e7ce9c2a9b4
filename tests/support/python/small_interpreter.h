/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small interpreter in an array, in the layout of any version: two threads, three frames, two
 * code objects. A test or the fuzzer then changes its bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_code.h"
#include "python/reader/python_reader.h"

#define BASE UINT64_C(0x7f0000100000)
#define BYTES (128u << 10)

enum {
	RUNTIME = 0,
	CODE_TYPE = 0x2000,
	INTERPRETER = 0x3000,
	LOCK = 0x6000,
	CSTACK = 0x6800,
	THREADS = 0x7000, /* 0x200 bytes each */
	FRAMES = 0xa000,  /* 0x80 bytes each */
	CODES = 0xe000,   /* 0x400 bytes each: code, table of lines, two texts */
};

struct process {
	uint8_t bytes[BYTES];
	const struct cw_python_layout *l;
	struct cw_python_runtime runtime;
	struct cw_python_memory memory;
	unsigned n_reads;
	/* Called before each read, to change the memory meanwhile. */
	void (*on_read)(struct process *p, uint64_t from);
};

static inline bool read_process(void *user, uint64_t from, void *to, size_t len)
{
	struct process *p = user;

	p->n_reads++;
	if (p->on_read)
		p->on_read(p, from - BASE);
	if (from < BASE || from - BASE > BYTES || len > BYTES - (from - BASE))
		return false;
	memcpy(to, p->bytes + (from - BASE), len);
	return true;
}

static inline void put(struct process *p, uint64_t at, uint64_t value)
{
	memcpy(p->bytes + at, &value, sizeof(value));
}

static inline void put_int(struct process *p, uint64_t at, int32_t value)
{
	memcpy(p->bytes + at, &value, sizeof(value));
}

static inline void put_text(struct process *p, uint64_t at, const char *text)
{
	put(p, at + CW_PYTHON_LENGTH, strlen(text));
	put_int(p, at + CW_PYTHON_TEXT_STATE,
		CW_PYTHON_TEXT_IS_ASCII | CW_PYTHON_TEXT_IS_COMPACT | 1 << 2);
	memcpy(p->bytes + at + p->l->text_data, text, strlen(text));
}

static inline uint64_t code_at(unsigned i)
{
	return CODES + 0x400 * (uint64_t)i;
}

static inline uint64_t frame_at(unsigned i)
{
	return FRAMES + 0x80 * (uint64_t)i;
}

static inline uint64_t thread_at(unsigned i)
{
	return THREADS + 0x200 * (uint64_t)i;
}

/* A function "f0" in "/src/m0.py" with two instructions in line 10 and two in line 12. */
static inline void put_code(struct process *p, unsigned i)
{
	static const char *const tables[] = {
		[CW_PYTHON_LINES_LNOTAB] = "\x04\x02",
		[CW_PYTHON_LINES_DELTAS] = "\x04\x00\x04\x02",
		[CW_PYTHON_LINES_LOCATIONS] = "\xd1\xe1",
	};
	static const uint8_t lengths[] = { 2, 4, 2 };
	const struct cw_python_layout *l = p->l;
	uint64_t code = code_at(i);
	char text[16];

	put(p, code + CW_PYTHON_TYPE, BASE + CODE_TYPE);
	put_int(p, code + l->first_line, 10);
	put(p, code + l->file, BASE + code + 0x200);
	put(p, code + l->name, BASE + code + 0x300);
	put(p, code + l->line_table, BASE + code + 0x180);
	put(p, code + 0x180 + CW_PYTHON_LENGTH, lengths[l->lines]);
	memcpy(p->bytes + code + 0x180 + CW_PYTHON_BYTES_DATA, tables[l->lines], lengths[l->lines]);
	(void)snprintf(text, sizeof(text), "/src/m%u.py", i);
	put_text(p, code + 0x200, text);
	(void)snprintf(text, sizeof(text), "f%u", i);
	put_text(p, code + 0x300, text);
}

static inline void put_instruction(struct process *p, unsigned frame, unsigned code,
				   unsigned number)
{
	const struct cw_python_layout *l = p->l;

	if (l->has_frame_objects)
		put_int(p, frame_at(frame) + l->instr, (int32_t)(number * 2 / l->index_bytes));
	else
		put(p, frame_at(frame) + l->instr,
		    BASE + code_at(code) + l->instructions + number * 2);
}

static inline void put_frame(struct process *p, unsigned i, unsigned code, uint64_t previous)
{
	put(p, frame_at(i) + p->l->code, BASE + code_at(code));
	put(p, frame_at(i) + p->l->previous, previous);
	put_instruction(p, i, code, 2);
}

static inline void put_innermost(struct process *p, unsigned thread, uint64_t frame)
{
	const struct cw_python_layout *l = p->l;
	uint64_t via = CSTACK + 0x20 * (uint64_t)thread;

	put(p, thread_at(thread) + l->thread_frame, l->is_via_cframe ? BASE + via : frame);
	if (l->is_via_cframe)
		put(p, via + l->cframe_frame, frame);
}

static inline uint64_t lock_at(const struct process *p)
{
	return p->l->interpreter_lock ? (uint64_t)LOCK : (uint64_t)RUNTIME + p->l->runtime_lock;
}

/* Two threads. The first one, thread 0, is in f0, called by f1. The main thread is in f1. */
static inline struct process *make(unsigned minor)
{
	struct process *p = calloc(1, sizeof(*p));
	const struct cw_python_layout *l = cw_python_layout_of(minor);
	uint64_t lock;

	p->l = l;
	lock = lock_at(p);
	p->runtime = (struct cw_python_runtime){
		.address = BASE, .code_type = BASE + CODE_TYPE, .minor = minor, .layout = *l
	};
	p->memory = (struct cw_python_memory){ .read = read_process, .user = p };
	put(p, RUNTIME + l->runtime_interpreters, BASE + INTERPRETER);
	put(p, INTERPRETER + l->interpreter_threads, BASE + thread_at(0));
	if (l->interpreter_lock)
		put(p, INTERPRETER + l->interpreter_lock, BASE + lock);
	put(p, lock + l->lock_holder, BASE + thread_at(1));
	put_int(p, lock + l->lock_is_taken, 1);
	for (unsigned i = 0; i < 2; i++) {
		put(p, thread_at(i) + l->thread_interpreter, BASE + INTERPRETER);
		put(p, thread_at(i) + l->thread_id, 0x1000 + i);
		if (l->thread_native_id)
			put(p, thread_at(i) + l->thread_native_id, 70 + i);
		put_code(p, i);
	}
	put(p, thread_at(0) + l->thread_next, BASE + thread_at(1));
	put(p, thread_at(1) + l->thread_previous, BASE + thread_at(0));
	put_frame(p, 0, 0, BASE + frame_at(1));
	put_frame(p, 1, 1, 0);
	put_frame(p, 2, 1, 0);
	put_innermost(p, 0, BASE + frame_at(0));
	put_innermost(p, 1, BASE + frame_at(2));
	return p;
}
