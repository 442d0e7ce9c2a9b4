/* SPDX-License-Identifier: Apache-2.0 */
/* Call stacks of a record, as an agent writes them and as a stranger might. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "tests/support/record/record_fixture.h"

static void add_frame(unsigned i, const char *file, uint32_t line, const char *function)
{
	struct cw_rec_frame *f = &rec->frames[i];

	f->publish = i + 1;
	f->line = line;
	(void)snprintf(f->file, sizeof(f->file), "%s", file);
	(void)snprintf(f->function, sizeof(f->function), "%s", function);
}

/* Stack 1: two Python frames below a native one. */
static void setup(void)
{
	struct cw_rec_stack *s;

	record_setup();
	rec->header->has |= CW_REC_HAS_STACKS;
	s = &rec->stacks[0];
	add_frame(3, "/site/model.py", 41, "Model.forward");
	add_frame(5, "/home/train.py", 7, "<module>");
	(void)snprintf(rec->modules[2].name, sizeof(rec->modules[2].name), "/usr/lib/libfoo.so.2");
	*s = (struct cw_rec_stack){
		.publish = 99,
		.n_python = 2,
		.n_native = 1,
		.python = { 4, 6 },
		.native = { { .module = 2, .offset = 0x1234 } },
	};
}

TestSuite(record_stack, .init = setup, .fini = record_teardown);

static char text[CW_RECORD_STACK_BYTES];

static int stack(uint32_t id)
{
	_cleanup_(record_closep) struct cw_record *r = record_must_open();

	memset(text, 'x', sizeof(text));
	return cw_record_stack(r, id, text, sizeof(text));
}

Test(record_stack, is_a_line_per_frame_innermost_first)
{
	cr_assert_eq(stack(1), 0);
	cr_expect_str_eq(text, "libfoo.so.2+0x1234\n/site/model.py:41 in Model.forward\n"
			       "/home/train.py:7 in <module>");
	rec->stacks[0].flags = CW_REC_STACK_CUT;
	cr_assert_eq(stack(1), 0);
	cr_expect(strstr(text, "<module>\n…"), "%s", text);
}

Test(record_stack, of_an_op_is_in_its_window)
{
	_cleanup_(record_closep) struct cw_record *r = NULL;
	int c = cw_test_record_comm(rec, 1, 8, 3);
	struct cw_rec_op op = { .kind = CW_OP_ALL_REDUCE, .stack_id = 1 };
	struct cw_record_op ops[4];
	uint64_t lost;
	size_t n;

	cw_test_record_enter(rec, c, &op);
	r = record_must_open();
	cr_assert_eq(cw_record_window(r, record_first_comm(r), ops, 4, &n, &lost), 0);
	cr_assert_eq(n, 1);
	cr_expect_eq(ops[0].stack, 1);
}

Test(record_stack, is_not_there_unless_published)
{
	cr_expect_eq(stack(0), -ENOENT);
	cr_expect_str_eq(text, "");
	cr_expect_eq(stack(2), -ENOENT);
	rec->stacks[0].publish = 0;
	cr_expect_eq(stack(1), -ENOENT);
	rec->stacks[0].publish = 1;
	rec->header->has &= ~(uint32_t)CW_REC_HAS_STACKS;
	cr_expect_eq(stack(1), -ENOENT);
}

Test(record_stack, says_where_a_frame_found_no_place)
{
	rec->stacks[0].python[0] = 0;
	rec->frames[5].publish = 0;
	cr_assert_eq(stack(1), 0);
	cr_expect_str_eq(text, "libfoo.so.2+0x1234\n?\n?");
}

Test(record_stack, of_a_stranger_stays_within_its_bounds)
{
	struct cw_rec_stack *s = &rec->stacks[0];

	memset(s, 0xff, sizeof(*s));
	cr_assert_eq(stack(1), 0);
	cr_expect_eq(strspn(text, "?\n…"), strlen(text), "%s", text);
	for (unsigned i = 0; i < CW_REC_FRAMES; i++)
		memset(&rec->frames[i], 0xff, sizeof(rec->frames[i]));
	for (unsigned i = 0; i < CW_REC_STACK_PYTHON; i++)
		s->python[i] = (uint16_t)(i + 1);
	for (unsigned i = 0; i < CW_REC_STACK_NATIVE; i++)
		s->native[i] = (struct cw_rec_native_frame){ .module = 2, .offset = UINT32_MAX };
	memset(rec->modules[2].name, '\n', sizeof(rec->modules[2].name));
	cr_assert_eq(stack(1), 0);
	cr_expect_lt(strlen(text), sizeof(text));
	cr_expect_not(strstr(text, "\n\n"), "a line break in a name");
	cr_expect_eq(stack(CW_REC_STACKS + 1), -ENOENT);
	cr_expect_eq(stack(UINT32_MAX), -ENOENT);
}

Test(record_stack, leaves_out_whole_lines_where_there_is_no_room)
{
	_cleanup_(record_closep) struct cw_record *r = record_must_open();
	char little[40];

	cr_assert_eq(cw_record_stack(r, 1, little, sizeof(little)), 0);
	cr_expect_str_eq(little, "libfoo.so.2+0x1234");
}

/* Sections of a record made without the table: nothing lies there. */
Test(record_stack, needs_the_sections)
{
	for (unsigned i = 0; i < CW_REC_SECTION__MAX; i++)
		if (rec->header->sections[i].type == CW_REC_SECTION_STACKS ||
		    rec->header->sections[i].type == CW_REC_SECTION_FRAMES)
			rec->header->sections[i].type = 0;
	cr_expect_eq(stack(1), -ENOENT);
}
