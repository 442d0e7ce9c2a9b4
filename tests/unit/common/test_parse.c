/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>

#include "common/parse.h"

Test(parse, u64_takes_whole_decimal_numbers_only)
{
	static const char *const bad[] = {
		"", " 1", "1 ", "+1", "-1", "0x10", "1e3", "1.0", "abc"
	};
	uint64_t v = 7;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(cw_parse_u64(bad[i], 0, UINT64_MAX, &v), -EINVAL, "'%s'", bad[i]);
	cr_expect_eq(v, 7u, "written only on success");
	cr_expect_eq(cw_parse_u64("18446744073709551615", 0, UINT64_MAX, &v), 0);
	cr_expect_eq(v, UINT64_MAX);
	cr_expect_eq(cw_parse_u64("18446744073709551616", 0, UINT64_MAX, &v), -ERANGE);
	cr_expect_eq(cw_parse_u64("99999999999999999999999", 0, UINT64_MAX, &v), -ERANGE);
}

Test(parse, a_switch_has_four_words_for_each_side_in_any_case)
{
	static const char *const on[] = { "1", "true", "yes", "on", "TRUE", "On" };
	static const char *const off[] = { "0", "false", "no", "off", "No" };
	static const char *const bad[] = { "", "2", "y", "enable", "on ", "offf" };
	bool is_on = false;

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++, is_on = false)
		cr_expect(cw_parse_switch(on[i], &is_on) == 0 && is_on, "'%s'", on[i]);
	is_on = true;
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++, is_on = true)
		cr_expect(cw_parse_switch(off[i], &is_on) == 0 && !is_on, "'%s'", off[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_eq(cw_parse_switch(bad[i], &is_on), -EINVAL, "'%s'", bad[i]);
	cr_expect(is_on, "written only on success");
}

Test(parse, either_switch_turns_the_agent_off)
{
	static const struct {
		const char *collwatch, *disable;
		bool is_off;
	} cases[] = {
		{ NULL, NULL, false },  { "", "", false },      { "on", NULL, false },
		{ "off", NULL, true },  { "No", NULL, true },   { NULL, "on", true },
		{ NULL, "TRUE", true }, { NULL, "0", false },   { "off", "off", true },
		{ "on", "on", true },   { "on", "off", false }, { "maybe", "maybe", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(cw_parse_agent_is_off(cases[i].collwatch, cases[i].disable),
			     cases[i].is_off, "case %zu", i);
}

Test(parse, digits_are_read_up_to_what_is_none)
{
	const char *p = "7f3aBC-x", *none = "+1", *huge = "10000000000000000 ";
	uint64_t v = 7;

	cr_expect_eq(cw_parse_digits(&p, 16, &v), 0);
	cr_expect_eq(v, 0x7f3abcu);
	cr_expect_str_eq(p, "-x");
	p = "12ab";
	cr_expect_eq(cw_parse_digits(&p, 10, &v), 0);
	cr_expect_eq(v, 12u);
	cr_expect_str_eq(p, "ab");
	p = "ffffffffffffffff";
	cr_expect_eq(cw_parse_digits(&p, 16, &v), 0);
	cr_expect_eq(v, UINT64_MAX);
	cr_expect_eq(cw_parse_digits(&none, 10, &v), -EINVAL);
	cr_expect_str_eq(none, "+1", "moved only on success");
	cr_expect_eq(cw_parse_digits(&huge, 16, &v), -ERANGE);
	cr_expect_eq(v, UINT64_MAX, "written only on success");
}

Test(parse, u64_keeps_to_its_range)
{
	uint64_t v;

	cr_expect_eq(cw_parse_u64("4", 5, 10, &v), -ERANGE);
	cr_expect_eq(cw_parse_u64("11", 5, 10, &v), -ERANGE);
	cr_expect_eq(cw_parse_u64("5", 5, 10, &v), 0);
	cr_expect_eq(v, 5u);
}

Test(parse, i64_reaches_both_ends)
{
	int64_t v;

	cr_expect_eq(cw_parse_i64("-9223372036854775808", INT64_MIN, INT64_MAX, &v), 0);
	cr_expect_eq(v, INT64_MIN);
	cr_expect_eq(cw_parse_i64("9223372036854775807", INT64_MIN, INT64_MAX, &v), 0);
	cr_expect_eq(v, INT64_MAX);
	cr_expect_eq(cw_parse_i64("9223372036854775808", INT64_MIN, INT64_MAX, &v), -ERANGE);
	cr_expect_eq(cw_parse_i64("-9223372036854775809", INT64_MIN, INT64_MAX, &v), -ERANGE);
	cr_expect_eq(cw_parse_i64("--1", INT64_MIN, INT64_MAX, &v), -EINVAL);
	cr_expect_eq(cw_parse_i64("-", INT64_MIN, INT64_MAX, &v), -EINVAL);
	cr_expect_eq(cw_parse_i64("-5", -4, 4, &v), -ERANGE);
}

Test(parse, durations_need_a_unit)
{
	static const struct {
		const char *text;
		int r;
		int64_t ns;
	} cases[] = {
		{ "0", 0, 0 },
		{ "500ms", 0, 500000000 },
		{ "90s", 0, INT64_C(90000000000) },
		{ "10min", 0, INT64_C(600000000000) },
		{ "1h", 0, INT64_C(3600000000000) },
		{ "30d", 0, INT64_C(2592000000000000) },
		{ "250us", 0, 250000 },
		{ "90", -EINVAL, 0 },
		{ "90 s", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "-1s", -EINVAL, 0 },
		{ "1m", -EINVAL, 0 },
		{ "1KiB", -EINVAL, 0 },
		{ "200000d", -ERANGE, 0 },
		{ "99999999999999999999s", -ERANGE, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = 0;

		cr_expect_eq(cw_parse_duration_ns(cases[i].text, &ns), cases[i].r, "'%s'",
			     cases[i].text);
		cr_expect_eq(ns, cases[i].ns, "'%s'", cases[i].text);
	}
}

Test(parse, bytes_need_a_unit)
{
	uint64_t v;

	cr_expect_eq(cw_parse_bytes("512KiB", &v), 0);
	cr_expect_eq(v, 512u << 10);
	cr_expect_eq(cw_parse_bytes("1GiB", &v), 0);
	cr_expect_eq(v, 1u << 30);
	cr_expect_eq(cw_parse_bytes("0", &v), 0);
	cr_expect_eq(v, 0u);
	cr_expect_eq(cw_parse_bytes("10", &v), -EINVAL);
	cr_expect_eq(cw_parse_bytes("10KB", &v), -EINVAL);
	cr_expect_eq(cw_parse_bytes("99999999TiB", &v), -ERANGE);
}

Test(parse, durations_for_people)
{
	static const struct {
		int64_t ns;
		const char *text;
	} cases[] = {
		{ 0, "0 s" },
		{ 999, "0 us" },
		{ 5000, "5 us" },
		{ 350000000, "350 ms" },
		{ 1500000000, "1.5 s" },
		{ 2000000000, "2 s" },
		{ INT64_C(12400000000), "12 s" },
		{ INT64_C(125000000000), "2 min 5 s" },
		{ INT64_C(120000000000), "2 min" },
		{ INT64_C(3900000000000), "1 h 5 min" },
		{ INT64_C(183600000000000), "2 d 3 h" },
		{ INT64_C(-12000000000), "-12 s" },
	};
	char buf[48];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_str_eq(cw_format_duration(cases[i].ns, buf, sizeof(buf)), cases[i].text);
	cr_expect_str_eq(cw_format_duration(INT64_MIN, buf, sizeof(buf)), "-106751 d 23 h");
}
