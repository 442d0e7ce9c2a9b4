/* SPDX-License-Identifier: Apache-2.0 */
/* Merges the samples that two nodes have of one job. */
#include "numerics/read/tensor_samples.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static struct cw_tensor_samples samples;

static void tear_down(void)
{
	cw_tensor_samples_fini(&samples);
}

TestSuite(tensor_samples, .fini = tear_down);

/* Two communicators of one id, as in a job that was started again, and one without calls. */
static const struct cw_numerics_comm comms[] = {
	{ .id = 0x66, .name = "unused", .nranks = 4 },
	{ .id = 0x77, .instance = 1, .name = "dp", .nranks = 4 },
	{ .id = 0x77, .instance = 2, .name = "dp", .nranks = 4 },
};

/*
 * Joins a source with rank `rank`, which fed on the communicators `first` and `second`,
 * from the site.
 */
static int join(int32_t rank, uint32_t first, uint32_t second, const char *site)
{
	struct cw_numerics_sample own[] = {
		{ .comm = first, .order = 1, .seq = 7, .site = site, .abs_max = (double)rank },
		{ .comm = second, .order = 2, .seq = 8 },
	};
	char device[] = "A100";
	const struct cw_numerics_rank ranks[] = { { .rank = rank,
						    .is_whole = true,
						    .device = rank ? device : NULL,
						    .cuda_driver = 12040,
						    .nccl = 22703 } };
	int r;
	const struct cw_numerics_job more = { own, 2, comms, 3, ranks, 1 };

	r = cw_tensor_samples_join(&samples, &more, NULL);
	*device = 'x';
	return r;
}

Test(tensor_samples, ranks_of_two_nodes_share_a_communicator_by_its_id_and_instance)
{
	char site[] = "train.py:9";
	struct cw_numerics_job job;

	cr_assert_eq(join(0, 2, 1, NULL), 0);
	cr_assert_eq(join(5, 1, 2, site), 0);
	memset(site, 'x', sizeof(site) - 1);
	job = cw_tensor_samples_job(&samples);
	cr_assert_eq(job.n_ranks, 2);
	cr_expect_eq(job.ranks[1].rank, 5);
	cr_expect(job.ranks[1].is_whole);
	cr_expect_str_eq(job.ranks[0].device, "");
	cr_expect_str_eq(job.ranks[1].device, "A100", "copied");
	cr_expect_eq(job.ranks[1].cuda_driver, 12040);
	cr_expect_eq(job.ranks[1].nccl, 22703);
	cr_assert_eq(job.n_comms, 2, "the unused comm is left out");
	cr_assert_eq(job.n_samples, 4);
	cr_expect_eq(job.samples[2].rank, 1);
	cr_expect_eq(job.samples[2].comm, job.samples[1].comm);
	cr_expect_eq(job.samples[3].comm, job.samples[0].comm);
	cr_expect_neq(job.samples[2].comm, job.samples[3].comm);
	cr_expect_eq(job.comms[job.samples[2].comm].instance, 1);
	cr_expect_str_eq(job.comms[job.samples[2].comm].name, "dp");
	cr_expect_str_eq(job.samples[2].site, "train.py:9", "copied");
	cr_expect_null(job.samples[3].site);
}

Test(tensor_samples, only_ranks_that_are_wanted_are_taken)
{
	static struct cw_numerics_sample own[] = { { .rank = 0, .comm = 1, .site = "a" },
						   { .rank = 1, .comm = 2, .site = "b" } };
	static const struct cw_numerics_rank ranks[] = { { .rank = 3 }, { .rank = 4 } };
	const struct cw_numerics_job more = { own, 2, comms, 3, ranks, 2 };
	const bool wanted[] = { false, true };

	cr_assert_eq(cw_tensor_samples_join(&samples, &more, wanted), 0);
	cr_assert_eq(samples.n_ranks, 1);
	cr_expect_eq(samples.ranks[0].rank, 4);
	cr_assert_eq(samples.n_samples, 1);
	cr_expect_str_eq(samples.samples[0].site, "b");
	cr_expect_eq(samples.samples[0].rank, 0);
	cr_assert_eq(samples.n_comms, 1);
}

Test(tensor_samples, more_than_can_be_held_is_refused)
{
	const struct cw_numerics_job more = { .n_samples = UINT32_MAX };

	cr_assert_eq(cw_tensor_samples_join(&samples, &more, NULL), -E2BIG);
}
