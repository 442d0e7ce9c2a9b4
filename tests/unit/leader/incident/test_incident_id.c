/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two troubles have one id: never, unless everything that names them is the same. */
#include "leader/incident/incident_id.h"

#include <criterion/criterion.h>
#include <string.h>

static const struct cw_incident_matter base = {
	.uid = 1000,
	.job = "slurm:4711",
	.key = { .comm_id = 0x1234, .seq = 42, .instance = 2, .is_set = true, .is_waited = true },
	.start_ticks = 99,
};
static char first[CW_INCIDENT_ID_LEN];

static const char *id_of(const struct cw_incident_matter *m)
{
	cr_assert_eq(cw_incident_id_make(m, first), 0);
	return first;
}

/* Calculated apart from this code: bundles in the field have such names. */
Test(incident_id, is_the_same_for_every_version_that_makes_it)
{
	cr_expect_str_eq(id_of(&base), "2b4cd786426d7c566cabb76075eb4325");
}

Test(incident_id, differs_where_anything_does)
{
	struct cw_incident_matter other[11];
	char ids[11][CW_INCIDENT_ID_LEN];

	for (unsigned i = 0; i < 11; i++)
		other[i] = base;
	other[1].uid = 1001;
	other[2].job = "slurm:471";
	other[3].key.comm_id++;
	other[4].key.instance++;
	other[5].key.seq++;
	other[6].key.is_waited = false;
	other[7].key.has_op = true;
	other[8].key.op_kind = 1;
	other[9].key.p2p_seq = 1;
	other[10].start_ticks++;
	for (unsigned i = 0; i < 11; i++) {
		cr_assert_eq(cw_incident_id_make(&other[i], ids[i]), 0);
		for (unsigned k = 0; k < i; k++)
			cr_expect_str_neq(ids[i], ids[k], "%u and %u", i, k);
	}
}

/* A label ends where its length says: an attacker cannot move the bytes behind it into it. */
Test(incident_id, a_label_does_not_run_into_what_follows)
{
	struct cw_incident_matter shorter = base, longer = base;
	char of_shorter[CW_INCIDENT_ID_LEN];

	shorter.job = "";
	longer.job = "\x08";
	cr_assert_eq(cw_incident_id_make(&shorter, of_shorter), 0);
	cr_expect_str_neq(of_shorter, id_of(&longer));
}
