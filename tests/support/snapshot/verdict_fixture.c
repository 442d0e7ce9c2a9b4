/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/snapshot/verdict_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "say/english.h"
#include "tests/support/snapshot/said_text.h"

struct sb *b;
struct cw_snapshot *snap;
struct cw_verdict v;

void verdict_setup(void)
{
	b = sb_new(8, 2);
}

void verdict_teardown(void)
{
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	sb_free(b);
}

void judge(void)
{
	cw_verdict_fini(&v);
	snap = cw_snapshot_free(snap);
	v = sb_verdict(b, &snap);
}

void expect(unsigned verdict_class, const char *detail, const char *culprits, const char *victims)
{
	judge();
	cr_expect_eq(v.verdict_class, verdict_class, "class %s (%s), not %s: %s",
		     cw_class_name(v.verdict_class), cw_detail_name(v.detail),
		     cw_class_name(verdict_class), said_text(&v.said));
	cr_expect_str_eq(cw_detail_name(v.detail), detail, "%s: %s", cw_detail_name(v.detail),
			 said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), culprits, "culprits %s: %s", sb_culprits(snap, &v),
			 said_text(&v.said));
	cr_expect_str_eq(sb_victims(snap, &v), victims, "victims %s: %s", sb_victims(snap, &v),
			 said_text(&v.said));
	if (getenv("SHOW")) {
		fprintf(stderr, "# %s/%s %s: %s\n", cw_class_name(v.verdict_class),
			cw_detail_name(v.detail), cw_confidence_name(v.confidence),
			said_text(&v.said));
		for (uint32_t i = 0; i < v.n_culprits; i++)
			fprintf(stderr, "#   %s\n", said_text(&v.culprits[i].said));
		for (uint32_t i = 0; i < v.n_ruled_out; i++)
			fprintf(stderr, "#   not: %s\n", said_text(&v.ruled_out_said[i]));
	}
}
