/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor summaries on the GPU, and time stamps. nvcc compiles this file for every architecture that
 * it offers, or clang compiles it to PTX without any of NVIDIA's headers. We therefore write
 * everything that differs between the two compilers as PTX, and include no header that one of them
 * lacks.
 *
 * Each thread adds up words, each block adds up its threads, and the last block to finish adds up
 * the blocks. The last block writes the result into host memory and publishes it. The blocks of one
 * launch share a scratch area. The host gives the area to another launch only after the first
 * launch has published.
 */
#ifndef CW_KERNEL_MACHINE
#define CW_KERNEL_MACHINE "agent/cuda/kernel_machine.h"
#endif
#include CW_KERNEL_MACHINE

#ifndef CW_SUMMARY_FN
#define CW_SUMMARY_FN static __device__ __attribute__((always_inline)) inline
#endif
#include "record/record_layout.h"
#include "record/summary_math.h"

/*
 * A thread loads this many words before it adds up the first one, because memory answers only after
 * 700 ns.
 */
#define WORDS_AT_ONCE 4

/*
 * A partial result. Its size is an odd multiple of eight bytes, so that the threads of a warp
 * access different banks of shared memory.
 */
struct partial {
	struct cw_summary_sum sum;
	uint64_t begin_ns;
};
_Static_assert(sizeof(struct partial) % 16 == 8, "no conflicts of banks");

static __device__ struct partial scratch[CW_REC_SUMMARY_RING + CW_SUM_STREAMS][CW_SUM_BLOCKS];
static __device__ uint32_t finished[CW_REC_SUMMARY_RING + CW_SUM_STREAMS];
static __device__ uint32_t has_first;

static __device__ inline uint64_t load_word(const struct cw_summary_args *args, uint64_t position,
					    unsigned bytes)
{
	uint64_t address = args->data + position * 8, word = 0;

	if (bytes == 8 && address % 8 == 0)
		return load64(address);
#pragma unroll 1
	for (unsigned i = 0; i < bytes; i++)
		word |= load8(address + i) << (i * 8);
	return word;
}

/*
 * Adds up a thread's share of the full words. dtype is a constant after inlining, so the compiler
 * removes every branch on it.
 */
static __device__ __attribute__((always_inline)) inline void
scan(const struct cw_summary_args *args, unsigned dtype, uint64_t words, struct cw_summary_sum *sum)
{
	uint64_t step = (uint64_t)nctaid_get() * CW_SUM_THREADS;
	uint64_t i = (uint64_t)ctaid_get() * CW_SUM_THREADS + tid_get();
	unsigned per_word = 8 / cw_sum_bytes(dtype), at_once = args->data % 8 ? 1 : WORDS_AT_ONCE;
	uint64_t at[WORDS_AT_ONCE] = {}, word[WORDS_AT_ONCE] = {};

#pragma unroll 1
	while (i < words) {
		at[0] = cw_sum_position(args, i);
		word[0] = load_word(args, at[0], 8);
#pragma unroll
		for (unsigned n = 1; n < WORDS_AT_ONCE; n++) {
			if (n >= at_once || i + n * step >= words)
				continue;
			at[n] = cw_sum_position(args, i + n * step);
			word[n] = load64(args->data + at[n] * 8);
		}
		/*
		 * Shift the words up instead of using an index. An index would need an unrolled
		 * loop, whose code would be WORDS_AT_ONCE times as long.
		 */
#pragma unroll 1
		for (unsigned n = 0; n < at_once && i < words; n++, i += step) {
			cw_sum_add_word(sum, word[0], at[0], dtype, per_word);
#pragma unroll
			for (unsigned k = 0; k + 1 < WORDS_AT_ONCE; k++) {
				at[k] = at[k + 1];
				word[k] = word[k + 1];
			}
		}
	}
}

/*
 * Adds up the last word of the tensor. The caller has checked that the word is chosen and not full.
 */
static __device__ inline void scan_tail(const struct cw_summary_args *args, uint64_t index,
					struct cw_summary_sum *sum)
{
	uint64_t at = cw_sum_position(args, index);
	unsigned n = cw_sum_in_word(args, at), size = cw_sum_bytes(args->dtype);

	cw_sum_add_word(sum, load_word(args, at, n * size), at, args->dtype, n);
}

static __device__ inline void scan_any(const struct cw_summary_args *args,
				       struct cw_summary_sum *sum)
{
	unsigned per_word = 8 / cw_sum_bytes(args->dtype);
	uint64_t words = cw_sum_chosen(args);

	if (words && cw_sum_in_word(args, cw_sum_position(args, words - 1)) < per_word) {
		words--;
		if (ctaid_get() == 0 && tid_get() == 0)
			scan_tail(args, words, sum);
	}
	switch (args->dtype) {
#define CASE(type)                                                                                 \
	case type:                                                                                 \
		scan(args, type, words, sum);                                                             \
		break;
		CASE(CW_SUM_INT8)
		CASE(CW_SUM_UINT8)
		CASE(CW_SUM_INT32)
		CASE(CW_SUM_UINT32)
		CASE(CW_SUM_INT64)
		CASE(CW_SUM_UINT64)
		CASE(CW_SUM_FP16)
		CASE(CW_SUM_FP32)
		CASE(CW_SUM_FP64)
		CASE(CW_SUM_BF16)
		CASE(CW_SUM_E4M3)
		CASE(CW_SUM_E5M2)
#undef CASE
	}
}

static __device__ inline void write_out(uint64_t address, const struct cw_rec_summary *s)
{
	volatile uint64_t *to = (volatile uint64_t *)address;
	const uint64_t *from = (const uint64_t *)s;

	to[0] = 0;
	fence_system();
	for (unsigned i = 1; i < sizeof(*s) / 8; i++)
		to[i] = from[i];
	fence_system();
	to[0] = s->publish;
}

/*
 * Writes the statistics for the program in stream order. The program reads them later on the same
 * stream.
 */
static __device__ inline void finish(const struct cw_summary_args *args,
				   const struct cw_summary_sum *sum)
{
	cw_sum_finish(sum, args->dtype, square_root(cw_sum_squares(sum, args->dtype)),
		    (struct cw_sum_tensor_stats *)args->tensor_stats);
}

static __device__ inline void conclude(const struct cw_summary_args *args,
				       const struct cw_summary_sum *sum, uint64_t begin_ns)
{
	uint64_t took = device_clock() - begin_ns;
	struct cw_rec_summary s = {};

	s.publish = args->publish;
	s.op_index = args->op_index;
	s.seq = args->seq;
	s.comm = args->comm;
	s.comm_generation = args->comm_generation;
	s.kind = args->kind;
	s.dtype = args->dtype;
	s.is_output = args->is_output;
	s.stride_log2_plus_1 = args->stride_log2_plus_1;
	s.step_plus_1 = args->step_plus_1;
	s.device_ns = took < 0xffffffffu ? (uint32_t)took : 0xffffffffu;
	s.elements = sum->elements;
	s.offered = args->offered;
	s.nans = sum->nans;
	s.infs = sum->infs;
	s.zeros = sum->zeros;
	s.abs_max = cw_sum_of_magnitude(sum->most, args->dtype);
	s.abs_min_nonzero = cw_sum_of_magnitude(sum->least, args->dtype);
	s.mean = cw_sum_mean(sum);
	s.l2 = square_root(cw_sum_squares(sum, args->dtype));
	s.checksum = sum->checksum;
	s.at_limit = cw_sum_share(sum->at_limit, sum->elements);
	s.denormal = cw_sum_share(sum->denormals, sum->elements);
	if (args->first_out && (s.nans || s.infs) && !exchange(&has_first, 1))
		write_out(args->first_out, &s);
	write_out(args->out, &s);
}

static __device__ inline void join(struct partial *to, const struct partial *from)
{
	cw_sum_join(&to->sum, &from->sum);
	if (from->begin_ns < to->begin_ns)
		to->begin_ns = from->begin_ns;
}

/* Adds up the sums of a block's threads. Afterwards thread 0 has the total. */
static __device__ inline void join_block(struct partial *shared, const struct partial *mine)
{
	shared[tid_get()] = *mine;
	wait_for_block();
#pragma unroll 1
	for (unsigned half = CW_SUM_THREADS / 2; half; half /= 2) {
		if (tid_get() < half)
			join(&shared[tid_get()], &shared[tid_get() + half]);
		wait_for_block();
	}
}

/* Reads another block's sum from memory. volatile forbids the use of older, cached values. */
static __device__ inline void read_partial(struct partial *to, const volatile struct partial *from)
{
	to->sum.elements = from->sum.elements;
	to->sum.nans = from->sum.nans;
	to->sum.infs = from->sum.infs;
	to->sum.negative_infs = from->sum.negative_infs;
	to->sum.zeros = from->sum.zeros;
	to->sum.checksum = from->sum.checksum;
	to->sum.at_limit = from->sum.at_limit;
	to->sum.denormals = from->sum.denormals;
	to->sum.most = from->sum.most;
	to->sum.least = from->sum.least;
	to->sum.total = from->sum.total;
	to->sum.squares = from->sum.squares;
	to->begin_ns = from->begin_ns;
}

KERNEL __launch_bounds__(CW_SUM_THREADS) void cw_summary(struct cw_summary_args args)
{
	static __shared__ struct partial shared[CW_SUM_THREADS];
	static __shared__ uint32_t is_last;
	unsigned blocks = nctaid_get();
	struct partial mine = {}, all = {}, other;

	all.begin_ns = mine.begin_ns = device_clock();
	scan_any(&args, &mine.sum);
	join_block(shared, &mine);
	if (blocks > 1) {
		if (tid_get() == 0) {
			scratch[args.slot][ctaid_get()] = shared[0];
			fence_device();
			is_last = count_up(&finished[args.slot], blocks - 1) == blocks - 1;
			fence_device();
		}
		wait_for_block();
		if (!is_last)
			return;
#pragma unroll 1
		for (unsigned i = tid_get(); i < blocks; i += CW_SUM_THREADS) {
			read_partial(&other, &scratch[args.slot][i]);
			join(&all, &other);
		}
		join_block(shared, &all);
	}
	if (tid_get() != 0)
		return;
	if (args.tensor_stats)
		finish(&args, &shared[0].sum);
	else
		conclude(&args, &shared[0].sum, shared[0].begin_ns);
}

/* Stores the time when the stream reached this kernel. One thread runs it. */
KERNEL void cw_stamp(uint64_t where)
{
	*(volatile uint64_t *)where = device_clock();
	fence_system();
}
