/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs of runs with a difference drawn into the second, in memory: we draw gradients,
 * reduce them, sum them up with the summaries' reference, and compare the baselines. The
 * code that draws and changes knows neither the pairing of ops nor the tolerances. In
 * "worlds" the second has the same batch on twice as many ranks.
 *
 *	baseline_draws [--draws N] [--seed S] [--change NAME]
 *
 * One line for each kind of difference; exit status 1 where one is below the figure in
 * docs/numerics.md.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"
#include "numerics/compare/baseline.h"
#include "numerics/compare/group_run.h"
#include "record/summary.h"

#define RANKS 4u
#define WORLD (2 * RANKS)
#define STEPS_MIN 8u
#define STEPS_SPAN 12u
#define BUCKETS 4u
#define ELEMENTS_MAX 512u
#define OPS_MAX ((STEPS_MIN + STEPS_SPAN) * BUCKETS + 1)
#define NOBODY UINT32_MAX

enum change {
	SAME,
	ROUNDING,
	WORLDS,
	SEED,
	SCALE,
	WORLDS_SCALE,
	MORE,
	LESS,
	TYPE,
	WARM_UP,
	CHANGES
};

static const char *const names[CHANGES] = {
	"same",         "rounding", "worlds", "seed", "scale",
	"worlds-scale", "more",     "less",   "type", "warm-up"
};

/* Properties of a run; the second equals the first except for the change. */
struct run {
	uint64_t seed;
	uint32_t ranks, parts_a_rank; /* of the batch; a rank feeds their mean */
	bool is_scattered;            /* reduce_scatter, each rank gets its part */
	uint32_t first_step, steps;
	unsigned dtype;
	bool has_marks, is_reversed; /* sums are taken in the other order */
	uint32_t sizes[BUCKETS];
	double noise, sparse;              /* relative, of the input; share of zeros */
	uint32_t scaled_rank, scaled_from; /* op */
	double scale;
	uint32_t more_at, less_at, type_at; /* op, from 0 */
	struct cw_baseline_row rows[WORLD][OPS_MAX];
	uint32_t n_rows;
};

static struct run first, second;
static uint64_t state;

static uint64_t mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static uint64_t bits(void)
{
	state += UINT64_C(0x9e3779b97f4a7c15);
	return mix(state);
}

static double uniform_of(uint64_t b)
{
	return (double)(b >> 11) * 0x1p-53;
}

static double uniform(void)
{
	return uniform_of(bits());
}

/* To the nearest number of that many bits behind the point of its mantissa. */
static double rounded(double v, unsigned dtype)
{
	int exponent, digits = dtype == CW_DTYPE_FP16 ? 11 : dtype == CW_DTYPE_BF16 ? 8 : 24;
	double m;

	if (v == 0)
		return 0;
	m = frexp(v, &exponent);
	if (dtype == CW_DTYPE_FP16 && exponent < -13)
		digits += exponent + 13; /* denormal */
	return ldexp(nearbyint(ldexp(m, digits)), exponent - digits);
}

/* Stores the bits of that type; v is rounded already, and in its range. */
static void store(void *data, uint32_t i, double v, unsigned dtype)
{
	float single = (float)v;
	uint32_t b;
	int exponent;

	memcpy(&b, &single, sizeof(b));
	if (dtype == CW_DTYPE_FP32) {
		((float *)data)[i] = single;
	} else if (dtype == CW_DTYPE_BF16) {
		((uint16_t *)data)[i] = (uint16_t)(b >> 16);
	} else {
		uint16_t sign = (uint16_t)(b >> 16 & 0x8000), h;

		(void)frexp(v, &exponent);
		if (v == 0 || exponent < -13)
			h = (uint16_t)ldexp(fabs(v), 24);
		else
			h = (uint16_t)(((exponent + 13) << 10) + ldexp(fabs(v), 11 - exponent));
		((uint16_t *)data)[i] = sign | h;
	}
}

static void sample(const double *values, uint32_t n, unsigned dtype, struct cw_baseline_row *row,
		   enum cw_baseline_side side)
{
	static union {
		uint16_t halves[ELEMENTS_MAX];
		float singles[ELEMENTS_MAX];
	} data;
	struct cw_rec_summary s = { 0 };
	struct cw_summary_args args = { .data = (uint64_t)(uintptr_t)&data,
					.elements = n,
					.dtype = (uint8_t)dtype,
					.stride_words = CW_SUM_CHUNK_WORDS };

	for (uint32_t i = 0; i < n; i++)
		store(&data, i, values[i], dtype);
	cw_summary_compute(&args, &s);
	row->unit |= side == CW_BASELINE_IN ? CW_BASELINE_HAS_IN : CW_BASELINE_HAS_OUT;
	row->nonfinite[side] = (uint8_t)(s.nans + s.infs > 255 ? 255 : s.nans + s.infs);
	cw_baseline_row_set_value(row, side, CW_BASELINE_ABSMAX, s.abs_max);
	cw_baseline_row_set_value(row, side, CW_BASELINE_MEAN, s.mean);
	cw_baseline_row_set_value(row, side, CW_BASELINE_L2, s.l2);
}

/* The contribution of that part of the batch to a bucket's element. */
static double gradient(const struct run *r, uint64_t at, double size)
{
	uint64_t b = mix(r->seed ^ mix(at));
	double v = size * (uniform_of(b) + uniform_of(mix(b + 1)) + uniform_of(mix(b + 2)) - 1.5);

	return uniform_of(mix(b + 3)) < r->sparse ? 0 : v;
}

static void write_row(struct run *r, uint32_t rank, uint32_t step, unsigned dtype, const double *in,
		      const double *out, uint32_t n)
{
	uint32_t part = r->is_scattered ? (n + r->ranks - 1) / r->ranks : n, op = r->n_rows;
	struct cw_baseline_row *row = &r->rows[rank][op];

	*row = (struct cw_baseline_row){ .unit = CW_BASELINE_UNIT_ROW,
					 .kind = r->is_scattered ? CW_OP_REDUCE_SCATTER
								 : CW_OP_ALL_REDUCE,
					 .dtype = (uint8_t)dtype,
					 .redop = CW_REDOP_AVG,
					 .seq = op + 1,
					 .step_plus_1 = r->has_marks ? step + 1 : 0,
					 .root_or_peer = -1 };
	cw_baseline_row_set_count(row, part);
	sample(in, n, dtype, row, CW_BASELINE_IN);
	sample(r->is_scattered ? out + (size_t)rank * part : out, part, dtype, row,
	       CW_BASELINE_OUT);
}

/* One bucket of one step on all ranks; stream tells ops apart that are of one place. */
static void reduce(struct run *r, uint32_t step, uint32_t bucket, uint32_t stream)
{
	/* Behind the last element there are zeros, and the last parts have some of them. */
	static double in[WORLD][ELEMENTS_MAX], out[2 * ELEMENTS_MAX];
	uint32_t op = r->n_rows, n = r->sizes[bucket];
	unsigned dtype = op == r->type_at
				 ? (r->dtype == CW_DTYPE_FP32 ? CW_DTYPE_BF16 : CW_DTYPE_FP32)
				 : r->dtype;
	double size = 0.01 * (1 + bucket) * (1 + uniform_of(mix(r->seed + step)));

	for (uint32_t k = 0; k < r->ranks; k++)
		for (uint32_t i = 0; i < n; i++) {
			double v = 0;

			for (uint32_t p = 0; p < r->parts_a_rank; p++) {
				uint64_t place = (((uint64_t)step * 8 + bucket) * 4 + stream) * 8;
				uint32_t part = k * r->parts_a_rank + p;
				double own = gradient(r, (place + part) * 1024 + i, size);

				if (part == r->scaled_rank && op >= r->scaled_from)
					own *= r->scale;
				v += own / r->parts_a_rank;
			}
			in[k][i] = rounded(v * (1 + r->noise * (2 * uniform() - 1)), dtype);
		}
	memset(out, 0, sizeof(out));
	for (uint32_t i = 0; i < n; i++) {
		float sum = 0;

		for (uint32_t k = 0; k < r->ranks; k++)
			sum += (float)in[r->is_reversed ? r->ranks - 1 - k : k][i];
		out[i] = rounded((double)sum / r->ranks, dtype);
	}
	for (uint32_t k = 0; k < r->ranks; k++)
		write_row(r, k, step, dtype, in[k], out, n);
	r->n_rows++;
}

static void train(struct run *r)
{
	uint32_t place = 0;

	r->n_rows = 0;
	for (uint32_t step = r->first_step; step < r->steps; step++)
		for (uint32_t b = 0; b < BUCKETS; b++, place++) {
			if (place == r->more_at)
				reduce(r, step, b, 1);
			if (place != r->less_at)
				reduce(r, step, b, 0);
		}
}

static bool is_of_worlds(enum change change)
{
	return change == WORLDS || change == WORLDS_SCALE;
}

/* A batch of as many parts as the larger world has ranks. */
static void draw_batch(void)
{
	first.parts_a_rank = WORLD / RANKS;
	first.is_scattered = bits() % 2;
	for (uint32_t b = 0; b < BUCKETS && first.is_scattered; b++)
		first.sizes[b] -= (uint32_t)(bits() % WORLD);
}

static void draw(enum change change)
{
	static const unsigned dtypes[] = { CW_DTYPE_FP16, CW_DTYPE_BF16, CW_DTYPE_FP32 };
	bool is_alike = bits() % 2;
	uint32_t ops;

	first = (struct run){ .seed = bits(),
			      .ranks = RANKS,
			      .parts_a_rank = 1,
			      .steps = STEPS_MIN + (uint32_t)(bits() % STEPS_SPAN),
			      .dtype = dtypes[bits() % 3],
			      .has_marks = bits() % 2,
			      .sparse = bits() % 2 ? 0.9 * uniform() : 0,
			      .scaled_rank = NOBODY,
			      .more_at = NOBODY,
			      .less_at = NOBODY,
			      .type_at = NOBODY };
	for (uint32_t b = 0; b < BUCKETS; b++)
		first.sizes[b] = is_alike ? 256 : 128 * (b + 1);
	ops = first.steps * BUCKETS;
	if (is_of_worlds(change))
		draw_batch();
	second = first;
	if (is_of_worlds(change)) {
		second.ranks = WORLD;
		second.parts_a_rank = 1;
	}
	if (change == ROUNDING) {
		second.is_reversed = true;
		second.noise = first.dtype == CW_DTYPE_FP32 ? 0x1p-24 : 1e-6;
	} else if (change == SEED) {
		second.seed = bits();
	} else if (change == SCALE || change == WORLDS_SCALE) {
		/* From three times what the type's elements may differ by. */
		double least = first.dtype == CW_DTYPE_BF16   ? 0.05
			       : first.dtype == CW_DTYPE_FP16 ? 6e-3
							      : 4e-6;

		if (change == WORLDS_SCALE)
			least *= WORLD; /* only the sum over all is seen */
		second.scaled_rank = bits() % second.ranks;
		second.scaled_from = (uint32_t)(bits() % ops);
		second.scale = 1 + least * pow(1 / least, uniform());
	} else if (change == MORE) {
		second.more_at = (uint32_t)(bits() % ops);
	} else if (change == LESS) {
		second.less_at = (uint32_t)(bits() % ops);
	} else if (change == TYPE) {
		second.type_at = (uint32_t)(bits() % ops);
	} else if (change == WARM_UP) {
		second.first_step = 1 + (uint32_t)(bits() % (first.steps / 2));
	}
}

typedef int (*take_fn)(struct cw_baseline_group_run *g, const struct cw_baseline_run *rank);

static int each_rank(struct cw_baseline_group_run *g, const struct run *r, take_fn take)
{
	const struct cw_baseline_comm comm = { .id = 1, .nranks = r->ranks, .name = "dp" };
	int result = 0;

	for (uint32_t k = 0; k < r->ranks && result == 0; k++) {
		struct cw_baseline_run run = {
			.rows = r->rows[k], .n_rows = r->n_rows, .comms = &comm, .n_comms = 1
		};

		result = take(g, &run);
	}
	return result;
}

static int compare_worlds(struct cw_baseline_first *ret, struct cw_baseline_said *sum)
{
	struct cw_baseline_group_run *a = cw_baseline_group_run_new();
	struct cw_baseline_group_run *b = cw_baseline_group_run_new();
	struct cw_baseline_options options;
	struct cw_baseline_run x, y;
	uint64_t omitted;
	int r = -1;

	cw_baseline_options_init(&options);
	options.are_groups = true;
	if (a && b && each_rank(a, &first, cw_baseline_group_run_meet) == 0 &&
	    each_rank(b, &second, cw_baseline_group_run_meet) == 0 &&
	    cw_baseline_group_runs_choose(a, b) == 0 &&
	    each_rank(a, &first, cw_baseline_group_run_add) == 0 &&
	    each_rank(b, &second, cw_baseline_group_run_add) == 0 &&
	    cw_baseline_group_run_finish(a, &x, &omitted) == 0 &&
	    cw_baseline_group_run_finish(b, &y, &omitted) == 0)
		r = cw_baseline_compare(&x, &y, &options, sum);
	ret->difference = sum->first;
	(void)cw_baseline_group_run_free(a);
	(void)cw_baseline_group_run_free(b);
	return r;
}

/* The first difference over the job. */
static int compare(struct cw_baseline_first *ret, struct cw_baseline_said *sum)
{
	static const struct cw_baseline_comm comm = { .id = 1, .nranks = RANKS, .name = "dp" };
	struct cw_baseline_options options;

	cw_baseline_options_init(&options);
	*sum = (struct cw_baseline_said){ .n_a = 0 };
	ret->difference.what = CW_BASELINE_EQUAL;
	for (uint32_t k = 0; k < RANKS; k++) {
		struct cw_baseline_run a = { first.rows[k], first.n_rows, &comm, 1, NULL, 0,
					     NULL,          NULL };
		struct cw_baseline_run b = { second.rows[k], second.n_rows, &comm, 1, NULL, 0,
					     NULL,           NULL };
		struct cw_baseline_first own = { .rank = (int32_t)k, .comm = 1 };
		struct cw_baseline_said said;

		if (cw_baseline_compare(&a, &b, &options, &said) < 0)
			return -1;
		sum->n_checked += said.n_checked;
		sum->n_skipped_a += said.n_skipped_a;
		own.difference = said.first;
		if (said.first.what == CW_BASELINE_EQUAL)
			continue;
		if (said.first.row_a != CW_BASELINE_NONE)
			own.a = first.rows[k][said.first.row_a];
		if (said.first.row_b != CW_BASELINE_NONE)
			own.b = second.rows[k][said.first.row_b];
		if (ret->difference.what == CW_BASELINE_EQUAL || cw_baseline_is_before(&own, ret))
			*ret = own;
	}
	return 0;
}

/*
 * An op more or less among ops that are called alike is found by its numbers: the first that
 * differs is the same.
 */
static bool is_right(enum change change, const struct cw_baseline_first *f,
		     const struct cw_baseline_said *sum)
{
	const struct cw_baseline_difference *d = &f->difference;

	switch (change) {
	case WORLDS:
		return d->what == CW_BASELINE_EQUAL && sum->n_checked == first.n_rows;
	case WORLDS_SCALE:
		return d->what == CW_BASELINE_TENSOR_STATS && d->row_b == second.scaled_from;
	case SAME:
	case ROUNDING:
		return d->what == CW_BASELINE_EQUAL &&
		       sum->n_checked == (uint64_t)RANKS * first.n_rows;
	case WARM_UP:
		return d->what == CW_BASELINE_EQUAL &&
		       sum->n_checked == (uint64_t)RANKS * second.n_rows &&
		       sum->n_skipped_a == (uint64_t)RANKS * (first.n_rows - second.n_rows);
	case SEED:
		return d->what == CW_BASELINE_TENSOR_STATS && d->row_a == 0 && d->row_b == 0;
	case SCALE:
		return d->what == CW_BASELINE_TENSOR_STATS && d->side == CW_BASELINE_IN &&
		       f->rank == (int32_t)second.scaled_rank && d->row_b == second.scaled_from;
	case MORE:
		return (d->what == CW_BASELINE_EXTRA || d->what == CW_BASELINE_TENSOR_STATS) &&
		       d->row_b == second.more_at;
	case LESS:
		return (d->what == CW_BASELINE_MISSING || d->what == CW_BASELINE_TENSOR_STATS) &&
		       d->row_a == second.less_at;
	case TYPE:
	default:
		return d->what == CW_BASELINE_DTYPE && d->row_b == second.type_at;
	}
}

static int usage(void)
{
	fprintf(stderr,
		"usage: baseline_draws [--draws N] [--seed SEED] [--change CHANGE]\n"
		"N (1000) pairs of runs with each change drawn into one, or this change alone, and "
		"what is found to differ\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *only = NULL;
	uint32_t n = 1000;
	bool all_ok = true;

	for (int i = 1; i < argc; i += 2) {
		if (i + 1 < argc && strcmp(argv[i], "--draws") == 0)
			n = (uint32_t)strtoul(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0)
			state = strtoull(argv[i + 1], NULL, 10);
		else if (i + 1 < argc && strcmp(argv[i], "--change") == 0)
			only = argv[i + 1];
		else
			return usage();
	}
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (enum change change = 0; change < CHANGES; change++) {
		uint32_t n_right = 0;

		if (only && strcmp(only, names[change]) != 0)
			continue;
		for (uint32_t i = 0; i < n; i++) {
			struct cw_baseline_first f = { .rank = 0 };
			struct cw_baseline_said sum;
			uint64_t drawn_from = state;

			draw(change);
			train(&first);
			train(&second);
			if ((is_of_worlds(change) ? compare_worlds : compare)(&f, &sum) < 0)
				return 1;
			if (is_right(change, &f, &sum)) {
				n_right++;
				continue;
			}
			printf("  %s, seed %llu: %s, rank %d, rows %d and %d\n", names[change],
			       (unsigned long long)drawn_from,
			       cw_baseline_what_name(f.difference.what), f.rank,
			       (int)f.difference.row_a, (int)f.difference.row_b);
		}
		printf("%-12s %u of %u right\n", names[change], n_right, n);
		/*
		 * The check must never call equal runs different, and must seldom miss the others.
		 */
		all_ok = all_ok && (change <= WORLDS ? n_right == n : n_right * 100.0 >= n * 99.0);
	}
	return all_ok ? 0 : 1;
}
