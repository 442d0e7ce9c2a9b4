/* SPDX-License-Identifier: Apache-2.0 */
/* Whose tensor summaries a bundle has: of its leader's node, and of others. */
#include "cli/verbs/numerics_bundle.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "report/bundle.h"
#include "report/doc/looks_doc.h"

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

/* When pages are taken: a page's own, where it is not 0. */
static int64_t taken_ns = CW_NS_PER_S;

/* What a node says of one rank, that fed one tensor on the communicator that all are in. */
static json_t *page(const char *node, int32_t rank, bool lives, int64_t created_ns,
		    uint32_t n_left_out)
{
	const struct cw_looks_head head = { .node = node,
					    .n_left_out = n_left_out,
					    .taken_wall_ns = taken_ns };
	struct cw_numerics_look look = { .at_ns = created_ns };
	struct cw_numerics_comm comm = { .id = (uint64_t)created_ns / 100, .nranks = 4 };
	struct cw_numerics_rank r = { .rank = rank };
	struct cw_looks_source source = {
		.rank = rank, .pid = 100, .created_wall_ns = created_ns, .lives = lives
	};
	const struct cw_numerics_job job = { &look, 1, &comm, 1, &r, 1 };

	return cw_looks_doc(&head, &job, &source);
}

static uint32_t column(const json_t *doc, const char *name)
{
	const json_t *columns = json_object_get(doc, "columns"), *v;
	size_t i;

	json_array_foreach (columns, i, v)
		if (strcmp(json_string_value(v), name) == 0)
			return (uint32_t)i;
	cr_assert_fail("no column %s", name);
	return UINT32_MAX;
}

static void give(json_t *doc)
{
	if (!bundle.elsewhere)
		bundle.elsewhere = json_array();
	cr_assert_eq(json_array_append_new(bundle.elsewhere, doc), 0);
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
	cr_expect_eq(in.n_left_out, 2, "one of node-b's came with the next page");
	cr_expect_null(in.silent);
}

Test(numerics_bundle, the_leaders_node_need_have_none)
{
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
}

/* Of its own node alone a bundle has what belongs there, ended or not: docs/numerics.md. */
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

/* The leader's node was asked at 2 s, when the job went on; the other at 9 s. */
Test(numerics_bundle, what_came_later_than_the_bundle_is_left_out)
{
	json_t *later = page("node-b", 1, true, 500, 0), *looks = json_object_get(later, "looks");
	json_t *look = json_deep_copy(json_array_get(looks, 0));
	uint32_t at_column = column(later, "at_ns");

	(void)json_array_set_new(look, at_column, json_integer(8 * CW_NS_PER_S));
	(void)json_array_append_new(looks, look);
	taken_ns = 2 * CW_NS_PER_S;
	bundle.summaries = page("node-a", 0, true, 500, 0);
	give(later);
	taken_ns = 9 * CW_NS_PER_S;
	give(page("node-c", 2, true, 500, 0));
	give(page("node-c", 2, true, 8 * CW_NS_PER_S, 0)); /* started again */
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 3);
	cr_expect_eq(in.job.n_looks, 3);
	for (uint32_t i = 0; i < in.job.n_looks; i++)
		cr_expect_eq(in.job.looks[i].at_ns, 500);
	for (uint32_t i = 0; i < in.job.n_ranks; i++)
		cr_expect_eq(in.sources[i].created_wall_ns, 500);
	cr_expect_eq(in.n_set_aside, 0);
}

Test(numerics_bundle, without_its_own_nodes_the_first_page_says_of_when_it_is)
{
	taken_ns = 9 * CW_NS_PER_S;
	give(page("node-c", 2, true, 8 * CW_NS_PER_S, 0));
	taken_ns = 2 * CW_NS_PER_S;
	give(page("node-b", 1, true, 500, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 1);
}

Test(numerics_bundle, who_gave_nothing_is_named)
{
	const struct cw_looks_head head = { .node = "node-a", .taken_wall_ns = CW_NS_PER_S };
	json_t *silent = json_pack("[s, s]", "node-d", "node-\x1b[31me");

	bundle.summaries = page("node-a", 0, true, 500, 0);
	give(cw_looks_doc_of_none(&head, silent, 3, CW_LOOKS_DOC_ASKING));
	give(page("node-b", 1, true, 510, 0));
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_expect_str_eq(in.silent,
			 "node-d, node-?[31me, others, nodes that were still being asked");
	json_decref(silent);
}

Test(numerics_bundle, of_its_own_node_alone_all_are_taken)
{
	bundle.summaries = page("node-a", 0, false, 700, 3);
	cr_assert_eq(read_it(), 0, "%s", err.text);
	cr_expect_str_eq(where(0), path);
	cr_expect_eq(in.n_left_out, 3);
}

Test(numerics_bundle, who_gave_what_is_no_summary_is_named_and_the_rest_is_read)
{
	json_t *bad = page("node-\x1b[31mc", 3, true, 510, 0);

	bundle.summaries = page("node-a", 0, true, 500, 0);
	(void)json_object_set_new(bad, "looks", json_pack("[[s]]", "much"));
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
