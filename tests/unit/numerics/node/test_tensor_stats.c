/* SPDX-License-Identifier: Apache-2.0 */
/* Two ranks whose records are written while they are looked at. */
#include "numerics/node/tensor_stats.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "common/clock.h"
#include "tests/support/record/record_writer.h"

#define RANKS 2
#define LIMIT 65504.0

static struct cw_test_record *writers[RANKS];
static struct cw_record *readers[RANKS];
static int comms[RANKS];
static uint64_t n_published[RANKS];
static struct cw_tensor_stats tensor_stats;
static int64_t now_ns;

static void setup(void)
{
	tensor_stats = (struct cw_tensor_stats){ .n_ops = 0 };
	now_ns = 100 * CW_NS_PER_S;
	for (int i = 0; i < RANKS; i++) {
		writers[i] = cw_test_record_new();
		writers[i]->header->rank_label = i;
		writers[i]->header->world_size_label = RANKS;
		writers[i]->header->has |= CW_REC_HAS_SUMMARIES;
		comms[i] = cw_test_record_comm(writers[i], 0x77, RANKS, i);
		(void)snprintf(writers[i]->comms[comms[i]].name,
			       sizeof(writers[i]->comms[comms[i]].name), "dp");
		cr_assert_eq(
			cw_record_open(cw_test_record_dup(writers[i]), true, &readers[i], NULL), 0);
		n_published[i] = 0;
	}
}

static void teardown(void)
{
	for (int i = 0; i < RANKS; i++) {
		cw_record_close(readers[i]);
		cw_test_record_free(writers[i]);
	}
}

TestSuite(tensor_stats, .init = setup, .fini = teardown);

static void put(int rank, uint64_t step, uint64_t op, bool is_output, double abs_max, uint64_t infs)
{
	struct cw_test_record *w = writers[rank];
	uint64_t number = ++n_published[rank];
	struct cw_rec_summary s = { .publish = number,
				    .op_index = op,
				    .seq = op,
				    .comm = (uint32_t)comms[rank],
				    .comm_generation = w->comms[comms[rank]].generation,
				    .kind = CW_OP_ALL_REDUCE,
				    .dtype = CW_DTYPE_FP16,
				    .is_output = is_output,
				    .step_plus_1 = (uint32_t)step + 1,
				    .elements = 10,
				    .offered = 10,
				    .infs = infs,
				    .abs_max = abs_max,
				    .l2 = abs_max };

	w->summaries[CW_REC_SUMMARY_FIRSTS + number % CW_REC_SUMMARY_RING] = s;
	if (infs && !is_output && !w->summaries[0].publish)
		w->summaries[0] = s;
}

/* Each rank feeds that, and infs of it are infinite; the output is their sum, or infinite. */
static void train(uint64_t step, double input, uint64_t infs_of_rank_1)
{
	bool is_bad = infs_of_rank_1 || 2 * input > LIMIT;

	for (int i = 0; i < RANKS; i++) {
		uint64_t op = cw_test_record_collective(writers[i], comms[i], CW_OP_ALL_REDUCE, 10);

		writers[i]->ring[op - 1].redop = CW_REDOP_SUM;
		cw_test_record_return(writers[i], comms[i], op, 0);
		put(i, step, op, false, input, i == 1 ? infs_of_rank_1 : 0);
		put(i, step, op, true, is_bad ? 0 : 2 * input, is_bad);
	}
}

static int update(void)
{
	for (int i = 0; i < RANKS; i++)
		cr_assert_eq(cw_record_refresh(readers[i]), 0);
	return cw_tensor_stats_update(&tensor_stats, readers, RANKS, now_ns);
}

Test(tensor_stats, nothing_is_news_of_healthy_ones)
{
	for (uint64_t step = 0; step < 12; step++, now_ns += CW_NS_PER_S) {
		train(step, step % 2 ? 3 : 2.5, 0);
		cr_assert_eq(update(), 0);
	}
}

Test(tensor_stats, growth_is_told_once_and_before_it_overflows)
{
	uint64_t told = 0, step = 0;
	double input = 300;

	for (; 2 * input <= LIMIT; step++, input *= 1.5, now_ns += CW_NS_PER_S) {
		int news;

		train(step, input, 0);
		news = update();
		cr_assert(news == 0 || news == CW_TENSOR_STATS_NEWS_HEADROOM);
		if (news) {
			cr_assert_eq(told, 0, "again in step %d", (int)step);
			told = step;
		}
	}
	cr_assert_gt(told, 0);
	cr_assert_lt(told, step - 1, "in step %d, infinite in %d", (int)told, (int)step);
	cr_assert_not_null(strstr(tensor_stats.headroom.text, "all_reduce #"), "%s",
			   tensor_stats.headroom.text);
	cr_assert_not_null(strstr(tensor_stats.headroom.text, "comes near what fp16 holds"), "%s",
			   tensor_stats.headroom.text);
}

Test(tensor_stats, who_was_first_is_told_once_when_the_ranks_have_had_time)
{
	const int64_t begin_ns = now_ns;
	uint64_t step = 0;
	int news = 0;

	train(step++, 3, 0);
	cr_assert_eq(update(), 0);
	for (; !news && now_ns < begin_ns + 60 * CW_NS_PER_S; now_ns += CW_NS_PER_S) {
		train(step++, 3, 2);
		news = update();
	}
	cr_assert_eq(news, CW_TENSOR_STATS_NEWS_FIRST);
	cr_assert_geq(tensor_stats.first.seen_ns - begin_ns, CW_TENSOR_STATS_SETTLE_NS);
	cr_assert_str_eq(tensor_stats.first.text,
			 "rank 1 was the first to feed 0 NaN and 2 Inf among 10 "
			 "fp16 into all_reduce #2 on dp, step 1");
	train(step++, 3, 2);
	now_ns += 2 * CW_TENSOR_STATS_SETTLE_NS;
	cr_assert_eq(update(), 0);
}

/* No rank makes any more calls: they hang. */
Test(tensor_stats, who_was_first_is_told_where_nothing_moves_any_more)
{
	train(0, 3, 1);
	cr_assert_eq(update(), 0);
	now_ns += CW_TENSOR_STATS_SETTLE_NS;
	cr_assert_eq(update(), CW_TENSOR_STATS_NEWS_FIRST);
}

Test(tensor_stats, loss_scaling_is_no_news)
{
	/* The scale doubles, a sum overflows, the step is left out, and the scale is halved. */
	static const double input[] = { 16500, 16500, 16500, 33000, 16500, 16500, 16500 };

	for (uint64_t step = 0; step < 7; step++, now_ns += 2 * CW_NS_PER_S) {
		train(step, input[step], 0);
		cr_assert_eq(update(), 0, "step %d: %s", (int)step, tensor_stats.first.text);
	}
}

/*
 * Two of four ranks are here. These got bad output from a call: the other node knows which
 * rank fed it.
 */
Test(tensor_stats, what_another_node_knows_is_told_there)
{
	for (int i = 0; i < RANKS; i++) {
		writers[i]->header->world_size_label = 4;
		writers[i]->comms[comms[i]].nranks = 4;
	}
	for (uint64_t step = 0; step < 9; step++, now_ns += 2 * CW_NS_PER_S) {
		for (int i = 0; i < RANKS; i++) {
			uint64_t op = cw_test_record_collective(writers[i], comms[i],
								CW_OP_ALL_REDUCE, 10);

			put(i, step, op, false, 3, 0);
			put(i, step, op, true, 0, 1);
		}
		cr_assert_eq(update(), 0, "%s", tensor_stats.first.text);
	}
}

Test(tensor_stats, what_is_a_part_of_the_job_says_so)
{
	for (int i = 0; i < RANKS; i++) {
		writers[i]->header->world_size_label = 4;
		writers[i]->comms[comms[i]].nranks = 4;
	}
	train(0, 3, 1);
	cr_assert_eq(update(), 0);
	now_ns += CW_TENSOR_STATS_SETTLE_NS;
	cr_assert_eq(update(), CW_TENSOR_STATS_NEWS_FIRST);
	cr_assert_not_null(strstr(tensor_stats.first.text, " (this node has 2 of its 4 ranks)"),
			   "%s", tensor_stats.first.text);
}
