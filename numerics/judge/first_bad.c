/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the rank that had the first NaN or infinity. A bad number spreads: one rank feeds it into a
 * sum, and all ranks receive it and feed it into later calls. So only the first bad tensor of each
 * rank counts. If this tensor is an input, the rank is a candidate, because it had received no bad
 * number before. If it is an output, we look at the call's inputs. If they were completely sampled
 * and are all finite, the operation itself left the range of its type.
 *
 * Of two candidates on the same communicator, the one with the lower call number is earlier.
 * Otherwise the earlier wall time decides, which is as good as the hosts' clocks. If candidates
 * have no order, we name all of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

enum order { EARLIER_BY_CALL, EARLIER_BY_CLOCK, NOT_EARLIER };

static enum order order_of(const struct cw_numerics_job *job, const struct cw_numerics_first *a,
			   const struct cw_numerics_first *b)
{
	const struct cw_numerics_sample *x = &job->samples[a->sample],
					*y = &job->samples[b->sample];
	bool is_same_comm = x->comm == y->comm && x->comm < job->n_comms &&
			    !job->comms[x->comm].is_uncounted && cw_op_is_collective(x->kind) &&
			    cw_op_is_collective(y->kind) && x->seq && y->seq;

	if (is_same_comm && x->seq != y->seq)
		return x->seq < y->seq ? EARLIER_BY_CALL : NOT_EARLIER;
	/* Of two tensors of one call, the input comes before the output. */
	if (is_same_comm)
		return x->is_output < y->is_output ? EARLIER_BY_CALL : NOT_EARLIER;
	/*
	 * Rank a may have received the number from rank b. The times do not show it, because a
	 * summary has the time of its call and not of its end.
	 */
	if (a->origin == CW_NUMERICS_RECEIVED && b->origin == CW_NUMERICS_BY_RANK)
		return NOT_EARLIER;
	if (x->at_ns && y->at_ns && x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? EARLIER_BY_CLOCK : NOT_EARLIER;
	return NOT_EARLIER;
}

/*
 * Returns the first entry in by_call of the summary's call. Returns p->n if the call is not a
 * numbered collective.
 */
static uint32_t find_call(const struct numerics_parts *p, const struct cw_numerics_sample *l)
{
	uint32_t low = 0, high = p->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		const struct cw_numerics_sample *m = &p->job->samples[p->by_call[middle]];

		if (m->comm < l->comm || (m->comm == l->comm && m->seq < l->seq))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < p->n && p->job->samples[p->by_call[low]].comm == l->comm &&
	    p->job->samples[p->by_call[low]].seq == l->seq)
		return low;
	return p->n;
}

static uint32_t inputs_wanted(const struct cw_numerics_job *job, const struct cw_numerics_sample *l)
{
	if (l->kind == CW_OP_BROADCAST || l->kind == CW_OP_SCATTER)
		return 1;
	return job->comms[l->comm].nranks;
}

static enum cw_numerics_origin origin_of_output(const struct numerics_parts *p,
						const struct cw_numerics_sample *l)
{
	uint32_t i = find_call(p, l), end, n_finite = 0;

	if (i == p->n)
		return CW_NUMERICS_RECEIVED;
	end = numerics_call_end(p, i);
	for (; i < end; i++) {
		const struct cw_numerics_sample *m = &p->job->samples[p->by_call[i]];

		/*
		 * An incompletely sampled input may contain a NaN or infinity elsewhere, so it does
		 * not count as finite.
		 */
		if (!m->is_output && !cw_numerics_is_bad(m) && m->elements == m->offered)
			n_finite++;
	}
	return n_finite >= inputs_wanted(p->job, l) ? CW_NUMERICS_SUM : CW_NUMERICS_RECEIVED;
}

/* True if a summary shows that a member fed a bad number into the call with this output. */
static bool is_explained(const struct numerics_parts *p, const struct cw_numerics_sample *l)
{
	uint32_t i = find_call(p, l), end;

	if (i == p->n)
		return false;
	end = numerics_call_end(p, i);
	for (; i < end; i++) {
		const struct cw_numerics_sample *m = &p->job->samples[p->by_call[i]];

		if (!m->is_output && cw_numerics_is_bad(m))
			return true;
	}
	return false;
}

/*
 * True if the list contains another member's output of the same call. One output represents the
 * call.
 */
static bool is_listed(const struct cw_numerics_job *job, const struct cw_numerics_first *v,
		      uint32_t n, const struct cw_numerics_sample *l)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct cw_numerics_sample *m = &job->samples[v[i].sample];

		if (m->is_output && m->comm == l->comm && m->seq == l->seq && l->seq)
			return true;
	}
	return false;
}

int numerics_find_first(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	const struct cw_numerics_job *job = p->job;
	struct cw_numerics_first *v = calloc((size_t)job->n_ranks + 1, sizeof(*v));
	uint32_t n = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t r = 0; r < job->n_ranks; r++) {
		uint32_t bad = ret->ranks[r].first_bad;
		const struct cw_numerics_sample *l =
			&job->samples[bad == CW_NUMERICS_NONE ? 0 : bad];

		if (bad == CW_NUMERICS_NONE)
			continue;
		if (!l->is_output)
			v[n++] = (struct cw_numerics_first){ .sample = bad,
							     .origin = CW_NUMERICS_BY_RANK };
		else if (!is_explained(p, l) && !is_listed(job, v, n, l))
			v[n++] = (struct cw_numerics_first){ .sample = bad,
							     .origin = origin_of_output(p, l) };
	}
	for (uint32_t i = 0; i < n; i++) {
		bool is_earliest = true;

		for (uint32_t k = 0; k < n && is_earliest; k++) {
			enum order order = k == i ? NOT_EARLIER : order_of(job, &v[k], &v[i]);

			is_earliest = order == NOT_EARLIER;
			if (order == EARLIER_BY_CLOCK)
				ret->is_first_by_clock = true;
		}
		if (is_earliest && ret->n_firsts < CW_NUMERICS_FIRSTS)
			ret->firsts[ret->n_firsts++] = v[i];
	}
	/*
	 * If clocks contradict the order of calls, the candidates form a cycle and none is first.
	 * We then name all.
	 */
	for (uint32_t i = 0; ret->n_firsts == 0 && i < n && i < CW_NUMERICS_FIRSTS; i++)
		ret->firsts[i] = v[i];
	if (ret->n_firsts == 0)
		ret->n_firsts = n < CW_NUMERICS_FIRSTS ? n : CW_NUMERICS_FIRSTS;
	free(v);
	return 0;
}
