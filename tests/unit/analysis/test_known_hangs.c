/* SPDX-License-Identifier: Apache-2.0 */
/* The table of known hangs: its rows, its versions, and its page. */
#include "analysis/known/known_hangs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const char *signature_text(enum known_signature signature)
{
	switch (signature) {
	case KNOWN_NOT_IN_PROXY:
		return "the call is not in NCCL's proxy";
	case KNOWN_RECEIVER_POSTS_NOTHING:
		return "a connection whose receiver posts no step, although steps remain";
	case KNOWN_GRAPH_REPLAY:
		return "the replay of a CUDA graph hangs in a collective of several nodes";
	case KNOWN_PXN:
		return "another process moves data of a collective of several nodes (PXN)";
	case KNOWN_INIT_COMPLETE:
		return "all members are inside the initialisation, several on one node";
	}
	return "";
}

static void print_version(FILE *out, uint32_t v)
{
	(void)fprintf(out, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

static void print_row(FILE *out, const struct cw_known_hang_row *row)
{
	(void)fprintf(out, "| %s | ", row->name);
	print_version(out, row->first);
	if (row->last != row->first) {
		(void)fprintf(out, " to ");
		print_version(out, row->last);
	}
	(void)fprintf(out, " | %s | ",
		      row->machine == CW_MACHINE_AARCH64  ? "aarch64"
		      : row->machine == CW_MACHINE_X86_64 ? "x86_64"
							  : "any");
	if (row->variable)
		(void)fprintf(out, "%s is not %s%s%s", row->variable, row->unless,
			      row->or_unless ? " or " : "", row->or_unless ? row->or_unless : "");
	else
		(void)fprintf(out, "any");
	(void)fprintf(out, " | %s | %s |\n", signature_text(row->signature), row->fixed_in);
}

static const char *page(void)
{
	static char text[32 << 10];
	FILE *f = fopen(CW_TEST_DATA "/../../docs/design/known-hangs.md", "re");

	cr_assert(f);
	cr_assert_lt(fread(text, 1, sizeof(text) - 1, f), sizeof(text) - 1);
	(void)fclose(f);
	return text;
}

Test(known_hangs, the_page_has_each_row_with_its_fault_and_its_sources)
{
	for (size_t i = 0; i < cw_n_known_hang_rows; i++) {
		const struct cw_known_hang_row *row = &cw_known_hang_rows[i];
		char line[1024] = "";
		FILE *out = fmemopen(line, sizeof(line), "w");

		cr_assert(out);
		print_row(out, row);
		(void)fclose(out);
		cr_expect(strstr(page(), line), "the page lacks: %s", line);
		(void)snprintf(line, sizeof(line), "- %s: %s.", row->name, row->what);
		cr_expect(strstr(page(), line), "the page lacks: %s", line);
		cr_expect(row->sources[0], "%s has no source", row->name);
		for (size_t k = 0; k < 3 && row->sources[k]; k++)
			cr_expect(strstr(page(), row->sources[k]), "the page lacks: %s",
				  row->sources[k]);
	}
}

Test(known_hangs, the_page_has_no_other_row)
{
	size_t n = 0;

	for (const char *at = page(); (at = strstr(at, "\n| ")); at++)
		n++;
	cr_expect_eq(n, cw_n_known_hang_rows + 1, "and the head of the table");
}

Test(known_hangs, versions_are_a_range_and_the_machine_counts)
{
	const struct cw_known_hang_row *row = &cw_known_hang_rows[0];

	cr_assert_str_eq(row->name, "NVIDIA/nccl#2353");
	cr_expect(cw_known_hang_has_version(row, 22809, CW_MACHINE_AARCH64));
	cr_expect(cw_known_hang_has_version(row, 22902, CW_MACHINE_AARCH64));
	cr_expect_not(cw_known_hang_has_version(row, 22807, CW_MACHINE_AARCH64));
	cr_expect_not(cw_known_hang_has_version(row, 22903, CW_MACHINE_AARCH64));
	cr_expect_not(cw_known_hang_has_version(row, 22809, CW_MACHINE_X86_64));
	cr_expect_not(cw_known_hang_has_version(row, 22809, CW_MACHINE_UNKNOWN));
	cr_expect_not(cw_known_hang_has_version(row, 0, CW_MACHINE_AARCH64));
}
