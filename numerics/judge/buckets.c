/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/judge/buckets.h"

#include <errno.h>
#include <stdlib.h>

#include "model/op.h"

/*
 * We search this many summaries back for a call's input. In a group, 60 inputs precede the outputs.
 */
#define INPUTS_BEFORE 256u

struct sized {
	uint64_t elements;
	uint32_t bucket; /* CW_NUMERICS_NONE = several buckets have this size */
};

struct matcher {
	const struct cw_numerics_job *job;
	const struct cw_numerics_buckets *buckets;
	struct cw_numerics_bucket *ret;
	struct sized *sizes; /* sorted by size */
	uint64_t seq;        /* number of the newest call on the communicator whose input we saw */
	/* The current step, as far as we have read it. */
	int64_t step;
	uint32_t first; /* index of the step's first summary */
	uint32_t n_calls;
	bool is_as_expected;
	bool was_as_expected; /* the previous step was as expected */
};

static int compare_sizes(const void *a, const void *b)
{
	const struct sized *x = a, *y = b;

	return (x->elements > y->elements) - (x->elements < y->elements);
}

static int sort_sizes(struct matcher *m)
{
	uint32_t n = m->buckets->n;

	m->sizes = calloc((size_t)n + 1, sizeof(*m->sizes));
	if (!m->sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		m->sizes[i] = (struct sized){ m->buckets->elements[i], i };
	if (n)
		qsort(m->sizes, n, sizeof(*m->sizes), compare_sizes);
	for (uint32_t i = 1; i < n; i++)
		if (m->sizes[i].elements == m->sizes[i - 1].elements)
			m->sizes[i].bucket = m->sizes[i - 1].bucket = CW_NUMERICS_NONE;
	return 0;
}

static const struct sized *size_of(const struct matcher *m, uint64_t elements)
{
	const struct sized wanted = { .elements = elements };

	return bsearch(&wanted, m->sizes, m->buckets->n, sizeof(wanted), compare_sizes);
}

/* True if the call may carry gradients, because it adds up floating point numbers. */
static bool may_be_gradients(const struct matcher *m, const struct cw_numerics_sample *l)
{
	bool is_float = l->dtype >= CW_DTYPE_FP16 && l->dtype <= CW_DTYPE_FP8_E5M2;

	return l->comm == m->buckets->comm && l->kind == m->buckets->kind && is_float &&
	       l->redop != CW_REDOP_MAX && l->redop != CW_REDOP_MIN && l->redop != CW_REDOP_PROD;
}

static bool is_bucket_call(const struct matcher *m, const struct cw_numerics_sample *l)
{
	return may_be_gradients(m, l) && !l->is_output && size_of(m, l->offered);
}

static uint64_t input_elements(const struct cw_numerics_job *job,
			       const struct cw_numerics_sample *l)
{
	uint64_t nranks = job->comms[l->comm].nranks;

	if (!l->is_output || l->kind != CW_OP_REDUCE_SCATTER)
		return l->offered;
	return nranks && l->offered <= UINT64_MAX / nranks ? l->offered * nranks : 0;
}

static struct cw_numerics_bucket by_size(const struct matcher *m, uint64_t elements)
{
	const struct sized *found = size_of(m, elements);

	return (struct cw_numerics_bucket){ found ? found->bucket : CW_NUMERICS_NONE, false };
}

/* True if the place of a call in the step determines its bucket for certain. */
static bool is_certain_step(const struct matcher *m, bool is_last)
{
	if (!m->is_as_expected || m->step < m->buckets->step)
		return false;
	return m->n_calls == m->buckets->n || (is_last && m->was_as_expected);
}

static void end_step(struct matcher *m, uint32_t end, bool is_last)
{
	bool is_certain = is_certain_step(m, is_last);
	uint32_t place = 0;

	for (uint32_t i = m->first; i < end; i++) {
		const struct cw_numerics_sample *l = &m->job->samples[i];

		if (is_bucket_call(m, l))
			m->ret[i - m->buckets->first] =
				is_certain ? (struct cw_numerics_bucket){ place++, true }
					   : by_size(m, l->offered);
	}
	m->was_as_expected = is_certain;
	m->first = end;
	m->n_calls = 0;
}

/* Takes the next call into account. A gap before it may hide a bucket's call. */
static void follow(struct matcher *m, const struct cw_numerics_sample *l)
{
	if (l->seq > m->seq + 1 || !l->seq)
		m->is_as_expected = false;
	if (l->seq > m->seq)
		m->seq = l->seq;
	if (!is_bucket_call(m, l))
		return;
	if (m->n_calls >= m->buckets->n || m->buckets->elements[m->n_calls] != l->offered)
		m->is_as_expected = false;
	m->n_calls++;
}

static void match_inputs(struct matcher *m)
{
	const struct cw_numerics_buckets *b = m->buckets;

	m->first = b->first;
	for (uint32_t i = b->first; i < b->last; i++) {
		const struct cw_numerics_sample *l = &m->job->samples[i];

		if (i == b->first || l->step != m->step) {
			end_step(m, i, false);
			m->step = l->step;
			m->is_as_expected = l->step >= 0;
		}
		/*
		 * In a call of another kind, such as a broadcast, a member may have no input, so we
		 * take outputs too. The call of a bucket always has an input. Without one in view,
		 * its size is unknown.
		 */
		if (l->comm == b->comm && !cw_op_is_p2p(l->kind) &&
		    (!l->is_output || l->kind != b->kind))
			follow(m, l);
	}
	end_step(m, b->last, true);
}

/* Returns the bucket of an output, which is the bucket of the same call's input. */
static struct cw_numerics_bucket bucket_of_input(const struct matcher *m, uint32_t output)
{
	const struct cw_numerics_sample *out = &m->job->samples[output];
	uint64_t elements = input_elements(m->job, out);
	uint32_t least = output - m->buckets->first < INPUTS_BEFORE ? m->buckets->first
								    : output - INPUTS_BEFORE;

	for (uint32_t i = output; i > least && out->seq; i--) {
		const struct cw_numerics_sample *in = &m->job->samples[i - 1];

		if (in->comm == out->comm && in->kind == out->kind && in->seq == out->seq &&
		    !in->is_output && in->offered == elements)
			return m->ret[i - 1 - m->buckets->first];
	}
	return by_size(m, elements);
}

int cw_numerics_buckets_match(const struct cw_numerics_job *job,
			      const struct cw_numerics_buckets *buckets,
			      struct cw_numerics_bucket *ret)
{
	struct matcher m = { .job = job, .buckets = buckets, .ret = ret };

	if (sort_sizes(&m) < 0)
		return -ENOMEM;
	for (uint32_t i = buckets->first; i < buckets->last; i++)
		ret[i - buckets->first] = (struct cw_numerics_bucket){ CW_NUMERICS_NONE, false };
	match_inputs(&m);
	for (uint32_t i = buckets->first; i < buckets->last; i++)
		if (job->samples[i].is_output && may_be_gradients(&m, &job->samples[i]))
			ret[i - buckets->first] = bucket_of_input(&m, i);
	free(m.sizes);
	return 0;
}
