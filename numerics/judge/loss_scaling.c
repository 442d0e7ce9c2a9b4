/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether loss scaling explains bad numbers. Loss scaling makes gradients overflow on
 * purpose. It multiplies them by a factor that grows until they overflow, then skips the step and
 * backs off. A row of bad steps is harmless scaling under four conditions:
 *
 * - The bad numbers are in gradients (inputs of sums, or their results).
 * - There are no three bad steps in a row.
 * - We have the step after them, and it is finite.
 * - The magnitudes of that step are those of the last bad step, as far as that was finite,
 *   times the back-off factor.
 *
 * We do not compare with the step before the row. The scale has usually just grown when it is too
 * large, and then returns to its old value. Only if the bad step has no finite part, we compare
 * with the step before, times the factor for each bad step. We report any other row.
 *
 * Gradients also change by themselves between two steps. So the median over all series decides, and
 * the limit lies halfway (in logarithms) between the back-off factor and no change.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

#define ROW_MAX 2u
/* The default back-off factor of torch.cuda.amp.GradScaler, apex, DeepSpeed and Megatron. */
#define BACKOFF 0.5
/* The lower limit of the ratio, for a wanted ratio of BACKOFF. */
#define RATIO_MIN 0.25

struct step_said {
	uint32_t comm, n_bad;
	uint64_t step;
	bool is_gradient; /* all bad numbers are in gradients */
	enum cw_numerics_step_by step_by;
	uint64_t seq; /* number of the step's first call with a NaN or infinity */
};

struct steps {
	struct step_said *v;
	uint32_t n;
};

static bool is_gradient(const struct cw_numerics_sample *l)
{
	return (l->kind == CW_OP_ALL_REDUCE || l->kind == CW_OP_REDUCE_SCATTER ||
		l->kind == CW_OP_REDUCE) &&
	       (l->redop == CW_REDOP_SUM || l->redop == CW_REDOP_AVG ||
		l->redop == CW_REDOP_PREMULSUM || l->redop == CW_REDOP_NONE);
}

/*
 * Lists all sampled steps of all communicators, in order. The calls of one step are adjacent
 * in by_call.
 */
static int list_steps(const struct numerics_parts *p, struct steps *ret)
{
	struct steps s = { .v = calloc((size_t)p->n + 1, sizeof(*s.v)) };

	if (!s.v)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t sample = p->by_call[i];
		const struct cw_numerics_sample *l = &p->job->samples[sample];
		struct step_said *last = s.n ? &s.v[s.n - 1] : NULL;

		if (!last || last->comm != l->comm || last->step != p->at[sample].step) {
			last = &s.v[s.n++];
			*last = (struct step_said){ .comm = l->comm,
						    .step = p->at[sample].step,
						    .step_by = p->at[sample].step_by,
						    .is_gradient = true };
		}
		if (!cw_numerics_is_bad(l))
			continue;
		if (!last->n_bad++)
			last->seq = l->seq;
		last->is_gradient = last->is_gradient && is_gradient(l);
	}
	*ret = s;
	return 0;
}

static bool is_in(const struct numerics_parts *p, uint32_t i, uint32_t comm, uint64_t step)
{
	return p->job->samples[i].comm == comm && p->at[i].step == step;
}

/* True if most of a bad tensor is finite, so that we can measure its finite part. */
static bool is_measured(const struct cw_numerics_sample *l)
{
	return (l->nans + l->infs) * 2 < l->elements && is_gradient(l) && isfinite(l->l2) &&
	       l->l2 > 0;
}

/* Computes the median ratio between the norms of two steps; 0 = unknown. */
static int ratio_of(const struct numerics_parts *p, const struct step_said *before,
		    const struct step_said *after, double *ret)
{
	double *v = calloc((size_t)p->n + 1, sizeof(*v));
	const struct cw_numerics_sample *from = NULL;
	uint32_t from_slot = 0;
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t k = p->by_series[i];
		const struct cw_numerics_sample *l = &p->job->samples[k];

		if (is_in(p, k, before->comm, before->step)) {
			from = l;
			from_slot = p->at[k].slot;
		}
		if (!is_in(p, k, after->comm, after->step) || !from || !is_measured(from) ||
		    !is_measured(l) || from->rank != l->rank || from_slot != p->at[k].slot ||
		    from->is_output != l->is_output || from->offered != l->offered)
			continue;
		v[n++] = l->l2 / from->l2;
	}
	*ret = numerics_median(v, n);
	free(v);
	return 0;
}

/* Judges a row of consecutive sampled steps with bad numbers. */
static int judge_row(const struct numerics_parts *p, const struct steps *s, uint32_t first,
		     uint32_t end, struct cw_numerics_row *ret)
{
	const struct step_said *before, *after;
	double wanted = 1;
	int r;

	*ret = (struct cw_numerics_row){ .comm = s->v[first].comm,
					 .step = s->v[first].step,
					 .step_by = s->v[first].step_by,
					 .seq = s->v[first].seq,
					 .n_steps = end - first };
	ret->is_scaling = end - first <= ROW_MAX;
	for (uint32_t i = first; i < end; i++) {
		ret->n_samples += s->v[i].n_bad;
		ret->is_scaling = ret->is_scaling && s->v[i].is_gradient;
		if (wanted > 1e-300)
			wanted *= BACKOFF;
	}
	before = first > 0 && s->v[first - 1].comm == ret->comm ? &s->v[first - 1] : NULL;
	after = end < s->n && s->v[end].comm == ret->comm ? &s->v[end] : NULL;
	if (!after) {
		ret->is_scaling = false;
		return 0;
	}
	r = ratio_of(p, &s->v[end - 1], after, &ret->ratio);
	if (r == 0 && ret->ratio > 0)
		wanted = BACKOFF;
	else if (r == 0 && before)
		r = ratio_of(p, before, after, &ret->ratio);
	if (r < 0)
		return r;
	if (ret->ratio < wanted * RATIO_MIN / BACKOFF || ret->ratio > wanted / sqrt(BACKOFF))
		ret->is_scaling = false;
	return 0;
}

/*
 * Counts summaries with NaN or infinity outside of steps: in sends, or in calls without a number.
 */
static uint64_t bad_outside(const struct numerics_parts *p, const struct cw_numerics_report *said)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->n; i++)
		n += cw_numerics_is_bad(&p->job->samples[p->by_call[i]]);
	return said->n_bad - n;
}

int numerics_find_rows(const struct numerics_parts *p, struct cw_numerics_report *ret)
{
	struct steps s = { .v = NULL };
	int r;

	if (!ret->n_bad)
		return 0;
	ret->is_all_scaling = bad_outside(p, ret) == 0;
	r = list_steps(p, &s);
	for (uint32_t i = 0; r == 0 && i < s.n;) {
		struct cw_numerics_row row;
		uint32_t end = i + 1;

		if (!s.v[i].n_bad) {
			i++;
			continue;
		}
		while (end < s.n && s.v[end].comm == s.v[i].comm && s.v[end].n_bad)
			end++;
		if (ret->n_rows == CW_NUMERICS_ROWS) {
			ret->n_rows_over_limit++;
			ret->is_all_scaling = false; /* loss scaling does not overflow this often */
		} else {
			r = judge_row(p, &s, i, end, &row);
			if (r == 0) {
				ret->is_all_scaling = ret->is_all_scaling && row.is_scaling;
				ret->rows[ret->n_rows++] = row;
			}
		}
		i = end;
	}
	free(s.v);
	return r;
}
