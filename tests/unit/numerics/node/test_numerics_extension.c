/* SPDX-License-Identifier: Apache-2.0 */
/* The table of numerics, called as the daemon calls it. */
#include "numerics/node/numerics_extension.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "model/op.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "record/record_reader.h"
#include "report/json_util.h"
#include "tests/support/record/record_writer.h"

#define RANKS 2u

static const struct cw_extension *const extension = &cw_numerics_extension;

static struct cw_test_record *writers[RANKS];
static struct cw_record *readers[RANKS];

/* Each rank fed an infinite number into its only op. */
static void set_up(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		struct cw_test_record *w = writers[i] = cw_test_record_new();
		int comm = cw_test_record_comm(w, 0x77, RANKS, (int32_t)i);
		uint64_t op = cw_test_record_collective(w, comm, CW_OP_ALL_REDUCE, 10);
		struct cw_rec_summary s = { .publish = 1,
					    .op_index = op,
					    .seq = op,
					    .comm = (uint32_t)comm,
					    .comm_generation = w->comms[comm].generation,
					    .kind = CW_OP_ALL_REDUCE,
					    .dtype = CW_DTYPE_FP32,
					    .step_plus_1 = 1,
					    .elements = 10,
					    .offered = 10,
					    .infs = 1 };

		cw_test_record_return(w, comm, op, 0);
		w->header->rank_label = (int32_t)i;
		w->header->world_size_label = RANKS;
		w->header->created_wall_ns = 1000 + i;
		w->header->has |= CW_REC_HAS_SUMMARIES;
		w->summaries[0] = s;
		w->summaries[CW_REC_SUMMARY_FIRSTS + 1] = s;
		cr_assert_eq(cw_record_open(cw_test_record_dup(w), true, &readers[i], NULL), 0);
		cr_assert_eq(cw_record_refresh(readers[i]), 0);
	}
}

static void tear_down(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		cw_record_close(readers[i]);
		cw_test_record_free(writers[i]);
	}
}

TestSuite(numerics_extension, .init = set_up, .fini = tear_down);

Test(numerics_extension, a_first_infinity_is_a_finding_of_the_first_kind)
{
	void *state = calloc(1, extension->state_bytes);

	cr_assert_not_null(state);
	cr_expect_eq(extension->on_digest(state, readers, RANKS, CW_NS_PER_S), 0,
		     "the next step may show loss scaling");
	cr_expect_eq(extension->on_digest(state, readers, RANKS, 9 * CW_NS_PER_S),
		     1 << CW_NUMERICS_NONFINITE);
	cr_expect_eq(extension->finding(state, CW_NUMERICS_NONFINITE)->seen_ns, 9 * CW_NS_PER_S);
	cr_expect_not_null(strstr(extension->finding(state, CW_NUMERICS_NONFINITE)->text, "Inf"),
			   "%s", extension->finding(state, CW_NUMERICS_NONFINITE)->text);
	cr_expect_eq(extension->finding(state, CW_NUMERICS_HEADROOM)->seen_ns, 0);
	free(state);
}

static json_t *page_of_all(uint32_t *ret_n_samples)
{
	const struct cw_extension_rank ranks[RANKS] = {
		{ .record = readers[0], .pid = 41, .lives = true },
		{ .record = readers[1], .pid = 42, .ended_wall_ns = 7000 },
	};
	const struct cw_extension_content content = {
		.node = "node-a", .ranks = ranks, .n_ranks = RANKS, .n_omitted = 3
	};

	return extension->page(&content, ret_n_samples);
}

Test(numerics_extension, a_page_has_what_daemon_and_record_know_of_each_rank)
{
	struct cw_arena arena = { 0 };
	struct cw_tensor_samples_source *sources;
	struct cw_numerics_job job;
	struct cw_err err;
	uint32_t n_samples;
	json_t *doc = page_of_all(&n_samples);

	cr_assert_eq(cw_tensor_samples_doc_read(doc, &arena, &job, &sources, &err), 0, "%s",
		     err.text);
	cr_assert_eq(job.n_ranks, RANKS);
	cr_expect_eq(n_samples, job.n_samples);
	cr_expect_gt(n_samples, 0);
	for (uint32_t i = 0; i < RANKS; i++) {
		cr_expect_eq(sources[i].rank, (int32_t)i);
		cr_expect_eq(sources[i].pid, (int32_t)(41 + i));
		cr_expect_eq(sources[i].world_size, (int32_t)RANKS);
		cr_expect_eq(sources[i].n_ops, 1);
		cr_expect_eq(sources[i].created_wall_ns, 1000 + i);
		cr_expect_eq(sources[i].ended_wall_ns, i ? 7000 : 0);
		cr_expect_eq(sources[i].lives, i == 0);
	}
	cw_arena_fini(&arena);
	json_decref(doc);
}

Test(numerics_extension, a_page_says_where_the_next_one_begins)
{
	struct cw_extension_page head;
	uint32_t n_samples;
	json_t *doc = page_of_all(&n_samples);

	cr_assert_eq(extension->read_page(doc, &head), 0);
	cr_expect_str_eq(head.node, "node-a");
	cr_expect_eq(head.n_ranks, RANKS);
	cr_expect_eq(head.n_omitted, 3);
	cr_expect_eq(head.last_created_wall_ns, 1001);
	cr_expect_eq(head.last_pid, 42);
	json_decref(doc);
}

Test(numerics_extension, pages_that_readers_refuse_are_refused)
{
	struct cw_extension_page head;
	json_t *doc = json_pack("{s:s, s:s, s:o}", "schema", CW_TENSOR_SAMPLES_DOC_SCHEMA, "node",
				"node-a", "ranks", json_array());
	json_t *ranks = json_object_get(doc, "ranks");

	cr_expect_eq(extension->read_page(NULL, &head), -EBADMSG);
	for (uint32_t i = 0; i < CW_TENSOR_SAMPLES_DOC_PAGE_RANKS; i++)
		(void)json_array_append_new(ranks, json_object());
	cr_expect_eq(extension->read_page(doc, &head), 0);
	cr_expect_eq(head.last_pid, 0);
	(void)json_array_append_new(ranks, json_object());
	cr_expect_eq(extension->read_page(doc, &head), -EBADMSG, "a rank too many");
	(void)json_array_clear(ranks);
	cr_expect_eq(extension->read_page(doc, &head), 0);
	(void)json_object_set_new(doc, "schema", json_string("collwatch.summaries/2"));
	cr_expect_eq(extension->read_page(doc, &head), -EBADMSG);
	json_decref(doc);
}

Test(numerics_extension, an_empty_page_names_silent_nodes_or_says_that_answers_are_due)
{
	json_t *silent = json_pack("[s]", "node-b");
	struct cw_extension_absence absence = { .node = "node-a", .is_asking = true };
	json_t *doc = extension->empty_page(&absence);

	cr_expect_str_eq(cw_json_str(doc, "why", ""), "asking");
	cr_expect_eq(json_array_size(json_object_get(doc, "silent")), 0);
	json_decref(doc);
	absence =
		(struct cw_extension_absence){ .node = "node-a", .silent = silent, .n_silent = 5 };
	doc = extension->empty_page(&absence);
	cr_expect_null(json_object_get(doc, "why"));
	cr_expect(json_equal(json_object_get(doc, "silent"), silent));
	cr_expect_eq(cw_json_int(doc, "silent_count", 0), 5);
	json_decref(doc);
	json_decref(silent);
}
