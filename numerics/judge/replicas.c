/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds ranks whose results differ although they should be equal. The outputs of one all_reduce,
 * all_gather or broadcast are the same bytes on all members, with any algorithm. NCCL computes each
 * part of the result once and copies it (docs/numerics.md#replicas has the sources). We compare two
 * copies if the agent sampled the same positions of both.
 *
 * One difference does not show which rank is wrong. Two copies have no majority, and in a ring all
 * ranks after the broken link get the same wrong bytes. We suspect a rank only if it is the odd one
 * again, in another communicator, with other members.
 *
 * There is an exception: some kernels compute the whole sum on every member. These are
 * AllReduce_AGxLL_R and _AGxLLMC_R, of NCCL's symmetric kernels
 * (src/device/symmetric/all_reduce.cuh of 2.28.3). Each member sends all its input, adds up its
 * peers' data, and stores into its own output. By contrast, RSxLD_AGxST and RSxLDMC_AGxSTMC compute
 * each part once and store it to all.
 *
 * With the exceptional kernels, all members add in the order of ranks, with equal accumulators, so
 * equal devices give equal bytes. Different devices have different code, and no document promises
 * equal bytes. Between different devices, a difference counts as rounding under two conditions.
 * Members with equal devices agree, and the values differ by no more than rounding explains. NCCL
 * does not tell us which kernel it used; members outside of one NVLink domain never use such a
 * kernel. For any other kind of call, and for unknown properties of a member, a difference counts
 * as usual.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

/* The first NCCL version with symmetric kernels. */
#define NCCL_SYMMETRIC 22700u

struct copy {
	uint32_t sample;
	uint64_t checksum;
	const char *device; /* "" = unknown */
};

static bool has_replicas(unsigned kind)
{
	return kind == CW_OP_ALL_REDUCE || kind == CW_OP_ALL_GATHER || kind == CW_OP_BROADCAST;
}

static bool is_comparable(const struct cw_numerics_sample *a, const struct cw_numerics_sample *b)
{
	return a->kind == b->kind && a->dtype == b->dtype && a->offered == b->offered &&
	       a->elements == b->elements && a->elements &&
	       (a->stride == b->stride || a->elements == a->offered) &&
	       (a->stride || a->elements == a->offered);
}

static int compare_copies(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;

	if (x->checksum != y->checksum)
		return x->checksum < y->checksum ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

static const char *device_of(const struct cw_numerics_job *job, const struct cw_numerics_sample *l)
{
	const char *device = job->ranks[l->rank].device;

	return device ? device : "";
}

static int compare_devices(const void *a, const void *b)
{
	const struct copy *x = a, *y = b;
	int r = strcmp(x->device, y->device);

	return r ? r : compare_copies(a, b);
}

/* True if two nonnegative values are near each other. False for NaN. */
static bool is_near(double a, double b, double tolerance)
{
	return fabs(a - b) <= tolerance * (a > b ? a : b);
}

/*
 * True if the summaries differ by no more than rounding. NCCL adds halves in fp32
 * (ncclSymkAccumType) and rounds once.
 */
static bool is_as_large(const struct cw_numerics_sample *a, const struct cw_numerics_sample *b,
			uint32_t nranks)
{
	double tolerance =
		2 * numerics_unit(a->dtype) + 4.0 * nranks * numerics_unit(CW_DTYPE_FP32);

	return a->nans == b->nans && a->infs == b->infs &&
	       is_near(a->abs_max, b->abs_max, tolerance) && is_near(a->l2, b->l2, tolerance);
}

/*
 * True if a kernel may have computed the sum on each member. Such kernels add floating point
 * numbers except fp64 (ncclSymImplemented(), 2.27), and any number of them.
 */
static bool may_be_summed_on_each(const struct cw_numerics_sample *l,
				  const struct cw_numerics_rank *rank)
{
	return l->kind == CW_OP_ALL_REDUCE && l->redop == CW_REDOP_SUM &&
	       numerics_unit(l->dtype) > 0 && l->dtype != CW_DTYPE_FP64 &&
	       rank->nccl >= NCCL_SYMMETRIC;
}

/* True if rounding may explain the differences between copies. Sorts the copies by device. */
static bool is_rounding(const struct cw_numerics_job *job, struct copy *v, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cw_numerics_sample *l = &job->samples[v[i].sample];

		if (!*v[i].device || !may_be_summed_on_each(l, &job->ranks[l->rank]) ||
		    !is_as_large(l, &job->samples[v[0].sample], job->comms[l->comm].nranks))
			return false;
	}
	qsort(v, n, sizeof(*v), compare_devices);
	for (uint32_t i = 1; i < n; i++)
		if (v[i].checksum != v[i - 1].checksum && strcmp(v[i].device, v[i - 1].device) == 0)
			return false;
	return true;
}

static uint32_t group_end(const struct copy *v, uint32_t n, uint32_t i)
{
	uint32_t k = i + 1;

	while (k < n && v[k].checksum == v[i].checksum)
		k++;
	return k;
}

/*
 * Number of times that a rank was the odd one, number of communicators, and the last of these
 * communicators.
 */
struct odd {
	uint32_t n, n_comms, last_comm;
};

static void count_odd(const struct copy *v, uint32_t n, uint64_t right,
		      const struct cw_numerics_job *job, struct odd *odd)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cw_numerics_sample *l = &job->samples[v[i].sample];
		struct odd *o = &odd[l->rank];

		if (v[i].checksum == right)
			continue;
		o->n_comms += o->n == 0 || o->last_comm != l->comm;
		o->n++;
		o->last_comm = l->comm;
	}
}

/*
 * Describes the groups in v, which must be sorted. The caller sets the samples, and their place in
 * the report's list.
 */
static struct cw_numerics_divergence describe(const struct copy *v, uint32_t n,
					      const struct cw_numerics_sample *l)
{
	uint32_t most = 0, most_at = 0, least = UINT32_MAX, least_at = 0, n_groups = 0;

	for (uint32_t i = 0, end; i < n; i = end, n_groups++) {
		end = group_end(v, n, i);
		if (end - i > most) {
			most = end - i;
			most_at = i;
		}
	}
	for (uint32_t i = 0, end; i < n; i = end) {
		end = group_end(v, n, i);
		if (i != most_at && end - i < least) {
			least = end - i;
			least_at = i;
		}
	}
	return (struct cw_numerics_divergence){ .comm = l->comm,
						.n_groups = n_groups,
						.n_members = n,
						.seq = l->seq,
						.sample = v[least_at].sample,
						.other = v[most_at].sample,
						.n_odd = n - most,
						.has_majority = 2 * most > n,
						.count = n };
}

/* Adds the divergence to one of the report's lists, or counts it if the list is full. */
static int keep(const struct copy *v, struct cw_numerics_divergence d, bool rounds,
		struct cw_numerics_report *ret)
{
	struct cw_numerics_divergence *list = rounds ? ret->roundings : ret->divergences;
	uint32_t *n = rounds ? &ret->n_roundings : &ret->n_divergences, *grown;

	if (*n == CW_NUMERICS_MAX) {
		(*(rounds ? &ret->n_roundings_over_limit : &ret->n_divergences_over_limit))++;
		return 0;
	}
	grown = realloc(ret->divergent, (ret->n_divergent + (size_t)d.count) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	ret->divergent = grown;
	d.first = ret->n_divergent;
	list[(*n)++] = d;
	for (uint32_t i = 0; i < d.count; i++)
		ret->divergent[ret->n_divergent++] = v[i].sample;
	return 0;
}

static int add_divergence(struct copy *v, uint32_t n, const struct cw_numerics_sample *l,
			  const struct cw_numerics_job *job, struct odd *odd,
			  struct cw_numerics_report *ret)
{
	bool rounds = is_rounding(job, v, n);
	struct cw_numerics_divergence d;

	qsort(v, n, sizeof(*v), compare_copies);
	d = describe(v, n, l);
	if (d.has_majority && !rounds)
		count_odd(v, n, job->samples[d.other].checksum, job, odd);
	return keep(v, d, rounds, ret);
}

static int judge_call(const struct numerics_parts *p, uint32_t first, uint32_t end, struct copy *v,
		      struct odd *odd, struct cw_numerics_report *ret)
{
	const struct cw_numerics_sample *l = NULL;
	uint32_t n = 0, last_rank = CW_NUMERICS_NONE;

	for (uint32_t i = first; i < end; i++) {
		const struct cw_numerics_sample *m = &p->job->samples[p->by_call[i]];

		if (!m->is_output || !has_replicas(m->kind) || (l && !is_comparable(l, m)) ||
		    (!l && !is_comparable(m, m)))
			continue;
		/*
		 * If one rank has two summaries in a call, call numbers have wrapped, and the
		 * summaries are of different tensors. We use the first one.
		 */
		if (m->rank == last_rank)
			continue;
		last_rank = m->rank;
		l = l ? l : m;
		v[n++] = (struct copy){ .sample = p->by_call[i],
					.checksum = m->checksum,
					.device = device_of(p->job, m) };
	}
	if (n < 2)
		return 0;
	ret->n_replicas_checked++;
	qsort(v, n, sizeof(*v), compare_copies);
	if (v[0].checksum == v[n - 1].checksum)
		return 0;
	return add_divergence(v, n, l, p->job, odd, ret);
}

int numerics_find_divergences(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	struct copy *v = calloc((size_t)p->n + 1, sizeof(*v));
	struct odd *odd = calloc((size_t)p->job->n_ranks + 1, sizeof(*odd));
	int r = v && odd ? 0 : -ENOMEM;

	for (uint32_t i = 0, end; r == 0 && i < p->n; i = end) {
		end = numerics_call_end(p, i);
		r = judge_call(p, i, end, v, odd, ret);
	}
	for (uint32_t i = 0; r == 0 && i < p->job->n_ranks; i++)
		if (odd[i].n_comms >= 2 && ret->n_suspects < CW_NUMERICS_FIRSTS)
			ret->suspects[ret->n_suspects++] = (struct cw_numerics_suspect){
				.rank = i, .n_divergences = odd[i].n, .n_comms = odd[i].n_comms
			};
	free(v);
	free(odd);
	return r;
}
