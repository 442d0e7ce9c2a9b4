/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/record/record_fixture.h"

#include <criterion/criterion.h>

struct cw_test_record *rec;

void record_setup(void)
{
	rec = cw_test_record_new();
}

void record_teardown(void)
{
	rec = cw_test_record_free(rec);
}

void record_closep(struct cw_record **r)
{
	cw_record_close(*r);
}

int record_try_open(bool require_seals, struct cw_record **ret)
{
	struct cw_err err = { "" };
	int r = cw_record_open(cw_test_record_dup(rec), require_seals, ret, &err);

	if (r < 0)
		cr_expect_neq(err.text[0], '\0', "an error comes with a text");
	return r;
}

struct cw_record *record_must_open(void)
{
	struct cw_record *r = NULL;

	cr_assert_eq(record_try_open(true, &r), 0);
	return r;
}

const struct cw_record_comm *record_first_comm(struct cw_record *r)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(r, &n);
	cr_assert_gt(n, 0u);
	return comms;
}
