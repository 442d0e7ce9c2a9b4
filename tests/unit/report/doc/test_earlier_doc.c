/* SPDX-License-Identifier: Apache-2.0 */
/* The sentence about the stacks before a hang: a stuck process shows no change, a slow one does. */
#include "report/doc/earlier_doc.h"

#include <criterion/criterion.h>

#include "common/cleanup.h"
#include "common/clock.h"

#define S CW_NS_PER_S

static struct cw_arena arena;
static struct cw_incident_facts facts;

static void setup(void)
{
	facts = (struct cw_incident_facts){ 0 };
	facts.earlier_stacks = cw_arena_new_array(&arena, struct cw_incident_earlier_stack, 2);
}

static void teardown(void)
{
	cw_arena_fini(&arena);
}

TestSuite(earlier_doc, .init = setup, .fini = teardown);

static void expect_text(const struct cw_stack_reading *list, uint32_t n, const char *text)
{
	const struct cw_stack_readings readings = {
		.rank = 3, .pid = 7, .host = "node-a", .list = list, .n = n
	};

	cr_assert_eq(cw_earlier_doc_add(&readings, &arena, &facts), 0);
	cr_assert_eq(facts.n_earlier_stacks, 1);
	cr_expect_str_eq(facts.earlier_stacks[0].text.text, text);
}

Test(earlier_doc, a_stuck_process_shows_no_change)
{
	const struct cw_stack_reading list[] = {
		{ 25 * S / 10, 1, 40 * S, "f (a.py:1)" },
		{ 5 * S, 1, 40 * S + S / 1000, "f (a.py:1)" },
		{ 10 * S, 1, 40 * S + S / 500, "f (a.py:1)" },
	};

	expect_text(list, 3,
		    "rank 3 stayed in f (a.py:1) from 2.5 s to 10 s of the wait, and its main "
		    "thread used almost no CPU between the readings.");
	cr_expect(!facts.earlier_stacks[0].is_changed);
	cr_expect_eq(facts.earlier_stacks[0].n_readings, 3);
}

Test(earlier_doc, a_slow_process_shows_the_change)
{
	const struct cw_stack_reading list[] = {
		{ 25 * S / 10, 1, 40 * S, "f (a.py:1)" },
		{ 5 * S, 2, 40 * S, "f (a.py:2)" },
		{ 10 * S, 3, 40 * S, "g (a.py:9)" },
	};

	expect_text(list, 3,
		    "rank 3 moved on: at 2.5 s of the wait it was in f (a.py:1), at 5.0 s in "
		    "f (a.py:2), at 10 s in g (a.py:9).");
	cr_expect(facts.earlier_stacks[0].is_changed);
}

Test(earlier_doc, a_process_that_computes_in_one_place_is_not_idle)
{
	const struct cw_stack_reading list[] = {
		{ 2 * S, 1, 40 * S, "f (a.py:1)" },
		{ 4 * S, 1, 42 * S, "f (a.py:1)" },
	};

	expect_text(list, 2,
		    "rank 3 stayed in f (a.py:1) from 2.0 s to 4.0 s of the wait, but its main "
		    "thread used 2.0 s of CPU between the readings.");
	cr_expect_float_eq(facts.earlier_stacks[0].readings[1].cpu_s, 2, 1e-9);
}

Test(earlier_doc, one_stack_says_nothing)
{
	const struct cw_stack_reading list[] = { { 2 * S, 1, 40 * S, "f (a.py:1)" },
						 { 4 * S, 0, 0, "" } };
	const struct cw_stack_readings readings = { .host = "", .list = list, .n = 2 };

	cr_assert_eq(cw_earlier_doc_add(&readings, &arena, &facts), 0);
	cr_expect_eq(facts.n_earlier_stacks, 0);
}
