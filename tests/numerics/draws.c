/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training runs with a fault drawn into each, in memory: we draw gradients, reduce them, sum them
 * up with the summaries' reference, and judge the job's numbers. The code that draws, reduces and
 * injects knows neither the checksum nor the judge: faults are bits in buffers.
 *
 *	draws [--draws N] [--seed S]
 *
 * One line for each kind of fault; exit status 1 where one is below the figure in docs/numerics.md.
 * We promise nothing for bits that flip in inputs: a line has the noticed share, bit by bit. Half
 * of the clean runs have sparse gradients, half dropout, half two kinds of devices, which round
 * their gradients each in its way.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cuda/summary_budget.h"
#include "model/op.h"
#include "numerics/judge/numerics.h"
#include "record/summary.h"

#define RANKS 4u
#define BUCKETS 4u
#define STEPS 24u
#define STEPS_MAX 64u
#define ELEMENTS 4096u
#define SAMPLES (RANKS * BUCKETS * STEPS_MAX * 2)
#define GROWTH_FROM 2u

/* A bit of an input may flip before it is looked at, or behind that, and then be summed. */
enum fault {
	CLEAN,
	NAN_INPUT,
	INF_INPUT,
	GROWTH,
	FLIP,
	FLIP_SAMPLED,
	FLIP_INPUT,
	FLIP_SUMMED,
	FAULTS
};

static const char *const names[FAULTS] = { "clean", "nan-input",    "inf-input",  "growth",
					   "flip",  "flip-sampled", "flip-input", "flip-summed" };

#define BITS 16u

struct draw {
	enum fault fault;
	uint32_t rank, bucket, step, element, bit, log2;
	double growth, scale, sparse, dropout;
	bool has_two_kinds; /* of devices */
	bool is_bad;        /* the step that is being made has an infinity */
};

static uint64_t state;
static struct cw_numerics_sample samples[SAMPLES];
static uint32_t n_samples, orders[RANKS];
static uint16_t inputs[RANKS][ELEMENTS], outputs[RANKS][ELEMENTS];
static float values[RANKS][ELEMENTS];

static uint64_t bits(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state * UINT64_C(0x2545f4914f6cdd1d);
}

static double uniform(void)
{
	return (double)(bits() >> 11) * 0x1p-53;
}

/* Nearly normal: the sum of uniform ones. */
static double normal(void)
{
	return uniform() + uniform() + uniform() + uniform() - 2;
}

/* IEEE half, to the nearest even. */
static uint16_t half(float value)
{
	double a = fabs((double)value), scaled;
	uint16_t sign = signbit(value) ? 0x8000 : 0;
	int exponent;

	if (isnan(value))
		return 0x7e00;
	if (a >= 65520)
		return sign | 0x7c00;
	if (a < 0x1p-14)
		return sign | (uint16_t)nearbyint(a * 0x1p24);
	(void)frexp(a, &exponent);
	scaled = nearbyint(ldexp(a, 11 - exponent)); /* 1024 to 2048: that carries by itself */
	return sign | (uint16_t)(((exponent + 14) << 10) + (int)scaled - 1024);
}

static float value_of(uint16_t h)
{
	int exponent = h >> 10 & 0x1f;
	double a = ldexp((h & 0x3ff) + (exponent ? 1024 : 0), (exponent ? exponent : 1) - 25);

	if (exponent == 0x1f)
		a = h & 0x3ff ? NAN : INFINITY;
	return (float)(h & 0x8000 ? -a : a);
}

static bool is_none(uint16_t h)
{
	return (h & 0x7c00) == 0x7c00;
}

static void sample(const struct draw *d, uint32_t rank, uint32_t step, uint32_t bucket,
		   bool is_output, const uint16_t *data)
{
	uint64_t seq = step * BUCKETS + bucket + 1;
	struct cw_rec_summary s = { 0 };
	struct cw_summary_args args = { .data = (uint64_t)(uintptr_t)data,
					.elements = ELEMENTS,
					.dtype = CW_SUM_FP16 };

	cw_summary_budget_place((seq * 2 + is_output) * UINT64_C(0x9e3779b97f4a7c15),
				ELEMENTS * sizeof(*data), ELEMENTS * sizeof(*data) >> d->log2,
				&args);
	cw_summary_compute(&args, &s);
	samples[n_samples++] = (struct cw_numerics_sample){
		.rank = rank,
		.order = ++orders[rank],
		.seq = seq,
		.step = step,
		.elements = s.elements,
		.offered = ELEMENTS,
		.nans = s.nans,
		.infs = s.infs,
		.zeros = s.zeros,
		.abs_max = s.abs_max,
		.abs_min = s.abs_min_nonzero,
		.mean = s.mean,
		.l2 = s.l2,
		.checksum = s.checksum,
		.stride = 1u << (args.stride_log2_plus_1 - 1),
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_FP16,
		.redop = d->fault == GROWTH ? CW_REDOP_SUM : CW_REDOP_AVG,
		.is_output = is_output,
	};
}

static double size_of(const struct draw *d, uint32_t step, uint32_t bucket)
{
	if (d->fault == GROWTH && bucket == d->bucket)
		return 60 * pow(d->growth, step > GROWTH_FROM ? step - GROWTH_FROM : 0) *
		       (1 + 0.01 * uniform());
	return d->scale * (1 + bucket * 0.2) * (0.9 + 0.2 * uniform());
}

/* A bucket of a step: its inputs, its outputs, and the samples at both. */
static void reduce(struct draw *d, uint32_t step, uint32_t bucket, bool was_bad)
{
	double size = size_of(d, step, bucket);
	bool strikes = step == d->step && bucket == d->bucket;
	uint32_t parts = d->fault == GROWTH ? 1 : RANKS;

	for (uint32_t r = 0; r < RANKS; r++) {
		for (uint32_t i = 0; i < ELEMENTS; i++) {
			float v = uniform() < d->sparse ? 0 : (float)(normal() * size);

			/* Dropout scales the remaining values up. */
			if (d->dropout > 0)
				v = uniform() < d->dropout ? 0 : v / (float)(1 - d->dropout);
			if (d->has_two_kinds && r % 2)
				v *= 1 + 0x1p-10F * (float)normal();
			inputs[r][i] = was_bad ? 0x7e00 : half(v);
			values[r][i] = is_none(inputs[r][i])
					       ? (was_bad ? NAN : copysignf(INFINITY, v))
					       : v;
		}
	}
	if (strikes && (d->fault == NAN_INPUT || d->fault == INF_INPUT)) {
		inputs[d->rank][d->element] = d->fault == NAN_INPUT ? 0x7d01 : 0xfc00;
		values[d->rank][d->element] = d->fault == NAN_INPUT ? NAN : -INFINITY;
	}
	if (strikes && d->fault == FLIP_INPUT)
		inputs[d->rank][d->element] ^= (uint16_t)(1u << d->bit);
	if (strikes && (d->fault == FLIP_INPUT || d->fault == FLIP_SUMMED))
		values[d->rank][d->element] =
			value_of(d->fault == FLIP_INPUT
					 ? inputs[d->rank][d->element]
					 : (uint16_t)(inputs[d->rank][d->element] ^ 1u << d->bit));
	for (uint32_t i = 0; i < ELEMENTS; i++) {
		float sum = 0;

		for (uint32_t r = 0; r < RANKS; r++)
			sum += values[r][i];
		outputs[0][i] = half(sum / (float)parts);
		d->is_bad = d->is_bad || is_none(outputs[0][i]);
	}
	for (uint32_t r = 1; r < RANKS; r++)
		memcpy(outputs[r], outputs[0], sizeof(outputs[r]));
	if (strikes && (d->fault == FLIP || d->fault == FLIP_SAMPLED))
		outputs[d->rank][d->element] ^= (uint16_t)(1u << d->bit);
	for (uint32_t r = 0; r < RANKS; r++) {
		sample(d, r, step, bucket, false, inputs[r]);
		sample(d, r, step, bucket, true, outputs[r]);
	}
}

/* Mixed precision: the scale grows, an infinity leaves the step out and halves it. */
static uint32_t train(struct draw *d)
{
	bool is_lost = false;
	uint32_t step = 0, since = 0;

	n_samples = 0;
	memset(orders, 0, sizeof(orders));
	for (; step < STEPS || (d->fault == CLEAN && d->is_bad && step < STEPS_MAX); step++) {
		d->is_bad = false;
		for (uint32_t b = 0; b < BUCKETS; b++)
			reduce(d, step, b, is_lost);
		if (d->fault == GROWTH && d->is_bad)
			return step;
		/* A NaN in the weights stays. */
		is_lost = is_lost || (d->is_bad && d->fault != CLEAN);
		if (d->fault != CLEAN)
			continue;
		since = d->is_bad ? 0 : since + 1;
		if (d->is_bad)
			d->scale /= 2;
		else if (since % 6 == 5)
			d->scale *= 2;
	}
	return step;
}

static struct draw draw_one(enum fault fault)
{
	struct draw d = { .fault = fault,
			  .rank = bits() % RANKS,
			  .bucket = bits() % BUCKETS,
			  .step = (uint32_t)(bits() % STEPS),
			  .element = bits() % ELEMENTS,
			  .bit = bits() % BITS,
			  .growth = 1.45 + 0.4 * uniform(),
			  .scale = fault == CLEAN ? 4096 * (1 + 3 * uniform()) : 10,
			  .sparse = bits() % 2 ? 0.9 * uniform() : 0,
			  .dropout = bits() % 2 ? 0.5 * uniform() : 0,
			  .has_two_kinds = bits() % 2 };

	if (fault == GROWTH) {
		d.sparse = 0;
		d.dropout = 0;
	}
	if (fault == FLIP_SAMPLED)
		d.log2 = 1 + bits() % 3;
	return d;
}

static bool is_there(const struct draw *d, uint32_t i)
{
	return samples[i].seq == d->step * BUCKETS + d->bucket + 1;
}

/* The report names the call, with any finding. */
static bool is_noticed(const struct draw *d, const struct cw_numerics_report *said)
{
	for (uint32_t i = 0; i < said->n_firsts; i++)
		if (is_there(d, said->firsts[i].sample))
			return true;
	for (uint32_t i = 0; i < said->n_imbalances; i++)
		if (is_there(d, said->imbalances[i].sample))
			return true;
	return false;
}

/* Whether the report is right, for a run that ended at that step. */
static bool is_right(const struct draw *d, const struct cw_numerics_report *said, uint32_t end)
{
	const struct cw_numerics_first *f = &said->firsts[0];

	switch (d->fault) {
	case CLEAN:
		return !cw_numerics_is_alarming(said);
	case NAN_INPUT:
	case INF_INPUT:
		return said->n_firsts == 1 && f->origin == CW_NUMERICS_BY_RANK &&
		       is_there(d, f->sample) && samples[f->sample].rank == d->rank;
	case GROWTH:
		return said->n_firsts == 1 && said->n_headroom == 1 &&
		       samples[f->sample].seq == end * BUCKETS + d->bucket + 1 &&
		       said->headroom[0].warned_step < end;
	case FLIP_INPUT:
	case FLIP_SUMMED:
		return is_noticed(d, said);
	default:
		return said->n_divergences == 1 && is_there(d, said->divergences[0].sample) &&
		       samples[said->divergences[0].sample].rank == d->rank &&
		       said->divergences[0].n_odd == 1;
	}
}

static int try(enum fault fault, uint32_t n, bool *ret_ok)
{
	static const struct cw_numerics_comm comm = { .id = 1, .name = "dp", .nranks = RANKS };
	static const struct cw_numerics_rank ranks[RANKS] = {
		{ 0, true }, { 1, true }, { 2, true }, { 3, true }
	};
	uint32_t n_right = 0, of_bit[BITS] = { 0 }, right_of_bit[BITS] = { 0 };
	double wanted = n, spread = 0, least;
	bool is_right_now;

	if (fault == FLIP_SAMPLED)
		wanted = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct draw d = draw_one(fault);
		uint32_t end = train(&d);
		struct cw_numerics_job job = { .samples = samples,
					       .n_samples = n_samples,
					       .comms = &comm,
					       .n_comms = 1,
					       .ranks = ranks,
					       .n_ranks = RANKS };
		struct cw_numerics_report said;

		if (cw_numerics_judge(&job, &said) < 0)
			return -1;
		is_right_now = is_right(&d, &said, end);
		n_right += is_right_now;
		of_bit[d.bit]++;
		right_of_bit[d.bit] += is_right_now;
		if (fault == FLIP_SAMPLED) {
			double share = 1.0 / (1u << d.log2);

			wanted += share;
			spread += share * (1 - share);
		}
		cw_numerics_report_fini(&said);
	}
	printf("%-13s %u of %u right", names[fault], n_right, n);
	if (fault == FLIP_SAMPLED)
		printf(", share read %.1f, three sigmas %.1f", wanted, 3 * sqrt(spread));
	if (fault == FLIP_INPUT || fault == FLIP_SUMMED) {
		printf("; of bits 0 to %u:", BITS - 1);
		for (uint32_t b = 0; b < BITS; b++)
			printf(" %u/%u", right_of_bit[b], of_bit[b]);
	}
	putchar('\n');
	if (fault == FLIP_INPUT || fault == FLIP_SUMMED) {
		*ret_ok = true;
		return 0;
	}
	/* A clean run or a flip in what was read whole must never be wrong, the others seldom. */
	least = fault == CLEAN || fault == FLIP ? wanted : 0.99 * wanted;
	*ret_ok = fault == FLIP_SAMPLED ? fabs(n_right - wanted) <= 3 * sqrt(spread)
					: n_right >= least;
	return 0;
}

static int usage(void)
{
	fprintf(stderr,
		"usage: draws [--draws N] [--seed SEED]\n"
		"N (1000) training runs with each fault drawn into them, and what the judge of "
		"numbers says of each\n");
	return 2;
}

int main(int argc, char **argv)
{
	uint32_t n = 1000;
	bool all_ok = true;

	state = 1;
	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--draws") == 0)
			n = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			state = strtoull(argv[i + 1], NULL, 10) | 1;
		else
			return usage();
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0); /* a thousand draws take a quarter of an hour */
	for (unsigned f = 0; f < FAULTS; f++) {
		bool ok;

		if (try((enum fault)f, n, &ok) < 0)
			return 1;
		all_ok = all_ok && ok;
	}
	return all_ok ? 0 : 1;
}
