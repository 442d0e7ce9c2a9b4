/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/judge/numerics.h"

#include <errno.h>
#include <stdlib.h>

#include "model/op.h"
#include "numerics/judge/numerics_parts.h"

double cw_numerics_limit(unsigned dtype)
{
	switch (dtype) {
	case CW_DTYPE_FP16:
		return 65504;
	case CW_DTYPE_FP32:
		return 0x1.fffffep127;
	case CW_DTYPE_BF16:
		return 0x1.fep127;
	case CW_DTYPE_FP64:
		return 0x1.fffffffffffffp1023;
	case CW_DTYPE_FP8_E4M3:
		return 448;
	case CW_DTYPE_FP8_E5M2:
		return 57344;
	default:
		return 0;
	}
}

static int compare_samples(const void *a, const void *b)
{
	const struct cw_numerics_sample *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static void note_ranks(const struct cw_numerics_job *job, struct cw_numerics_report *ret)
{
	for (uint32_t r = 0, i = 0; r < job->n_ranks; r++) {
		struct cw_numerics_rank_said *said = &ret->ranks[r];

		*said = (struct cw_numerics_rank_said){ .first = i, .first_bad = CW_NUMERICS_NONE };
		for (; i < job->n_samples && job->samples[i].rank == r; i++) {
			if (!cw_numerics_is_bad(&job->samples[i]))
				continue;
			if (said->first_bad == CW_NUMERICS_NONE)
				said->first_bad = i;
			said->n_bad++;
			ret->n_bad++;
		}
		said->last = i;
		said->is_first_seen = job->ranks[r].is_whole;
	}
}

int cw_numerics_judge(struct cw_numerics_job *job, struct cw_numerics_report *ret)
{
	struct cw_numerics_report report = { 0 };
	struct numerics_parts parts;
	int r;

	if (job->n_samples)
		qsort(job->samples, job->n_samples, sizeof(*job->samples), compare_samples);
	report.ranks = calloc(job->n_ranks + 1, sizeof(*report.ranks));
	if (!report.ranks)
		return -ENOMEM;
	note_ranks(job, &report);
	r = numerics_parts_init(&parts, job);
	if (r == 0)
		r = numerics_find_first(&parts, &report);
	if (r == 0)
		r = numerics_find_rows(&parts, &report);
	if (r == 0)
		r = numerics_find_headroom(&parts, &report);
	if (r == 0)
		r = numerics_find_divergences(&parts, &report);
	if (r == 0) {
		numerics_find_ranges(&parts, &report);
		numerics_find_imbalances(&parts, &report);
	}
	numerics_parts_fini(&parts);
	if (r < 0) {
		cw_numerics_report_fini(&report);
		return r;
	}
	*ret = report;
	return 0;
}

void cw_numerics_report_fini(struct cw_numerics_report *report)
{
	if (!report)
		return;
	free(report->ranks);
	free(report->divergent);
	report->ranks = NULL;
	report->divergent = NULL;
}

bool cw_numerics_is_alarming(const struct cw_numerics_report *report)
{
	return (report->n_bad && !report->is_all_scaling) || report->n_headroom ||
	       report->n_ranges || report->n_divergences || report->n_imbalances;
}
