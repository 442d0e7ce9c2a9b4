/* SPDX-License-Identifier: Apache-2.0 */
/* The sources of a bundle's tensor summaries: its leader's node, and others. */
#include "numerics/cli/numerics_bundle.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "numerics/doc/tensor_samples_doc.h"
#include "report/bundle.h"

static char dir[] = "/tmp/test_numerics_bundle.XXXXXX";
static char path[64];
static struct cw_bundle bundle;
static struct cw_numerics_input in;
static struct cw_err err;

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/inc", dir);
	bundle.incident = json_pack("{s:s}", "schema", "collwatch.incident/1");
}

static void tear_down(void)
{
	char command[64];

	cw_numerics_input_fini(&in);
	cw_bundle_fini(&bundle);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(numerics_bundle, .init = set_up, .fini = tear_down);

/* A node's page about one rank, which fed one tensor on the communicator of all ranks. */
static json_t *page(const char *node, int32_t rank, bool lives, int64_t created_ns,
		    uint32_t n_omitted)
{
	const struct cw_tensor_samples_head head = { .node = node,
						     .n_omitted = n_omitted,
						     .taken_wall_ns = CW_NS_PER_S };
	struct cw_numerics_sample sample = { .at_ns = created_ns };
	struct cw_numerics_comm comm = { .id = (uint64_t)created_ns / 100, .nranks = 4 };
	struct cw_numerics_rank r = { .rank = rank };
	struct cw_tensor_samples_source source = {
		.rank = rank, .pid = 100, .created_wall_ns = created_ns, .lives = lives
	};
	const struct cw_numerics_job job = { &sample, 1, &comm, 1, &r, 1 };

	return cw_tensor_samples_doc(&head, &job, &source);
}

static void give(json_t *doc)
{
	if (!bundle.remote_summaries)
		bundle.remote_summaries = json_array();
	cr_assert_eq(json_array_append_new(bundle.remote_summaries, doc), 0);
}

static int read_it(void)
{
	int dirfd_ = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	cr_assert_eq(cw_bundle_write(dirfd_, "inc", &bundle, &err), 0, "%s", err.text);
	r = numerics_bundle_read(path, &in, &err);
	(void)close(dirfd_);
	return r;
}

static const char *where(int32_t rank)
{
	for (uint32_t i = 0; i < in.job.n_ranks; i++)
		if (in.sources[i].rank == rank)
			return in.sources[i].path;
	return "nowhere";
}

Test(numerics_bundle, ranks_of_all_nodes_are_those_of_one_job)
{
	bundle.summaries = page("node-a", 0, true, 500, 0);
	give(page("node-b", 1, true, 510, 1));
	give(page("node-b", 2, true, 520, 0));
	give(page("node-c", 3, true, 530, 2));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 4);
	cr_expect_eq(in.job.n_comms, 1);
	cr_expect_str_eq(where(0), "process 100 on node-a");
	cr_expect_str_eq(where(2), "process 100 on node-b");
	cr_expect_eq(in.n_omitted, 2, "one of node-b's came with the next page");
	cr_expect_null(in.silent);
}

Test(numerics_bundle, the_leaders_node_need_have_none)
{
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
}

Test(numerics_bundle, ended_ranks_of_an_earlier_run_elsewhere_are_set_aside)
{
	bundle.summaries = page("node-a", 0, true, 50000, 0);
	give(page("node-b", 1, true, 50010, 0));
	give(page("node-c", 2, false, 50020, 0));
	give(page("node-c", 3, false, 700, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 3);
	cr_expect_str_eq(where(3), "nowhere");
	cr_expect_eq(in.n_set_aside, 1);
}

/* Adds the rank of another page, with its sample and communicator. */
static void add_rank(json_t *to, json_t *page)
{
	json_t *sample = json_array_get(json_object_get(page, "samples"), 0);

	(void)json_array_set_new(sample, 0, json_integer(1)); /* rank */
	(void)json_array_set_new(sample, 1, json_integer(1)); /* comm */
	(void)json_array_extend(json_object_get(to, "ranks"), json_object_get(page, "ranks"));
	(void)json_array_extend(json_object_get(to, "comms"), json_object_get(page, "comms"));
	(void)json_array_extend(json_object_get(to, "samples"), json_object_get(page, "samples"));
	json_decref(page);
}

/*
 * The job as it was then: a killed rank belongs to it, and a rank that ended before it
 * began does not.
 */
Test(numerics_bundle, of_its_own_node_alone_it_has_one_run)
{
	bundle.summaries = page("node-a", 0, true, 50000, 0);
	add_rank(bundle.summaries, page("node-a", 2, false, 50020, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_expect_eq(in.n_set_aside, 0);
}

Test(numerics_bundle, of_its_own_node_alone_it_has_no_earlier_run)
{
	bundle.summaries = page("node-a", 0, true, 50000, 0);
	add_rank(bundle.summaries, page("node-a", 2, false, 700, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
	cr_expect_str_eq(where(0), path);
	cr_expect_eq(in.n_set_aside, 1);
}

/* Its answer from the common request counts, so that all answers are of one time. */
Test(numerics_bundle, of_its_own_node_that_is_taken_which_it_said_with_the_others)
{
	json_t *again = page("node-a", 0, true, 500, 0),
	       *samples = json_object_get(again, "samples");

	(void)json_array_append_new(samples, json_deep_copy(json_array_get(samples, 0)));
	bundle.summaries = page("node-a", 0, true, 500, 0);
	give(again);
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_expect_eq(in.job.n_samples, 3);
}

/* The others' answers are of another run then. */
Test(numerics_bundle, of_a_job_that_was_started_again_its_own_nodes_first_word_counts_alone)
{
	bundle.summaries = page("node-a", 0, false, 500, 0);
	give(page("node-a", 0, true, 900, 0));
	give(page("node-b", 1, true, 910, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
	cr_expect_eq(in.sources[0].created_wall_ns, 500);
	cr_expect_str_eq(where(0), path);
	cr_assert_not_null(in.silent);
	cr_expect_not_null(strstr(in.silent, "been restarted"), "%s", in.silent);
}

Test(numerics_bundle, pages_of_a_node_may_come_between_those_of_another)
{
	give(page("node-b", 0, true, 500, 1));
	give(page("node-c", 1, true, 500, 0));
	give(page("node-b", 2, true, 500, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 3);
	cr_expect_eq(in.n_omitted, 0);
}

Test(numerics_bundle, where_there_are_no_ranks_it_says_who_gave_nothing)
{
	const struct cw_tensor_samples_head head = { .node = "node-a",
						     .taken_wall_ns = CW_NS_PER_S };
	json_t *silent = json_pack("[s]", "node-d");

	give(cw_tensor_samples_doc_of_none(&head, silent, 1, CW_TENSOR_SAMPLES_DOC_TOO_MUCH));
	cr_expect_eq(read_it(), -ENODATA);
	cr_expect_not_null(strstr(err.text, "no answer from node-d, nodes whose tensor summaries "
					    "were too large for a copy"),
			   "%s", err.text);
	json_decref(silent);
}

Test(numerics_bundle, who_gave_nothing_is_named)
{
	const struct cw_tensor_samples_head head = { .node = "node-a",
						     .taken_wall_ns = CW_NS_PER_S };
	json_t *silent = json_pack("[s, s]", "node-d", "node-\x1b[31me");

	bundle.summaries = page("node-a", 0, true, 500, 0);
	give(cw_tensor_samples_doc_of_none(&head, silent, 3, CW_TENSOR_SAMPLES_DOC_ASKING));
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_expect_str_eq(in.silent, "node-d, node-?[31me, others, nodes that had not answered yet");
	json_decref(silent);
}

Test(numerics_bundle, of_its_own_node_alone_all_are_taken)
{
	bundle.summaries = page("node-a", 0, false, 700, 3);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_str_eq(where(0), path);
	cr_expect_eq(in.n_omitted, 3);
}

Test(numerics_bundle, who_gave_what_is_no_summary_is_named_and_the_rest_is_read)
{
	json_t *bad = page("node-\x1b[31mc", 3, true, 510, 0);

	bundle.summaries = page("node-a", 0, true, 500, 0);
	(void)json_object_set_new(bad, "samples", json_pack("[[s]]", "much"));
	give(bad);
	give(json_object());
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_assert_not_null(in.silent);
	cr_expect_not_null(strstr(in.silent, "[31mc (a tensor summary has no rank)"), "%s",
			   in.silent);
	cr_expect_not_null(strstr(in.silent, ", ? ("), "%s", in.silent);
	cr_expect_null(strchr(in.silent, '\x1b'));
}

Test(numerics_bundle, none_at_all_is_said)
{
	cr_expect_eq(read_it(), -ENODATA);
	cr_expect_not_null(strstr(err.text, "COLLWATCH_SUMMARY"), "%s", err.text);
}
