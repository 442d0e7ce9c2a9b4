/* SPDX-License-Identifier: Apache-2.0 */
/* The choice among several sources that claim one rank, and the run of ended ranks. */
#include "numerics/cli/numerics_gather.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "numerics/doc/tensor_samples_doc.h"

static struct numerics_gather g;
static struct cw_numerics_input in;

static void tear_down(void)
{
	numerics_gather_fini(&g);
	cw_numerics_input_fini(&in);
}

TestSuite(numerics_gather, .fini = tear_down);

struct process {
	int32_t rank;
	bool lives;
	int64_t created_ns;
	uint64_t comm;
	int64_t last_ns; /* of its call; 0 = not known */
	int64_t ended_ns;
};

/* A node's page about up to four ranks; each has fed one tensor. */
static void add(const char *node, const struct process *v, uint32_t n)
{
	const struct cw_tensor_samples_head head = { .node = node };
	struct cw_numerics_sample samples[4] = { 0 };
	struct cw_numerics_comm comms[4] = { 0 };
	struct cw_numerics_rank ranks[4] = { 0 };
	struct cw_tensor_samples_source sources[4] = { 0 };
	const struct cw_numerics_job job = { samples, n, comms, n, ranks, n };
	struct numerics_page page;
	struct cw_err err = { "" };
	json_t *doc;

	for (uint32_t i = 0; i < n; i++) {
		samples[i] =
			(struct cw_numerics_sample){ .rank = i, .comm = i, .at_ns = v[i].last_ns };
		comms[i] = (struct cw_numerics_comm){ .id = v[i].comm, .nranks = 4 };
		ranks[i] = (struct cw_numerics_rank){ .rank = v[i].rank,
						      .device = node,
						      .nccl = 22703 };
		sources[i] = (struct cw_tensor_samples_source){ .rank = v[i].rank,
								.pid = (int32_t)(100 + i),
								.created_wall_ns = v[i].created_ns,
								.ended_wall_ns = v[i].ended_ns,
								.lives = v[i].lives };
	}
	doc = cw_tensor_samples_doc(&head, &job, sources);
	cr_assert_eq(numerics_gather_doc(&g, doc, NULL, node, &page, &err), 0, "%s", err.text);
	cr_expect_eq(page.n_ranks, n);
	cr_expect_eq(page.last_ns, v[n - 1].created_ns);
	cr_expect_eq(page.last_pid, (int32_t)(100 + n - 1));
	json_decref(doc);
}

static const char *where(int32_t rank)
{
	for (uint32_t i = 0; i < in.job.n_ranks; i++)
		if (in.sources[i].rank == rank)
			return in.sources[i].path;
	return "nowhere";
}

Test(numerics_gather, a_rank_that_lives_is_taken_wherever_the_ended_one_was_met)
{
	const struct process ended[] = { { 0, false, 10, 1 }, { 1, false, 11, 1 } };
	const struct process living[] = { { 1, true, 21, 2 }, { 0, true, 20, 2 } };

	add("a", ended, 2);
	add("b", living, 2);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_assert_eq(in.job.n_ranks, 2);
	cr_expect_str_eq(where(0), "process 101 on b");
	cr_expect_str_eq(where(1), "process 100 on b");
	cr_expect_str_eq(in.job.ranks[0].device, "b");
	cr_expect_eq(in.job.ranks[0].nccl, 22703);
	cr_expect_eq(in.job.n_samples, 2);
	cr_expect_eq(in.job.n_comms, 1);
	cr_expect_eq(in.n_set_aside, 0, "they were replaced");
}

Test(numerics_gather, an_ended_rank_is_taken_that_shares_a_communicator_with_one_that_lives)
{
	const struct process a[] = { { 2, false, 12, 1 }, { 3, false, 13, 2 } };
	const struct process b[] = { { 0, true, 100 * CW_NS_PER_S, 2 },
				     { 1, true, 100 * CW_NS_PER_S, 2 } };

	add("a", a, 2);
	add("b", b, 2);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_assert_eq(in.job.n_ranks, 3);
	cr_expect_str_eq(where(3), "process 101 on a");
	cr_expect_str_eq(where(2), "nowhere", "of an earlier run, with more ranks");
	cr_expect_eq(in.n_set_aside, 1);
}

/* Its last summaries are all of a group without a live member. */
Test(numerics_gather, an_ended_rank_is_taken_that_took_part_when_others_lived)
{
	const struct process a[] = { { 2, false, 995 * CW_NS_PER_S, 9, 1001 * CW_NS_PER_S },
				     { 3, false, 995 * CW_NS_PER_S, 8, 999 * CW_NS_PER_S } };
	const struct process b[] = { { 0, true, 1000 * CW_NS_PER_S, 2 } };

	add("a", a, 2);
	add("b", b, 1);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_str_eq(where(2), "process 100 on a");
	cr_expect_str_eq(where(3), "nowhere");
	cr_expect(!in.is_bad_set_aside);
}

static void add_four_that_ended(void)
{
	const struct process a[] = { { 0, false, 10, 1, 500 },
				     { 1, false, 10, 1, 1500 },
				     { 2, false, 12, 2, 700 },
				     { 3, false, 900, 3, 1000 } };

	add("a", a, 4);
}

/* The job was started again, and the live ranks have no summaries. */
Test(numerics_gather, who_ended_before_those_began_that_live_without_summaries_is_set_aside)
{
	add_four_that_ended();
	g.living_since_ns = 2000;
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_eq(in.job.n_ranks, 0);
	cr_expect_eq(in.n_set_aside, 4);
}

/* They are of the run, though none that lives has summaries. */
Test(numerics_gather, who_took_part_when_those_lived_that_have_no_summaries_is_taken)
{
	const struct process b[] = { { 4, false, 1200, 5, 1600 } };

	add_four_that_ended();
	add("b", b, 1);
	g.living_since_ns = 1000;
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_str_eq(where(1), "process 101 on a");
	cr_expect_str_eq(where(0), "process 100 on a", "by its communicator");
	cr_expect_str_eq(where(2), "nowhere");
	cr_expect_str_eq(where(4), "process 100 on b", "the newest");
	cr_expect_eq(in.n_set_aside, 2);
}

Test(numerics_gather, of_the_run_is_who_lives_with_summaries)
{
	const struct process b[] = { { 4, true, 1400, 5 } };

	add_four_that_ended();
	add("b", b, 1);
	g.living_since_ns = 5; /* a helper of the job, as old as the machine */
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_str_eq(where(1), "process 101 on a", "it made a call at 1500");
	cr_expect_str_eq(where(2), "nowhere");
	cr_expect_str_eq(where(4), "process 100 on b");
}

/* Run 2 ended well behind run 1, while a helper without tensors lived all along. */
Test(numerics_gather, a_helper_that_is_older_than_many_runs_says_nothing_of_the_last_one)
{
	const struct process first[] = { { 0, false, 100, 1, 200 }, { 3, false, 100, 1, 200 } };
	const struct process second[] = { { 0, false, 300, 2, 400 }, { 1, false, 300, 2, 400 } };

	add("a", first, 2);
	add("b", second, 2);
	g.living_since_ns = 50;
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_assert_eq(in.job.n_ranks, 2);
	cr_expect_str_eq(where(3), "nowhere");
	cr_expect_eq(in.n_set_aside, 1);
}

/* Its last call was long before: it hung, and then the user ended it. */
Test(numerics_gather, a_run_ends_with_its_processes)
{
	const struct process a[] = { { 0, false, 100, 1, 200, 900 },
				     { 1, false, 100, 1, 200, 900 } };

	add("a", a, 2);
	g.living_since_ns = 500;
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_eq(in.job.n_ranks, 2);
	cr_expect_eq(in.n_set_aside, 0);
}

/* As we find records on this host: of any process, with summaries or without. */
static void add_own(const struct cw_numerics_source *v, uint32_t n)
{
	struct cw_numerics_rank *ranks = cw_arena_new_array(&in.arena, struct cw_numerics_rank, n);

	in.sources = cw_arena_new_array(&in.arena, struct cw_numerics_source, n);
	cr_assert(ranks && in.sources);
	for (uint32_t i = 0; i < n; i++) {
		in.sources[i] = v[i];
		in.sources[i].path = "process";
		ranks[i] = (struct cw_numerics_rank){ .rank = v[i].rank };
	}
	in.job = (struct cw_numerics_job){ .ranks = ranks, .n_ranks = n };
}

/* The newest has none: it died before its first communicator was ready. */
Test(numerics_gather, a_run_is_not_of_an_earlier_one_for_a_rank_without_summaries)
{
	const struct cw_numerics_source own[] = {
		{ .rank = 0, .has_summaries = true, .created_wall_ns = 100 },
		{ .rank = 1, .has_summaries = true, .created_wall_ns = 101, .ended_wall_ns = 900 },
		{ .rank = 2, .created_wall_ns = 102 },
	};

	add_own(own, 3);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_str_eq(where(1), "process");
	cr_expect_eq(in.n_set_aside, 1, "rank 0, which made no call since");
}

Test(numerics_gather, who_has_no_summaries_is_not_said_to_be_set_aside)
{
	const struct cw_numerics_source own[] = {
		{ .rank = 0, .created_wall_ns = 100 },
		{ .rank = 1, .created_wall_ns = 101, .lives = true }
	};

	add_own(own, 2);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_eq(in.job.n_ranks, 1);
	cr_expect_eq(in.n_set_aside, 0);
}

/* The link may be an ended rank, too. */
Test(numerics_gather, who_shares_a_communicator_with_one_of_the_run_is_of_it)
{
	const struct process a[] = { { 2, false, 1, 3 }, { 3, false, 1, 4 } };
	const struct process b[] = { { 0, true, 1000 * CW_NS_PER_S, 2 } };
	const struct process c[] = { { 1, false, 1000 * CW_NS_PER_S, 3 } };

	add("a", a, 2);
	add("b", b, 1);
	add("c", c, 1);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_str_eq(where(2), "process 100 on a");
	cr_expect_str_eq(where(3), "nowhere");
	cr_expect_eq(in.n_set_aside, 1);
}

/* The output has the smaller second run alone. */
Test(numerics_gather, two_runs_that_ended_are_not_mixed)
{
	const struct process a[] = { { 0, false, 10 * CW_NS_PER_S, 1 },
				     { 2, false, 10 * CW_NS_PER_S, 1 } };
	const struct process b[] = { { 0, false, 500 * CW_NS_PER_S, 2 },
				     { 1, false, 501 * CW_NS_PER_S, 2 } };

	add("a", a, 2);
	add("b", b, 2);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_assert_eq(in.job.n_ranks, 2);
	cr_expect_str_eq(where(2), "nowhere");
	cr_expect_eq(in.n_set_aside, 1);
}

Test(numerics_gather, where_all_have_ended_the_newest_are_taken)
{
	const struct process a[] = { { 0, false, 10, 1 } }, b[] = { { 0, false, 20, 2 } };

	add("a", a, 1);
	add("b", b, 1);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_assert_eq(in.job.n_ranks, 1);
	cr_expect_str_eq(where(0), "process 100 on b");
}

Test(numerics_gather, who_has_no_number_is_known_by_its_record)
{
	const struct process a[] = { { -1, true, 10, 1 }, { -1, true, 11, 1 } };
	const struct process again[] = { { -1, true, 11, 1 } };

	add("a", a, 2);
	add("a", again, 1);
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_eq(in.job.n_ranks, 2);
}

Test(numerics_gather, nothing_is_nothing)
{
	cr_assert_eq(numerics_gather_end(&g, &in), 0);
	cr_expect_eq(in.job.n_ranks, 0);
}

Test(numerics_gather, a_page_that_no_node_has_is_refused)
{
	json_t *doc = json_pack("{s:s, s:[], s:[], s:[]}", "schema", "collwatch.summaries/1",
				"ranks", "comms", "samples");
	struct numerics_page page;
	struct cw_err err = { "" };

	for (unsigned i = 0; i <= CW_TENSOR_SAMPLES_DOC_PAGE_RANKS; i++)
		(void)json_array_append_new(
			json_object_get(doc, "ranks"),
			json_pack("{s:i, s:i, s:i, s:b, s:i, s:i, s:i, s:i, s:i, s:i}", "rank",
				  (int)i, "pid", 1, "world_size", -1, "lives", 1, "created_ns", 1,
				  "ended_ns", 0, "calls", 0, "tensors", 0, "kept", 0,
				  "not_collected", 0));
	cr_expect_eq(numerics_gather_doc(&g, doc, NULL, "a", &page, &err), -E2BIG);
	cr_expect_eq(numerics_gather_doc(&g, doc, "bundle", NULL, &page, &err), 0, "%s", err.text);
	json_decref(doc);
}
