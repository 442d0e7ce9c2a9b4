/* SPDX-License-Identifier: Apache-2.0 */
#include "report/nonfinite_inputs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "report/doc/incident_doc.h"
#include "report/json_util.h"
#include "tests/support/report/report_fixture.h"

/* Takes the snapshot; the incident as far as it matters here. */
static json_t *incident_of(struct cw_snapshot *snap)
{
	json_t *incident = json_object(), *times = json_object();

	cr_assert_eq(json_object_set_new(times, "confirmed",
					 cw_json_wall(fixture_info.confirmed_wall_ns)),
		     0);
	cr_assert_eq(json_object_set_new(incident, "times", times), 0);
	cr_assert_eq(
		json_object_set_new(incident, "nonfinite_inputs", cw_nonfinite_inputs_doc(snap)),
		0);
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		snap->ranks[i].nonfinite_input = NULL; /* not the snapshot's to free */
	cw_snapshot_free(snap);
	return incident;
}

static void expect(json_t *incident, size_t n, const char *const texts[])
{
	json_t *sentences = cw_nonfinite_inputs_sentences(incident);

	cr_assert_eq(json_array_size(sentences), n);
	for (size_t i = 0; i < n; i++)
		cr_expect_str_eq(json_string_value(json_array_get(sentences, i)), texts[i]);
	json_decref(sentences);
	json_decref(incident);
}

Test(nonfinite_inputs, the_earliest_is_told_first_and_how_long_before)
{
	static const char *const texts[] = {
		"rank 2 fed 1 NaN, 14 s before the trouble was confirmed",
		"rank 0 fed 5 Inf, 2 s before the trouble was confirmed",
		"rank 1 fed 7 NaN, 1 s after the trouble was confirmed",
	};
	struct cw_snapshot *snap = fixture_snapshot();

	snap->ranks[0].nonfinite_input = "rank 0 fed 5 Inf";
	snap->ranks[0].nonfinite_input_ns = snap->now_ns - 2 * CW_NS_PER_S;
	snap->ranks[1].nonfinite_input = "rank 1 fed 7 NaN";
	snap->ranks[1].nonfinite_input_ns = snap->now_ns + CW_NS_PER_S;
	snap->ranks[2].nonfinite_input = "rank 2 fed 1 NaN";
	snap->ranks[2].nonfinite_input_ns = snap->now_ns - 14 * CW_NS_PER_S;
	expect(incident_of(snap), 3, texts);
}

Test(nonfinite_inputs, nothing_is_said_where_nothing_was_fed)
{
	expect(incident_of(fixture_snapshot()), 0, NULL);
}

/* A rank that is late in the snapshot and was early in time still is among them. */
Test(nonfinite_inputs, of_many_ranks_the_earliest_are_told)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t node, index;
	json_t *list;

	cr_assert_eq(cw_snapshot_add_node(snap, "node-a", &node), 0);
	snap->now_ns = 1000;
	for (int32_t i = 0; i < 3 * (int32_t)CW_NONFINITE_INPUTS_MAX; i++) {
		struct cw_snap_rank rank = { .rank = i,
					     .nonfinite_input = "fed",
					     .nonfinite_input_ns = 500 - i };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	list = cw_nonfinite_inputs_doc(snap);
	cr_assert_eq(json_array_size(list), CW_NONFINITE_INPUTS_MAX);
	for (size_t i = 0; i < CW_NONFINITE_INPUTS_MAX; i++) {
		const json_t *nonfinite_input = json_array_get(list, i);

		cr_expect_eq(cw_json_int(nonfinite_input, "rank", -1),
			     3 * (json_int_t)CW_NONFINITE_INPUTS_MAX - 1 - (json_int_t)i);
		cr_expect(json_is_null(json_object_get(nonfinite_input, "noticed")),
			  "no wall time is known");
	}
	json_decref(list);
	cw_snapshot_free(snap);
}

Test(nonfinite_inputs, documents_that_are_not_ours_say_little)
{
	static const char *const texts[] = { "?", "?", "x" };

	expect(json_pack("{s:[i, {s:i, s:s}, {s:s, s:s}]}", "nonfinite_inputs", 5, "text", 7,
			 "noticed", "yesterday", "text", "x", "noticed",
			 "2026-11-21T07:53:33.123Z"),
	       3, texts);
	expect(json_pack("{s:s}", "nonfinite_inputs", "none"), 0, NULL);
	expect(json_array(), 0, NULL);
}

/* Of a bundle written by hand: run with UBSan it says more. */
Test(nonfinite_inputs, no_time_of_a_snapshot_is_believed)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *doc;

	snap->ranks[0].nonfinite_input = "rank 0 fed 5 Inf";
	snap->ranks[0].nonfinite_input_ns = INT64_MAX;
	snap->now_ns = INT64_MIN;
	snap->wall_ns = INT64_MAX;
	doc = cw_nonfinite_inputs_doc(snap);
	snap->ranks[0].nonfinite_input = NULL; /* not the snapshot's to free */
	cr_assert_eq(json_array_size(doc), 1);
	cr_assert(json_is_null(json_object_get(json_array_get(doc, 0), "noticed")));
	json_decref(doc);
	cw_snapshot_free(snap);
}
