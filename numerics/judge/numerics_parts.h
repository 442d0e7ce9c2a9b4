/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data that all parts of the judge share: the summaries, sorted in several ways, and their steps.
 */
#pragma once

#include <stddef.h>

#include "numerics/judge/numerics.h"

struct numerics_sample_at {
	uint64_t step;
	enum cw_numerics_step_by step_by;
	uint32_t slot; /* index of the call among the calls of its communicator in the step */
};

struct numerics_parts {
	const struct cw_numerics_job *job;
	struct numerics_sample_at *at; /* per sample */
	/* Indices of all summaries of collectives, sorted by (comm, seq, is_output, rank). */
	uint32_t *by_call;
	/* The same indices, sorted by (comm, slot, is_output, rank, step). */
	uint32_t *by_series;
	uint32_t n;
};

/* Sorts the job's summaries and finds their steps. Returns 0 or -ENOMEM. */
int numerics_parts_init(struct numerics_parts *p, const struct cw_numerics_job *job);
void numerics_parts_fini(struct numerics_parts *p);

/* Returns the end of the entries in by_call of one call (comm, seq). i: the call's first entry. */
uint32_t numerics_call_end(const struct numerics_parts *p, uint32_t i);

/*
 * Returns half a unit in the last place, for a floating point type that has infinities. Returns 0
 * for any other type.
 */
double numerics_unit(unsigned dtype);

/* Sorts the array in place and returns its median, or 0 if it is empty. */
double numerics_median(double *v, size_t n);

/* The parts of the judge. Each fills its own fields of the report. Returns 0 or -ENOMEM. */
int numerics_find_first(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_rows(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_headroom(const struct numerics_parts *p, struct cw_numerics_report *ret);
void numerics_find_ranges(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_divergences(const struct numerics_parts *p, struct cw_numerics_report *ret);
void numerics_find_imbalances(const struct numerics_parts *p, struct cw_numerics_report *ret);
