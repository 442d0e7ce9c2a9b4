/* SPDX-License-Identifier: Apache-2.0 */
/* The agent reads a stack, both one with the expected layout and one without. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/python/call_stack.h"
#include "agent/python/python_frame.h"
#include "agent/record/modules.h"
#include "agent/record/own_memory.h"
#include "agent/record/record.h"

static void setup(void)
{
	cr_assert_eq(setenv("COLLWATCH_CALL_STACKS", "on", 1), 0);
	cr_assert_eq(cw_record_create(cw_call_stacks_wanted()), 0);
	cw_call_stacks_start();
	cr_assert(cw_call_stacks_is_on);
	cr_assert_leq(cw_record.total_bytes, CW_RECORD_MAX_BYTES);
}

TestSuite(agent_call_stack, .init = setup);

/* ---- memory that may not be there ---- */

/* Two pages; the first is a hole. */
static char *half_a_map(void)
{
	char *map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(map, MAP_FAILED);
	memset(map + 4096, 'x', 4096);
	cr_assert_eq(mprotect(map, 4096, PROT_NONE), 0);
	return map + 4096;
}

Test(agent_call_stack, reads_up_to_a_hole)
{
	char *there = half_a_map(), buf[4096] = "";
	uint64_t end = (uintptr_t)there + 200;
	size_t n;

	errno = 77;
	cr_expect(cw_own_read((uintptr_t)there, buf, 64));
	cr_expect_not(cw_own_read((uintptr_t)there - 1, buf, 64));
	cr_expect_not(cw_own_read(8, buf, 64));
	cr_expect_not(cw_own_read(UINT64_MAX - 7, buf, 64));
	memset(buf, 0, sizeof(buf));
	n = cw_own_read_before(end, buf, sizeof(buf), 72);
	cr_expect_eq(n, 200, "%zu", n);
	cr_expect_eq(buf[sizeof(buf) - 1], 'x');
	cr_expect_eq(buf[sizeof(buf) - 200], 'x');
	cr_expect_eq(buf[sizeof(buf) - 201], 0);
	cr_expect_eq(cw_own_read_before((uintptr_t)there + 4096, buf, sizeof(buf), 72), 4096);
	cr_expect_eq(cw_own_read_before((uintptr_t)there + 10, buf, sizeof(buf), 72), 0);
	cr_expect_eq(cw_own_read_before(72, buf, sizeof(buf), 72), 0);
	cr_expect_eq(errno, 77);
}

/* ---- native frames ---- */

struct saved {
	const struct saved *next;
	const void *return_address;
};

/* Something the agent knows: the library of this test. */
static const char *known(unsigned i)
{
	return (const char *)setup + i;
}

static void know_own_file(void)
{
	uint16_t module;
	uint32_t offset;

	cw_module_find(known(0), &module, &offset);
	cw_modules_resolve();
	cw_module_find(known(0), &module, &offset);
	cr_assert_neq(module, CW_REC_NO_SLOT);
}

static const struct cw_rec_stack *take(const struct saved *frame)
{
	uint32_t id;

	cw_tls.frame = (uintptr_t)frame;
	id = cw_call_stack_take(known(1));
	return id ? &cw_record.stacks[id - 1] : NULL;
}

Test(agent_call_stack, follows_frames_that_lie_above_each_other)
{
	struct saved frames[4] = {
		{ &frames[1], known(1) },
		{ &frames[2], known(2) },
		{ &frames[3], known(3) },
		{ NULL, NULL },
	};
	const struct cw_rec_stack *first, *again;

	know_own_file();
	first = take(frames);
	cr_assert(first);
	cr_expect_eq(first->n_native, 3);
	for (unsigned i = 1; i < 3; i++)
		cr_expect_eq(first->native[i].offset, first->native[0].offset + i);
	again = take(frames);
	cr_expect_eq(again, first, "one entry for one stack");
	frames[2].return_address = known(4);
	again = take(frames);
	cr_expect_neq(again, first, "another for another");
}

Test(agent_call_stack, ends_where_a_frame_pointer_leads_astray)
{
	char *hole = half_a_map() - 4096;
	struct saved frames[2] = { { NULL, known(1) }, { NULL, known(2) } };
	const struct saved *const astray[] = {
		NULL,
		&frames[0],
		(const struct saved *)((const char *)&frames[1] + 1),
		(const struct saved *)hole,
		(const struct saved *)UINTPTR_MAX,
		(const struct saved *)8,
	};

	know_own_file();
	for (size_t i = 0; i < sizeof(astray) / sizeof(astray[0]); i++) {
		frames[0].next = astray[i];
		cr_assert(take(frames), "%zu", i);
		cr_expect_eq(take(frames)->n_native, 1, "%zu", i);
	}
	frames[0].next = &frames[1];
	frames[1].return_address = hole; /* no file */
	cr_expect_eq(take(frames)->n_native, 1);
	frames[0].return_address = known(9);
	cr_expect_eq(take(frames)->n_native, 1, "the frame of another call");
}

Test(agent_call_stack, has_none_for_a_caller_that_nobody_knows)
{
	cr_expect_eq(cw_call_stack_take(known(0)), 0);
	cr_expect_eq(cw_call_stack_take(NULL), 0);
	cr_expect_eq(cw_record.header->drops[CW_REC_DROP_STACKS], 0);
}

Test(agent_call_stack, counts_what_finds_no_place)
{
	struct saved frames[2] = { { &frames[1], known(1) }, { NULL, NULL } };
	unsigned lost = 0;

	know_own_file();
	for (unsigned i = 0; i < 2 * CW_REC_STACKS; i++) {
		frames[1].return_address = known(10 + i);
		lost += take(frames) == NULL;
	}
	cr_expect_geq(lost, CW_REC_STACKS);
	cr_expect_eq(cw_record.header->drops[CW_REC_DROP_STACKS], lost);
}

#define THREADS 4
#define DISTINCT 16

static void *take_all(void *arg)
{
	uint32_t *ids = arg;
	struct saved frames[2] = { { &frames[1], known(1) }, { NULL, NULL } };

	for (unsigned i = 0; i < DISTINCT; i++) {
		cw_tls.frame = (uintptr_t)frames;
		frames[1].return_address = known(10 + i);
		ids[i] = cw_call_stack_take(known(1));
	}
	return NULL;
}

Test(agent_call_stack, is_one_for_all_threads)
{
	static uint32_t ids[THREADS][DISTINCT];
	pthread_t threads[THREADS];

	know_own_file();
	for (unsigned t = 0; t < THREADS; t++)
		cr_assert_eq(pthread_create(&threads[t], NULL, take_all, ids[t]), 0);
	for (unsigned t = 0; t < THREADS; t++)
		cr_assert_eq(pthread_join(threads[t], NULL), 0);
	for (unsigned t = 0; t < THREADS; t++)
		cr_expect_arr_eq(ids[t], ids[0], sizeof(ids[0]));
	for (unsigned i = 0; i < DISTINCT; i++) {
		cr_assert_neq(ids[0][i], 0);
		cr_expect_neq(cw_record.stacks[ids[0][i] - 1].publish, 0);
	}
}

/* ---- Python code ---- */

struct object {
	uint64_t head[2], length, hash;
	uint32_t state, padding;
	char text[128];
};

/* As python_layout.h has it for 3.12 and later: text_data and CW_PYTHON_BYTES_DATA differ. */
static struct object text(const char *value)
{
	struct object o = { .length = strlen(value),
			    .state =
				    CW_PYTHON_TEXT_IS_ASCII | CW_PYTHON_TEXT_IS_COMPACT | 1u << 2 };

	strncpy(o.text, value, sizeof(o.text) - 1);
	return o;
}

static struct cw_rec_frame describe(const struct object *file, const struct object *name,
				    const char *table, size_t table_bytes, unsigned instruction)
{
	const struct cw_python_layout *l = cw_python_layout_of(12);
	struct cw_rec_frame frame = { .line = 99 };
	uint64_t bytes[32] = { 0 };
	struct cw_python_place at = {
		.code = 0x1000,
		.instr = 0x1000 + l->instructions + 2 * instruction,
		.file = (uintptr_t)file,
		.name = (uintptr_t)name,
		.line_table = (uintptr_t)bytes,
		.first_line = 10,
	};

	bytes[2] = table_bytes;
	memcpy(&bytes[4], table, table_bytes);
	cw_python_describe(l, &at, &frame);
	return frame;
}

/*
 * From Objects/locations.md: 2 instructions in line 10 (short), 1 in line 12 (one line, +2), 8
 * without a line, 3 in line 9 (no columns, -3), 1 in line 109 (long, +100).
 */
static const char table[] = "\x81\x00\xe0\x01\x02\xff\xea\x07\xf0\x48\x03\x01\x01\x01";

Test(agent_call_stack, knows_the_line_of_an_instruction)
{
	static const unsigned lines[] = { 10, 10, 12, 0, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 109, 0 };
	const struct object file = text("/home/train.py"), name = text("Model.step");
	struct cw_rec_frame f;

	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		f = describe(&file, &name, table, sizeof(table) - 1, i);
		cr_expect_eq(f.line, lines[i], "instruction %u: %u", i, f.line);
	}
	cr_expect_str_eq(f.file, "/home/train.py");
	cr_expect_str_eq(f.function, "Model.step");
}

Test(agent_call_stack, keeps_the_end_of_a_long_path)
{
	const struct object file = text("/a/very/long/path/to/some/packages/of/python/that/nobody/"
					"would/write/down/train.py");
	struct cw_rec_frame f = describe(&file, &file, table, 4, 0);

	cr_expect_str_eq(f.file, "/path/to/some/packages/of/python/that/nobody/would/write/down/"
				 "train.py");
	cr_expect_lt(strlen(f.function), sizeof(f.function));
	cr_expect_str_eq(f.function, "/that/nobody/would/write/down/train.py");
}

Test(agent_call_stack, has_layouts_whose_fields_lie_in_what_is_read)
{
	unsigned n = 0;

	for (unsigned minor = 0; minor < 100; minor++) {
		const struct cw_python_layout *l = cw_python_layout_of(minor);

		if (!l)
			continue;
		n++;
		cr_expect(l->code + 8 <= l->frame_bytes && l->previous + 8 <= l->frame_bytes &&
				  l->instr + (l->has_frame_objects ? 4 : 8) <= l->frame_bytes &&
				  l->owner < l->frame_bytes,
			  "3.%u: frame", minor);
		cr_expect(l->first_line < l->file && l->first_line < l->name &&
				  l->file < l->line_table && l->name < l->line_table &&
				  l->line_table + 8 - l->first_line <= CW_PYTHON_CODE_BYTES,
			  "3.%u: code", minor);
	}
	cr_expect_eq(n, CW_PYTHON_MINOR_MAX - CW_PYTHON_MINOR_MIN + 1);
	cr_expect_null(cw_python_layout_of(CW_PYTHON_MINOR_MIN - 1));
	cr_expect_null(cw_python_layout_of(CW_PYTHON_MINOR_MAX + 1));
	cr_expect_null(cw_python_layout_of(UINT32_MAX));
}

/* Latin-1, and characters of two bytes. */
Test(agent_call_stack, reads_names_that_are_not_ascii)
{
	struct object file = text(""), name = text("");
	static const uint16_t wide[] = { 'f', 0x4e2d, '1' };
	struct cw_rec_frame f;

	file.state = CW_PYTHON_TEXT_IS_COMPACT | 1u << 2;
	file.length = 12;
	memcpy(file.text + 16, "/j\xfcrgen/a.py", 12);
	name.state = CW_PYTHON_TEXT_IS_COMPACT | 2u << 2;
	name.length = 3;
	memcpy(name.text + 16, wide, sizeof(wide));
	f = describe(&file, &name, table, 4, 0);
	cr_expect_str_eq(f.file, "/j?rgen/a.py");
	cr_expect_str_eq(f.function, "f?1");
}

Test(agent_call_stack, survives_objects_that_are_none)
{
	const struct object *const nowhere = (const struct object *)8;
	struct object wide = text("x"), endless = text("x");
	struct cw_rec_frame f = describe(nowhere, nowhere, table, 4, 0);

	cr_expect_eq(f.file[0], '\0');
	wide.state = 0;
	endless.length = UINT64_MAX;
	f = describe(&wide, &endless, "\xff", 1, 5);
	cr_expect_eq(f.file[0], '\0');
	cr_expect_eq(f.function[0], '\0');
	cr_expect_eq(f.line, 0);
	f = describe(&wide, &wide, "\xf0\xff\xff\xff\xff\xff\xff\xff\xff", 9, 0);
	cr_expect_eq(f.line, 0, "a number without an end: %u", f.line);
}
