/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/nccl_errors.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "report/json_util.h"
#include "tests/support/report/report_fixture.h"

#define REMOTE_ERROR 6
#define IN_PROGRESS 7

static struct cw_snap_member *member(struct cw_snapshot *snap, uint32_t rank)
{
	cr_assert_neq(snap->comms[0].members[rank].rank, CW_SNAP_NONE);
	return &snap->comms[0].members[rank];
}

/* Takes the snapshot. */
static json_t *sentences_of(struct cw_snapshot *snap)
{
	struct cw_incident_facts facts = { 0 };
	struct cw_arena arena = { 0 };
	json_t *sentences;

	cr_assert_eq(cw_nccl_errors_collect(snap, &arena, &facts), 0);
	sentences = cw_nccl_error_sentences(&facts);
	cr_assert_not_null(sentences);
	cw_arena_fini(&arena);
	return sentences;
}

static void expect(const json_t *sentences, size_t i, const char *text)
{
	const char *is = json_string_value(json_array_get(sentences, i));

	cr_assert_not_null(is);
	cr_assert_str_eq(is, text);
}

Test(nccl_errors, ranks_with_one_error_are_told_together)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *sentences;

	member(snap, 0)->async_error = member(snap, 1)->async_error = REMOTE_ERROR;
	member(snap, 0)->last_error = member(snap, 1)->last_error = "connection closed by peer";
	member(snap, 2)->last_result = 5;
	member(snap, 2)->last_error = "";
	sentences = sentences_of(snap);
	cr_assert_eq(json_array_size(sentences), 2);
	expect(sentences, 0,
	       "ranks 0-1: ncclRemoteError on comm tp_group: \"connection closed by peer\"");
	expect(sentences, 1, "rank 2: ncclInvalidUsage on comm tp_group");
	json_decref(sentences);
	for (uint32_t i = 0; i < 3; i++)
		member(snap, i)->last_error = NULL; /* not the snapshot's to free */
	cw_snapshot_free(snap);
}

Test(nccl_errors, no_error_and_being_at_it_are_none)
{
	struct cw_snapshot *snap = fixture_snapshot();
	json_t *sentences;

	member(snap, 0)->async_error = IN_PROGRESS;
	member(snap, 1)->last_result = IN_PROGRESS;
	sentences = sentences_of(snap);
	cr_assert_eq(json_array_size(sentences), 0);
	json_decref(sentences);
	cw_snapshot_free(snap);
}

Test(nccl_errors, different_errors_beyond_the_limit_are_omitted)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	struct cw_snap_comm comm = { .id = 7, .nranks = 2 * CW_NCCL_ERRORS_MAX };
	json_t *sentences;
	uint32_t node, index;

	cr_assert_eq(cw_snapshot_add_node(snap, "node-a", &node), 0);
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t i = 0; i < comm.nranks; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)i, .pid = 100 + (int32_t)i };
		struct cw_snap_member m = { .async_error = 100 + (int32_t)i };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &m.rank), 0);
		cr_assert_eq(cw_snapshot_set_member(snap, 0, i, &m), 0);
	}
	sentences = sentences_of(snap);
	cr_assert_eq(json_array_size(sentences), CW_NCCL_ERRORS_MAX);
	expect(sentences, 0, "rank 0: ncclResult_t 100 on comm 0x0000000000000007");
	json_decref(sentences);
	cw_snapshot_free(snap);
}

Test(nccl_errors, facts_that_a_document_lacks_are_question_marks)
{
	struct cw_incident_nccl_error error = { .comm = 7 };
	const struct cw_incident_facts facts = { .nccl_errors = &error, .n_nccl_errors = 1 };
	json_t *sentences = cw_nccl_error_sentences(&facts);

	cr_assert_eq(json_array_size(sentences), 1);
	expect(sentences, 0, "rank ?: ? on comm 0x0000000000000007");
	json_decref(sentences);
}
