/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Determines the steps of a job. If the program marks its steps, we use the marks. Otherwise we use
 * the fact that the calls of a communicator repeat. A step is then the shortest period after which
 * every sampled call is the same again. If there is no period, each call is a step.
 *
 * A call's slot is its place in its step. A series consists of the summaries of one slot in
 * successive steps.
 */
#include "numerics/judge/numerics_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/op.h"

/* We search the newest PERIOD_CALLS calls of a communicator for a period of at most PERIOD_MAX. */
#define PERIOD_CALLS 4096u
#define PERIOD_MAX 1024u
/* The first PHASE_CALLS calls with bad numbers show at which call of the period a step begins. */
#define PHASE_CALLS 1024u

static bool has_call(const struct cw_numerics_job *job, uint32_t i)
{
	const struct cw_numerics_sample *l = &job->samples[i];

	return cw_op_is_collective(l->kind) && l->seq && l->comm < job->n_comms &&
	       !job->comms[l->comm].is_uncounted;
}

#define COMPARE(x, y)                                                                              \
	do {                                                                                       \
		if ((x) != (y))                                                                    \
			return (x) < (y) ? -1 : 1;                                                 \
	} while (0)

static int compare_calls(const void *a, const void *b, void *user)
{
	const struct cw_numerics_sample *samples = ((const struct cw_numerics_job *)user)->samples;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct cw_numerics_sample *x = &samples[i], *y = &samples[k];

	COMPARE(x->comm, y->comm);
	COMPARE(x->seq, y->seq);
	COMPARE(x->is_output, y->is_output);
	COMPARE(x->rank, y->rank);
	COMPARE(i, k);
	return 0;
}

static int compare_series(const void *a, const void *b, void *user)
{
	const struct numerics_parts *p = user;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct cw_numerics_sample *x = &p->job->samples[i], *y = &p->job->samples[k];

	COMPARE(x->comm, y->comm);
	COMPARE(p->at[i].slot, p->at[k].slot);
	COMPARE(x->is_output, y->is_output);
	COMPARE(x->rank, y->rank);
	COMPARE(p->at[i].step, p->at[k].step);
	COMPARE(i, k);
	return 0;
}

uint32_t numerics_call_end(const struct numerics_parts *p, uint32_t i)
{
	const struct cw_numerics_sample *l = &p->job->samples[p->by_call[i]];
	uint32_t k = i + 1;

	for (; k < p->n; k++) {
		const struct cw_numerics_sample *m = &p->job->samples[p->by_call[k]];

		if (m->comm != l->comm || m->seq != l->seq)
			break;
	}
	return k;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double numerics_median(double *v, size_t n)
{
	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* ---- steps ---- */

/* A call of one communicator, represented by its first summary. */
struct call {
	uint64_t seq;
	uint32_t first, last; /* indices into by_call: [first, last) */
	const struct cw_numerics_sample *sample;
	bool has_step;
};

static bool is_alike(const struct cw_numerics_sample *a, const struct cw_numerics_sample *b)
{
	return a->kind == b->kind && a->dtype == b->dtype && a->redop == b->redop &&
	       a->offered == b->offered;
}

static const struct call *find_call(const struct call *calls, uint32_t n, uint64_t seq)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (calls[middle].seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && calls[low].seq == seq ? &calls[low] : NULL;
}

/* Returns the period of the calls, in calls; 0 = no period. */
static uint64_t period_of(const struct call *calls, uint32_t n)
{
	uint64_t span;

	if (n > PERIOD_CALLS) {
		calls += n - PERIOD_CALLS;
		n = PERIOD_CALLS;
	}
	if (n < 2)
		return 0;
	span = calls[n - 1].seq - calls[0].seq + 1;
	for (uint64_t period = 1; period <= span / 2 && period <= PERIOD_MAX; period++) {
		uint32_t n_alike = 0;
		bool differs = false;

		for (uint32_t i = 0; i < n && !differs; i++) {
			const struct call *next = find_call(calls, n, calls[i].seq + period);

			if (!next)
				continue;
			differs = !is_alike(calls[i].sample, next->sample);
			n_alike++;
		}
		if (!differs && n_alike && n_alike >= n / 4)
			return period;
	}
	return 0;
}

static bool is_call_bad(const struct numerics_parts *p, const struct call *call)
{
	for (uint32_t k = call->first; k < call->last; k++)
		if (cw_numerics_is_bad(&p->job->samples[p->by_call[k]]))
			return true;
	return false;
}

/*
 * Returns at which call of the period a step begins. Bad calls of one step are adjacent. So we
 * choose the beginning that separates the fewest adjacent bad calls, which is accurate enough.
 */
static uint64_t phase_of(const struct numerics_parts *p, const struct call *calls, uint32_t n,
			 uint64_t period)
{
	uint64_t seqs[PHASE_CALLS], best = 0, fewest = UINT64_MAX;
	uint32_t n_bad = 0;

	for (uint32_t i = 0; i < n && n_bad < PHASE_CALLS; i++)
		if (is_call_bad(p, &calls[i]))
			seqs[n_bad++] = calls[i].seq;
	for (uint64_t phase = 0; phase < period; phase++) {
		uint64_t n_steps = 0, last = UINT64_MAX;

		for (uint32_t i = 0; i < n_bad; i++) {
			uint64_t step = (seqs[i] + phase) / period;

			n_steps += step != last;
			last = step;
		}
		if (n_steps < fewest) {
			fewest = n_steps;
			best = phase;
		}
	}
	return best;
}

static void set_steps(struct numerics_parts *p, const struct call *calls, uint32_t n)
{
	bool is_marked = true;
	uint64_t period, phase, begin = 0;
	enum cw_numerics_step_by by;

	for (uint32_t i = 0; i < n && is_marked; i++)
		is_marked = calls[i].has_step;
	period = is_marked ? 0 : period_of(calls, n);
	phase = period ? phase_of(p, calls, n, period) : 0;
	by = is_marked    ? CW_NUMERICS_BY_PROGRAM
	     : period > 1 ? CW_NUMERICS_BY_PERIOD
			  : CW_NUMERICS_BY_CALL;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t step, slot;

		if (is_marked) {
			step = (uint64_t)calls[i].sample->step;
			if (i == 0 || calls[i - 1].sample->step != calls[i].sample->step)
				begin = calls[i].seq;
			slot = calls[i].seq - begin;
		} else {
			step = period ? (calls[i].seq + phase) / period : calls[i].seq;
			slot = period ? (calls[i].seq + phase) % period : 0;
		}
		for (uint32_t k = calls[i].first; k < calls[i].last; k++)
			p->at[p->by_call[k]] = (struct numerics_sample_at){
				.step = step, .step_by = by, .slot = (uint32_t)slot
			};
	}
}

/* Sets the steps of one communicator's calls, whose summaries begin at i. Returns their end. */
static uint32_t set_steps_of_comm(struct numerics_parts *p, struct call *calls, uint32_t i)
{
	uint32_t comm = p->job->samples[p->by_call[i]].comm, n = 0;

	while (i < p->n && p->job->samples[p->by_call[i]].comm == comm) {
		const struct cw_numerics_sample *l = &p->job->samples[p->by_call[i]];
		uint32_t end = numerics_call_end(p, i);

		calls[n++] = (struct call){ .seq = l->seq,
					    .first = i,
					    .last = end,
					    .sample = l,
					    .has_step = l->step >= 0 };
		i = end;
	}
	set_steps(p, calls, n);
	return i;
}

int numerics_parts_init(struct numerics_parts *p, const struct cw_numerics_job *job)
{
	struct call *calls;

	*p = (struct numerics_parts){ .job = job };
	p->at = calloc((size_t)job->n_samples + 1, sizeof(*p->at));
	p->by_call = calloc((size_t)job->n_samples + 1, sizeof(*p->by_call));
	p->by_series = calloc((size_t)job->n_samples + 1, sizeof(*p->by_series));
	calls = calloc((size_t)job->n_samples + 1, sizeof(*calls));
	if (!p->at || !p->by_call || !p->by_series || !calls) {
		free(calls);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < job->n_samples; i++)
		if (has_call(job, i))
			p->by_call[p->n++] = i;
	if (p->n)
		qsort_r(p->by_call, p->n, sizeof(*p->by_call), compare_calls, (void *)job);
	for (uint32_t i = 0; i < p->n;)
		i = set_steps_of_comm(p, calls, i);
	free(calls);
	memcpy(p->by_series, p->by_call, p->n * sizeof(*p->by_series));
	if (p->n)
		qsort_r(p->by_series, p->n, sizeof(*p->by_series), compare_series, p);
	return 0;
}

void numerics_parts_fini(struct numerics_parts *p)
{
	free(p->at);
	free(p->by_call);
	free(p->by_series);
}
