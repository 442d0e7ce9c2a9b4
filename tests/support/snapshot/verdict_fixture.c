/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/snapshot/verdict_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "say/english.h"

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
		     cw_class_name(verdict_class), v.summary);
	cr_expect_str_eq(cw_detail_name(v.detail), detail, "%s: %s", cw_detail_name(v.detail),
			 v.summary);
	cr_expect_str_eq(sb_culprits(snap, &v), culprits, "culprits %s: %s", sb_culprits(snap, &v),
			 v.summary);
	cr_expect_str_eq(sb_victims(snap, &v), victims, "victims %s: %s", sb_victims(snap, &v),
			 v.summary);
	if (getenv("SHOW")) {
		fprintf(stderr, "# %s/%s %s: %s\n", cw_class_name(v.verdict_class),
			cw_detail_name(v.detail), cw_confidence_name(v.confidence), v.summary);
		for (uint32_t i = 0; i < v.n_culprits; i++)
			fprintf(stderr, "#   %s\n", v.culprits[i].reason);
		for (uint32_t i = 0; i < v.n_ruled_out; i++)
			fprintf(stderr, "#   not: %s\n", ruled_out(i));
	}
}

const char *ruled_out(uint32_t i)
{
	static char text[256];

	return cw_say_text(&v.ruled_out_said[i], text, sizeof(text));
}
