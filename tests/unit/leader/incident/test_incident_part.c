/* SPDX-License-Identifier: Apache-2.0 */
/* The snapshot in an incident's bundle, where the job is too large for all of it. */
#include <criterion/criterion.h>
#include <string.h>

#include "leader/incident/incident_part.h"
#include "report/doc/snapshot_doc.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(incident_part, .init = verdict_setup, .fini = verdict_teardown);

static uint32_t add_comm(uint64_t id, uint32_t nranks)
{
	const struct cw_snap_comm comm = { .id = id, .nranks = nranks, .name = "large" };
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	return index;
}

/* Rank 3 has not entered; other communicators are added to the snapshot, not to the builder. */
static void build_hang(void)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, 41), 3, 60 * SB_S);
	(void)sb_comm(b, "tp", 0, 4, 1, 100);
	judge();
	cr_assert_eq(v.verdict_class, CW_CLASS_NEVER_ENTERED);
}

static struct cw_snapshot *part_of(void)
{
	struct cw_snapshot_text *writer = cw_incident_part_text(snap, &v);
	json_t *text, *doc;
	struct cw_snapshot *part;

	cr_assert_not_null(writer);
	while (cw_snapshot_text_step(writer, snap, 3) == 0)
		;
	text = cw_snapshot_text_take(writer);
	doc = json_loadb(json_string_value(text), json_string_length(text), JSON_REJECT_DUPLICATES,
			 NULL);
	cr_assert_not_null(doc);
	cr_assert_eq(cw_snapshot_from_doc(doc, &part, NULL), 0);
	(void)cw_snapshot_text_free(writer);
	json_decref(text);
	json_decref(doc);
	return part;
}

static bool has_note(const struct cw_snapshot *s)
{
	for (uint32_t i = 0; i < s->n_notes; i++)
		if (strstr(s->notes[i], "communicators this snapshot has kept"))
			return true;
	return false;
}

Test(incident_part, small_job_is_kept_as_it_is)
{
	struct cw_snapshot *part;

	build_hang();
	part = part_of();
	cr_expect_eq(part->n_comms, 2);
	cr_expect_not(has_note(part));
	cw_snapshot_free(part);
}

Test(incident_part, what_the_verdict_is_about_is_kept_and_gives_the_same_verdict)
{
	uint32_t kept, omitted;
	struct cw_snapshot *part;
	struct cw_verdict again;

	build_hang();
	kept = add_comm(1000, CW_INCIDENT_PART_MAX_MEMBERS / 2);
	omitted = add_comm(1001, CW_INCIDENT_PART_MAX_MEMBERS / 2);
	part = part_of();
	cr_expect_eq(part->n_comms, 3);
	cr_expect_neq(cw_snapshot_find_comm(part, snap->comms[kept].id, 0), CW_SNAP_NONE);
	cr_expect_eq(cw_snapshot_find_comm(part, snap->comms[omitted].id, 0), CW_SNAP_NONE);
	cr_expect(has_note(part));
	cr_assert_eq(cw_verdict_compute(part, &again), 0);
	cr_expect_eq(again.verdict_class, v.verdict_class);
	cr_expect_str_eq(said_text(&again.said), said_text(&v.said));
	cr_expect_str_eq(sb_culprits(part, &again), "3");
	cw_verdict_fini(&again);
	cw_snapshot_free(part);
}

Test(incident_part, communicator_of_the_verdict_is_kept_however_large)
{
	struct cw_snapshot *part;

	build_hang();
	v.comm = add_comm(1000, CW_INCIDENT_PART_MAX_MEMBERS + 1);
	v.n_chain = 0;
	part = part_of();
	cr_assert_eq(part->n_comms, 1);
	cr_expect_eq(part->comms[0].id, 1000);
	cw_snapshot_free(part);
}
