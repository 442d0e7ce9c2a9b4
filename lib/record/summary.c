/* SPDX-License-Identifier: Apache-2.0 */
#include "record/summary.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "model/op.h"

_Static_assert((int)CW_SUM_INT8 == (int)CW_DTYPE_INT8 && (int)CW_SUM_FP16 == (int)CW_DTYPE_FP16 &&
		       (int)CW_SUM_BF16 == (int)CW_DTYPE_BF16 &&
		       (int)CW_SUM_E5M2 == (int)CW_DTYPE_FP8_E5M2 &&
		       (int)CW_SUM__MAX == (int)CW_DTYPE__MAX,
	       "the kernel's numbers are those of enum cw_dtype");

/*
 * Words per partial sum. One sum over all words would lose more digits the more words it has,
 * because equal numbers are rounded alike. The kernel has a sum for each thread. Here each block of
 * words has its own.
 */
#define BLOCK_WORDS 65536u

static struct cw_summary_sum sum_words(const struct cw_summary_args *args, uint64_t from,
				       uint64_t to)
{
	const char *data = (const char *)(uintptr_t)args->data;
	unsigned size = cw_sum_bytes(args->dtype);
	struct cw_summary_sum s = { 0 };

	for (uint64_t i = from; i < to; i++) {
		uint64_t at = cw_sum_position(args, i), word = 0;
		unsigned n = cw_sum_in_word(args, at);

		memcpy(&word, data + at * 8, (size_t)n * size);
		cw_sum_add_word(&s, word, at, args->dtype, n);
	}
	return s;
}

static struct cw_summary_sum sum_of(const struct cw_summary_args *args)
{
	uint64_t chosen = cw_sum_chosen(args);
	struct cw_summary_sum s = { 0 };

	for (uint64_t i = 0; i < chosen; i += BLOCK_WORDS) {
		uint64_t n = chosen - i < BLOCK_WORDS ? chosen - i : BLOCK_WORDS;
		struct cw_summary_sum block = sum_words(args, i, i + n);

		cw_sum_join(&s, &block);
	}
	return s;
}

void cw_summary_compute(const struct cw_summary_args *args, struct cw_rec_summary *ret)
{
	struct cw_summary_sum s = sum_of(args);

	ret->elements = s.elements;
	ret->nans = s.nans;
	ret->infs = s.infs;
	ret->zeros = s.zeros;
	ret->abs_max = cw_sum_of_magnitude(s.most, args->dtype);
	ret->abs_min_nonzero = cw_sum_of_magnitude(s.least, args->dtype);
	ret->mean = cw_sum_mean(&s);
	ret->l2 = sqrt(cw_sum_squares(&s, args->dtype));
	ret->checksum = s.checksum;
	ret->at_limit = cw_sum_share(s.at_limit, s.elements);
	ret->denormal = cw_sum_share(s.denormals, s.elements);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void publish(struct cw_rec_summary *to, const struct cw_rec_summary *from)
{
	const uint64_t *words = (const uint64_t *)from;

	__atomic_store_n(&to->publish, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (unsigned i = 1; i < sizeof(*from) / sizeof(*words); i++)
		__atomic_store_n(&((uint64_t *)to)[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&to->publish, from->publish, __ATOMIC_RELEASE);
}

static void finish(const struct cw_summary_args *args)
{
	struct cw_summary_sum s = sum_of(args);

	cw_sum_finish(&s, args->dtype, sqrt(cw_sum_squares(&s, args->dtype)),
		      (struct cw_sum_tensor_stats *)(uintptr_t)args->tensor_stats);
}

void cw_summary_run(const struct cw_summary_args *args)
{
	struct cw_rec_summary *first = (void *)(uintptr_t)args->first_out;
	struct cw_rec_summary s = {
		.publish = args->publish,
		.op_index = args->op_index,
		.seq = args->seq,
		.comm = args->comm,
		.comm_generation = args->comm_generation,
		.kind = args->kind,
		.dtype = args->dtype,
		.is_output = args->is_output,
		.stride_log2_plus_1 = args->stride_log2_plus_1,
		.step_plus_1 = args->step_plus_1,
		.offered = args->offered,
	};
	uint64_t begin = now_ns(), took;

	if (args->tensor_stats) {
		finish(args);
		return;
	}
	cw_summary_compute(args, &s);
	took = now_ns() - begin;
	s.device_ns = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
	if (first && (s.nans || s.infs) && !__atomic_load_n(&first->publish, __ATOMIC_RELAXED))
		publish(first, &s);
	publish((void *)(uintptr_t)args->out, &s);
}
