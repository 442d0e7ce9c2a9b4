/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor summaries on the GPU, and time stamps. Compiled by nvcc for every architecture it offers,
 * or by clang to PTX without any of NVIDIA's headers: so what differs between the two is written as
 * PTX, and nothing is included that they do not have themselves.
 *
 * A thread adds up words, a block its threads, and the block that finishes last the blocks; that
 * one writes the result into host memory and publishes it. Blocks of one launch share a scratch
 * area; the host gives no area to a second launch before the first has published.
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

#define THREADS 512 /* a power of two */
#define BLOCKS_MAX 128

struct partial {
	struct cw_summary_sum sum;
	uint64_t begin_ns;
};

static __device__ struct partial scratch[CW_REC_SUMMARY_RING][BLOCKS_MAX];
static __device__ uint32_t finished[CW_REC_SUMMARY_RING];
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
 * A thread's share of the words that are full. dtype is a constant where this is inlined: no branch
 * on it is left.
 */
static __device__ __attribute__((always_inline)) inline void
scan(const struct cw_summary_args *args, unsigned dtype, uint64_t words, struct cw_summary_sum *sum)
{
	uint64_t step = (uint64_t)nctaid_get() * THREADS;
	unsigned per_word = 8 / cw_sum_bytes(dtype);

#pragma unroll 1
	for (uint64_t i = (uint64_t)ctaid_get() * THREADS + tid_get(); i < words; i += step) {
		uint64_t at = cw_sum_position(args, i);

		cw_sum_add_word(sum, load_word(args, at, 8), at, dtype, per_word);
	}
}

/* A last word that is not full, if it is among the chosen. */
static __device__ inline void scan_tail(const struct cw_summary_args *args, uint64_t index,
					struct cw_summary_sum *sum)
{
	uint64_t at = cw_sum_position(args, index);
	unsigned n = cw_sum_in_word(args, at), size = cw_sum_bytes(args->dtype);
	uint64_t word = load_word(args, at, n * size);

	sum->checksum += cw_sum_mix(word, at);
	sum->elements += n;
#pragma unroll 1
	for (unsigned i = 0; i < n; i++)
		cw_sum_add_number(sum, word >> (i * size * 8), args->dtype);
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
	s.abs_max = sum->abs_max;
	s.abs_min_nonzero = sum->abs_min;
	s.mean = cw_sum_mean(sum);
	s.l2 = square_root(cw_sum_squares(sum));
	s.checksum = sum->checksum;
	s.at_limit = cw_sum_share(sum->at_limit, sum->elements);
	s.denormal = cw_sum_share(sum->denormals, sum->elements);
	if (args->first_out && (s.nans || s.infs) && !exchange(&has_first, 1))
		write_out(args->first_out, &s);
	write_out(args->out, &s);
}

/* Adds up what the threads of a block hold; thread 0 has the sum afterwards. */
static __device__ inline void join_block(struct cw_summary_sum *shared,
					 const struct cw_summary_sum *mine)
{
	shared[tid_get()] = *mine;
	wait_for_block();
#pragma unroll 1
	for (unsigned half = THREADS / 2; half; half /= 2) {
		if (tid_get() < half)
			cw_sum_join(&shared[tid_get()], &shared[tid_get() + half]);
		wait_for_block();
	}
}

KERNEL __launch_bounds__(THREADS) void cw_summary(struct cw_summary_args args)
{
	static __shared__ struct cw_summary_sum shared[THREADS];
	static __shared__ uint32_t is_last;
	struct partial *mine = &scratch[args.slot][ctaid_get()];
	struct cw_summary_sum sum = {};
	uint64_t begin_ns = device_clock();
	unsigned blocks = nctaid_get();

	scan_any(&args, &sum);
	join_block(shared, &sum);
	if (tid_get() == 0) {
		mine->sum = shared[0];
		mine->begin_ns = begin_ns;
		fence_device();
		is_last = count_up(&finished[args.slot], blocks - 1) == blocks - 1;
		fence_device();
	}
	wait_for_block();
	if (!is_last || tid_get() != 0)
		return;
	sum = shared[0];
#pragma unroll 1
	for (unsigned i = 0; i < blocks; i++) {
		const volatile struct partial *p = &scratch[args.slot][i];
		struct cw_summary_sum other;

		if (i == ctaid_get())
			continue;
		other.elements = p->sum.elements;
		other.nans = p->sum.nans;
		other.infs = p->sum.infs;
		other.zeros = p->sum.zeros;
		other.checksum = p->sum.checksum;
		other.at_limit = p->sum.at_limit;
		other.denormals = p->sum.denormals;
		other.abs_max = p->sum.abs_max;
		other.abs_min = p->sum.abs_min;
		other.total = p->sum.total;
		other.squares = p->sum.squares;
		cw_sum_join(&sum, &other);
		if (p->begin_ns < begin_ns)
			begin_ns = p->begin_ns;
	}
	conclude(&args, &sum, begin_ns);
}

/* One thread: when the stream came here. */
KERNEL void cw_stamp(uint64_t where)
{
	*(volatile uint64_t *)where = device_clock();
	fence_system();
}
