/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/waits/hitting_sets.h"

#include <criterion/criterion.h>
#include <string.h>

#define ELEMENTS 16u

static struct cw_arena arena;
static bool is_in[ELEMENTS];

static void teardown(void)
{
	cw_arena_fini(&arena);
}

TestSuite(hitting_sets, .fini = teardown);

/* Each set is a string of hexadecimal digits, its elements; so is the expected answer. */
static int search(const char *const *texts, uint32_t n)
{
	static uint32_t elements[HITTING_SETS_MAX + 1][ELEMENTS];
	struct hitting_set sets[HITTING_SETS_MAX + 1];

	for (uint32_t i = 0; i < n; i++) {
		sets[i] = (struct hitting_set){ elements[i], (uint32_t)strlen(texts[i]) };
		for (uint32_t k = 0; k < sets[i].n; k++)
			elements[i][k] = (uint32_t)(strchr("0123456789abcdef", texts[i][k]) -
						    "0123456789abcdef");
	}
	return hitting_sets_smallest(sets, n, ELEMENTS, &arena, is_in);
}

static void expect(const char *const *texts, uint32_t n, const char *answer)
{
	cr_assert_eq(search(texts, n), 0);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		cr_assert_eq(is_in[i], strchr(answer, "0123456789abcdef"[i]) != NULL,
			     "element %u for \"%s\"", i, answer);
}

#define EXPECT(answer, ...)                                                                        \
	expect((const char *const[]){ __VA_ARGS__ },                                               \
	       sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *), answer)

Test(hitting_sets, one_element_explains_all_sets_that_have_it)
{
	EXPECT("5", "15", "35", "57");
}

Test(hitting_sets, sets_without_a_common_element_need_several)
{
	EXPECT("26", "2", "6");
	EXPECT("1c", "12", "19", "c");
}

Test(hitting_sets, equally_small_answers_count_all)
{
	EXPECT("23", "23");
	EXPECT("239a", "23", "9a");
	EXPECT("1234", "12", "23", "34");
	/* b alone meets two sets, but so it does with a or with f: both are possible. */
	EXPECT("abf", "af", "ab", "b");
}

Test(hitting_sets, no_set_needs_no_element)
{
	EXPECT("", "");
	expect(NULL, 0, "");
}

Test(hitting_sets, too_many_sets_are_refused)
{
	const char *texts[HITTING_SETS_MAX + 1];

	for (uint32_t i = 0; i <= HITTING_SETS_MAX; i++)
		texts[i] = "1";
	cr_assert_eq(search(texts, HITTING_SETS_MAX), 0);
	cr_assert_eq(search(texts, HITTING_SETS_MAX + 1), HITTING_SETS_TOO_HARD);
}
