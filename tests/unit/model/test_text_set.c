/* SPDX-License-Identifier: Apache-2.0 */
#include "model/text_set.h"

#include <criterion/criterion.h>

Test(text_set, numbers_each_text_once)
{
	struct cw_text_set set = { .max = 10, .max_bytes = 100 };
	uint32_t a, b, again;

	cr_assert_eq(cw_text_set_add(&set, "a", &a), 0);
	cr_assert_eq(cw_text_set_add(&set, "b", &b), 0);
	cr_assert_eq(cw_text_set_add(&set, "a", &again), 0);
	cr_expect_eq(a, 1);
	cr_expect_eq(b, 2);
	cr_expect_eq(again, 1);
	cr_expect_str_eq(set.texts[b - 1], "b");
	cw_text_set_clear(&set);
	cr_assert_eq(cw_text_set_add(&set, "b", &b), 0);
	cr_expect_eq(b, 1, "all were forgotten");
	cw_text_set_clear(&set);
}

Test(text_set, has_no_place_beyond_its_limits)
{
	struct cw_text_set few = { .max = 2, .max_bytes = 100 },
			   small = { .max = 9, .max_bytes = 8 };
	static const char *const texts[] = { "one", "two", "three" };
	uint32_t n[3];

	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(cw_text_set_add(&few, texts[i], &n[i]), 0);
	cr_expect_eq(n[1], 2);
	cr_expect_eq(n[2], 0);
	cw_text_set_clear(&few);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(cw_text_set_add(&small, texts[i], &n[i]), 0);
	cr_expect_eq(n[1], 2, "with its NUL it just fits");
	cr_expect_eq(n[2], 0);
	cr_assert_eq(cw_text_set_add(&small, "one", &n[0]), 0);
	cr_expect_eq(n[0], 1, "what is there is found");
	cw_text_set_clear(&small);
}
