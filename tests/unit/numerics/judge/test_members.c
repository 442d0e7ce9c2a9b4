/* SPDX-License-Identifier: Apache-2.0 */
/* The hardware and software of a call's members, put in order. */
#include "numerics/judge/members.h"

#include <criterion/criterion.h>
#include <string.h>

#define N 5u

static struct cw_numerics_sample samples[N];
static struct cw_numerics_rank ranks[N];
static const struct cw_numerics_job job = {
	.samples = samples, .n_samples = N, .ranks = ranks, .n_ranks = N
};
static const uint32_t all[N] = { 4, 3, 2, 1, 0 };
static struct cw_member v[N];

static void setup(void)
{
	for (uint32_t i = 0; i < N; i++) {
		samples[i] = (struct cw_numerics_sample){ .rank = i };
		ranks[i] = (struct cw_numerics_rank){ .device = "B", .nccl = 22703 };
	}
}

TestSuite(members, .init = setup);

Test(members, those_of_one_model_stand_together_and_unknown_ones_last)
{
	ranks[1].device = "A";
	ranks[2].device = NULL;
	ranks[3].device = "A";
	ranks[4].device = "";
	cr_assert(cw_members_sort(&job, all, N, CW_MEMBERS_BY_DEVICE, v));
	cr_expect(v[0].sample == 1 && v[1].sample == 3 && v[2].sample == 0);
	cr_expect(v[3].sample == 2 && v[4].sample == 4);
	cr_expect_eq(cw_members_end(v, N, 0), 2);
	cr_expect_eq(cw_members_end(v, N, 2), 3);
	cr_expect_eq(cw_members_end(v, N, 3), N);
}

Test(members, what_is_not_known_is_unlike_nothing)
{
	ranks[2].device = "";
	cr_expect_not(cw_members_sort(&job, all, N, CW_MEMBERS_BY_DEVICE, v));
	cr_expect_not(cw_members_sort(&job, all, N, CW_MEMBERS_BY_CUDA_DRIVER, v), "of nobody");
	cr_expect_not(cw_members_sort(&job, all, N, CW_MEMBERS_BY_NCCL, v));
	cr_expect_not(cw_members_sort(&job, all, 0, CW_MEMBERS_BY_NCCL, v));
	ranks[0].nccl = 22903;
	cr_expect(cw_members_sort(&job, all, N, CW_MEMBERS_BY_NCCL, v));
}

Test(members, as_people_write_it)
{
	char text[32];
	struct cw_member m = { .device = "NVIDIA H100 80GB HBM3" };

	cr_expect_str_eq(cw_members_text(&m, CW_MEMBERS_BY_DEVICE, text, sizeof(text)),
			 "NVIDIA H100 80GB HBM3");
	m = (struct cw_member){ .device = "", .version = 12040 };
	cr_expect_str_eq(cw_members_text(&m, CW_MEMBERS_BY_CUDA_DRIVER, text, sizeof(text)),
			 "12.4");
	m.version = 22903;
	cr_expect_str_eq(cw_members_text(&m, CW_MEMBERS_BY_NCCL, text, sizeof(text)), "2.29.3");
	m.version = 0;
	cr_expect_str_eq(cw_members_text(&m, CW_MEMBERS_BY_NCCL, text, sizeof(text)), "");
}
