/* SPDX-License-Identifier: Apache-2.0 */
/* Whether two troubles have one id: never, unless everything that names them is the same. */
#include "leader/incident/incident_id.h"

#include <criterion/criterion.h>
#include <string.h>

#include "tests/attack/forge.h"

static const struct cw_incident_matter base = {
	.uid = 1000,
	.job = "slurm:4711",
	.key = { .comm_id = 0x1234, .seq = 42, .instance = 2, .is_set = true, .is_waited = true },
	.start_ticks = 99,
};
static char first[CW_INCIDENT_ID_LEN], old[CW_INCIDENT_OLD_ID_LEN];

static const char *id_of(const struct cw_incident_matter *m)
{
	cr_assert_eq(cw_incident_id_make(m, first), 0);
	return first;
}

static const char *old_id_of(const struct cw_incident_matter *m)
{
	cw_incident_id_make_old(m, old);
	return old;
}

/* Both calculated apart from this code: bundles in the field have these names. */
Test(incident_id, is_the_same_for_every_version_that_makes_it)
{
	struct cw_incident_matter send = base;

	cr_expect_str_eq(id_of(&base), "2b4cd786426d7c566cabb76075eb4325");
	cr_expect_str_eq(old_id_of(&base), "b8aa27a872d01791");
	send.key.seq = 0;
	send.key.has_op = true;
	send.key.op_kind = 7;
	send.key.p2p_seq = 3;
	cr_expect_str_eq(old_id_of(&send), "0785289cd6e7ed04");
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

Test(incident_id, of_another_user_cannot_be_made_by_choosing_a_communicator)
{
	struct cw_incident_matter forged = {
		.uid = 1001, .job = "name:mine", .key = base.key, .start_ticks = 77
	};
	char victims[CW_INCIDENT_ID_LEN];

	forged.key.comm_id =
		forge_comm_id(&(struct forged){ .id = strtoull(old_id_of(&base), NULL, 16),
						.label = forged.job,
						.uid = forged.uid,
						.instance = forged.key.instance,
						.seq = forged.key.seq,
						.is_waited = 1,
						.start_ticks = forged.start_ticks });
	cr_expect_str_eq(old_id_of(&forged), "b8aa27a872d01791",
			 "that the attack works is the premise");
	(void)strcpy(victims, id_of(&base));
	cr_expect_str_neq(id_of(&forged), victims);
}
