/* SPDX-License-Identifier: Apache-2.0 */
#include "report/nonfinite_inputs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "tests/support/report/report_fixture.h"

/* Takes the snapshot. */
static void expect(struct cw_snapshot *snap, size_t n, const char *const texts[])
{
	struct cw_incident_times times = { .confirmed_wall_ns = fixture_info.confirmed_wall_ns };
	struct cw_incident_facts incident = { .times = &times };
	struct cw_arena arena = { 0 };
	json_t *sentences;

	cr_assert_eq(cw_nonfinite_inputs_collect(snap, &arena, &incident), 0);
	sentences = cw_nonfinite_inputs_sentences(&incident);
	cr_assert_eq(json_array_size(sentences), n);
	for (size_t i = 0; i < n; i++)
		cr_expect_str_eq(json_string_value(json_array_get(sentences, i)), texts[i]);
	json_decref(sentences);
	cw_arena_fini(&arena);
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		snap->ranks[i].nonfinite_input = NULL; /* not the snapshot's to free */
	cw_snapshot_free(snap);
}

Test(nonfinite_inputs, the_earliest_is_told_first_and_how_long_before)
{
	static const char *const texts[] = {
		"rank 2 fed 1 NaN, 14 s before the incident was confirmed",
		"rank 0 fed 5 Inf, 2 s before the incident was confirmed",
		"rank 1 fed 7 NaN, 1 s after the incident was confirmed",
	};
	struct cw_snapshot *snap = fixture_snapshot();

	snap->ranks[0].nonfinite_input = "rank 0 fed 5 Inf";
	snap->ranks[0].nonfinite_input_ns = snap->now_ns - 2 * CW_NS_PER_S;
	snap->ranks[1].nonfinite_input = "rank 1 fed 7 NaN";
	snap->ranks[1].nonfinite_input_ns = snap->now_ns + CW_NS_PER_S;
	snap->ranks[2].nonfinite_input = "rank 2 fed 1 NaN";
	snap->ranks[2].nonfinite_input_ns = snap->now_ns - 14 * CW_NS_PER_S;
	expect(snap, 3, texts);
}

Test(nonfinite_inputs, nothing_is_said_where_nothing_was_fed)
{
	expect(fixture_snapshot(), 0, NULL);
}

/* A rank that is late in the snapshot and was early in time still is among them. */
Test(nonfinite_inputs, of_many_ranks_the_earliest_are_told)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t node, index;
	struct cw_incident_facts incident = { 0 };
	struct cw_arena arena = { 0 };

	cr_assert_eq(cw_snapshot_add_node(snap, "node-a", &node), 0);
	snap->now_ns = 1000;
	for (int32_t i = 0; i < 3 * (int32_t)CW_NONFINITE_INPUTS_MAX; i++) {
		struct cw_snap_rank rank = { .rank = i,
					     .nonfinite_input = "fed",
					     .nonfinite_input_ns = 500 - i };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	cr_assert_eq(cw_nonfinite_inputs_collect(snap, &arena, &incident), 0);
	cr_assert_eq(incident.n_nonfinite_inputs, CW_NONFINITE_INPUTS_MAX);
	for (uint32_t i = 0; i < CW_NONFINITE_INPUTS_MAX; i++) {
		const struct cw_incident_nonfinite_input *input = &incident.nonfinite_inputs[i];

		cr_expect_eq(input->rank, 3 * (int32_t)CW_NONFINITE_INPUTS_MAX - 1 - (int32_t)i);
		cr_expect_eq(input->noticed_wall_ns, 0, "no wall time is known");
	}
	cw_arena_fini(&arena);
	cw_snapshot_free(snap);
}

Test(nonfinite_inputs, facts_that_a_document_lacks_are_question_marks)
{
	struct cw_incident_nonfinite_input input = { .noticed_wall_ns = CW_NS_PER_S };
	const struct cw_incident_facts incident = { .nonfinite_inputs = &input,
						    .n_nonfinite_inputs = 1 };
	json_t *sentences = cw_nonfinite_inputs_sentences(&incident);

	cr_assert_eq(json_array_size(sentences), 1);
	cr_expect_str_eq(json_string_value(json_array_get(sentences, 0)), "?");
	json_decref(sentences);
}

/* Of a bundle written by hand: run with UBSan it says more. */
Test(nonfinite_inputs, no_time_of_a_snapshot_is_believed)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_incident_facts incident = { 0 };
	struct cw_arena arena = { 0 };

	snap->ranks[0].nonfinite_input = "rank 0 fed 5 Inf";
	snap->ranks[0].nonfinite_input_ns = INT64_MAX;
	snap->now_ns = INT64_MIN;
	snap->wall_ns = INT64_MAX;
	cr_assert_eq(cw_nonfinite_inputs_collect(snap, &arena, &incident), 0);
	snap->ranks[0].nonfinite_input = NULL; /* not the snapshot's to free */
	cr_assert_eq(incident.n_nonfinite_inputs, 1);
	cr_assert_eq(incident.nonfinite_inputs[0].noticed_wall_ns, 0);
	cw_arena_fini(&arena);
	cw_snapshot_free(snap);
}
