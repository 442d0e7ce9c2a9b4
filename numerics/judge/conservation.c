/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that a sum preserves the total of its inputs. We compare the total of all members' inputs
 * with the total of the output. For a reduce_scatter, we take the outputs of all members. Every
 * member's tensors must be completely sampled and finite. An all_gather copies, so its two totals
 * differ only by the arithmetic of the summaries.
 *
 * The bound of the difference: each of n - 1 additions of an element rounds by at most u times the
 * sum of the absolute values (u: half a unit in the last place of the type). An average or a factor
 * rounds once more. So all elements together err by at most (n + 1) u S, where S is the sum of all
 * absolute values. S is at most sqrt(N) times the norm. Below the normal numbers, a rounding error
 * is at most half the smallest number, N n times. A summary's mean is accurate to 1e-12 of sqrt(N)
 * and the norm. Integers are exact while a double holds their sum. We do not compare sums that
 * wrap.
 */
#include <math.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

#define SUMMARY_ERROR 1e-12
#define EXACT 0x1p52

struct type_error {
	double unit;     /* relative rounding error */
	double smallest; /* half the smallest number */
};

static bool error_of(unsigned dtype, struct type_error *ret)
{
	switch (dtype) {
	case CW_DTYPE_FP16:
		*ret = (struct type_error){ 0x1p-11, 0x1p-25 };
		return true;
	case CW_DTYPE_BF16:
		*ret = (struct type_error){ 0x1p-8, 0x1p-134 };
		return true;
	case CW_DTYPE_FP32:
		*ret = (struct type_error){ 0x1p-24, 0x1p-150 };
		return true;
	case CW_DTYPE_FP64:
		*ret = (struct type_error){ 0x1p-53, 0 };
		return true;
	case CW_DTYPE_FP8_E5M2:
		*ret = (struct type_error){ 0x1p-3, 0x1p-17 };
		return true;
	case CW_DTYPE_FP8_E4M3: /* the type saturates, so a sum does not preserve the total */
	default:
		return false;
	}
}

double numerics_unit(unsigned dtype)
{
	struct type_error error;

	return error_of(dtype, &error) ? error.unit : 0;
}

static bool is_integer(unsigned dtype)
{
	return dtype <= CW_DTYPE_UINT64;
}

/* Returns the limit of the type. A sum of integers beyond it may have wrapped. */
static double wraps_at(unsigned dtype)
{
	switch (dtype) {
	case CW_DTYPE_INT8:
		return 0x1p7;
	case CW_DTYPE_UINT8:
		return 0x1p8;
	case CW_DTYPE_INT32:
		return 0x1p31;
	case CW_DTYPE_UINT32:
		return 0x1p32;
	default:
		return EXACT;
	}
}

static bool is_summed(const struct cw_numerics_sample *l)
{
	if (l->kind == CW_OP_ALL_GATHER)
		return true;
	return cw_op_has_redop(l->kind) &&
	       (l->redop == CW_REDOP_SUM || (l->redop == CW_REDOP_AVG && !is_integer(l->dtype)));
}

struct flow {
	double sum, sizes; /* sizes: an upper bound for the sum of absolute values */
	double most;       /* the sum of the largest magnitudes */
	uint64_t n;        /* number of elements in all */
	uint32_t members;
};

static bool add_sample(struct flow *to, const struct cw_numerics_sample *l)
{
	double n = (double)l->elements;

	if (l->elements != l->offered || cw_numerics_is_bad(l) || !isfinite(l->mean) ||
	    !isfinite(l->l2))
		return false;
	to->sum += is_integer(l->dtype) ? rint(l->mean * n) : l->mean * n;
	to->sizes += sqrt(n) * l->l2;
	to->most += l->abs_max;
	to->n += l->elements;
	to->members++;
	return true;
}

/*
 * Computes the totals of a call's inputs and outputs. Returns false if a member's part is missing.
 */
static bool flows_of(const struct numerics_parts *p, uint32_t first, uint32_t end,
		     struct flow *ret_in, struct flow *ret_out, uint32_t *ret_sample)
{
	const struct cw_numerics_job *job = p->job;
	const struct cw_numerics_sample *l = &job->samples[p->by_call[first]];
	uint32_t nranks = job->comms[l->comm].nranks, wanted = 1;
	struct flow in = { 0 }, out = { 0 };

	if (l->kind == CW_OP_REDUCE_SCATTER)
		wanted = nranks;
	for (uint32_t i = first; i < end; i++) {
		const struct cw_numerics_sample *m = &job->samples[p->by_call[i]];

		if (m->kind != l->kind || m->dtype != l->dtype || m->redop != l->redop)
			return false;
		if (m->is_output && out.members == wanted)
			continue; /* one copy is enough; replicas.c compares the copies */
		if (!add_sample(m->is_output ? &out : &in, m))
			return false;
		if (m->is_output)
			*ret_sample = p->by_call[i];
	}
	*ret_in = in;
	*ret_out = out;
	return in.members == nranks && out.members == wanted;
}

static bool bound_of(const struct cw_numerics_sample *l, const struct flow *in,
		     const struct flow *out, uint32_t nranks, double *ret)
{
	struct type_error e = { 0 };
	double bound = SUMMARY_ERROR * (in->sizes + out->sizes);

	if (is_integer(l->dtype)) {
		*ret = 0;
		return in->most < wraps_at(l->dtype) && in->most * (double)in->n < EXACT;
	}
	if (!error_of(l->dtype, &e))
		return false;
	if (l->kind != CW_OP_ALL_GATHER)
		bound += (nranks + 1) * e.unit * in->sizes + nranks * e.smallest * (double)in->n;
	*ret = bound;
	return isfinite(bound);
}

static void judge_call(const struct numerics_parts *p, uint32_t first, uint32_t end,
		       struct cw_numerics_report *ret)
{
	const struct cw_numerics_sample *l = &p->job->samples[p->by_call[first]];
	uint32_t nranks = p->job->comms[l->comm].nranks, sample = 0;
	struct flow in, out;
	double bound;

	if (!is_summed(l) || !flows_of(p, first, end, &in, &out, &sample) ||
	    !bound_of(l, &in, &out, nranks, &bound))
		return;
	if (l->redop == CW_REDOP_AVG && l->kind != CW_OP_ALL_GATHER)
		in.sum /= nranks;
	ret->n_sums_checked++;
	if (fabs(in.sum - out.sum) <= bound)
		return;
	if (ret->n_imbalances == CW_NUMERICS_MAX) {
		ret->n_imbalances_over_limit++;
		return;
	}
	ret->imbalances[ret->n_imbalances++] = (struct cw_numerics_imbalance){
		.sample = sample, .in = in.sum, .out = out.sum, .bound = bound
	};
}

void numerics_find_imbalances(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	for (uint32_t i = 0, end; i < p->n; i = end) {
		end = numerics_call_end(p, i);
		judge_call(p, i, end, ret);
	}
}
