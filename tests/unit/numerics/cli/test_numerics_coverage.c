/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_coverage.h"

#include <criterion/criterion.h>
#include <string.h>

Test(numerics_coverage, of_how_much_was_looked_at)
{
	struct cw_numerics_source sources[] = {
		{ .n_ops = 1, .n_samples = 1, .n_kept = 1, .n_dropped = 1 },
		{ .n_ops = 5, .n_samples = 4, .n_kept = 3 }
	};
	struct cw_numerics_input in = { .job = { .n_ranks = 1 }, .sources = sources };
	struct cw_numerics_report said = { .n_replicas_checked = 1, .n_sums_checked = 1 };
	char buf[600];

	cr_expect_str_eq(
		numerics_coverage_text(&in, &said, buf, sizeof(buf)),
		"1 rank, 1 call, 1 tensor looked at, of which the last 1 is here; copies compared in "
		"1 call, sums in 1; 1 tensor was left out for want of a place");
	sources[0].world_size = 8;
	cr_expect_eq(strncmp(numerics_coverage_text(&in, &said, buf, sizeof(buf)),
			     "1 of 8 ranks, 1 call, ", 22),
		     0, "%s", buf);
	in.silent = "node-b";
	cr_expect_not_null(strstr(numerics_coverage_text(&in, &said, buf, sizeof(buf)),
				  "; no answer from node-b; 1 tensor"),
			   "%s", buf);
	in.silent = NULL;
	in.n_omitted = 1;
	in.n_set_aside = 2;
	cr_expect_not_null(
		strstr(numerics_coverage_text(&in, &said, buf, sizeof(buf)),
		       "; 1 rank had no place in the bundle; 2 ranks of an earlier run set "
		       "aside; 1 tensor"),
		"%s", buf);
	in.n_omitted = in.n_set_aside = 0;
	sources[0].world_size = 2;
	in.job.n_ranks = 2;
	sources[0].n_dropped = 0;
	said.n_replicas_checked = 41;
	cr_expect_str_eq(
		numerics_coverage_text(&in, &said, buf, sizeof(buf)),
		"2 ranks, 6 calls, 5 tensors looked at, of which the last 4 are here; copies compared "
		"in 41 calls, sums in 1");
}
