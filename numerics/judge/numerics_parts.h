/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the parts of the judge: the summaries, sorted in three ways, and their steps. */
#pragma once

#include <stddef.h>

#include "numerics/judge/numerics.h"

struct numerics_sample_at {
	uint64_t step;
	enum cw_numerics_step_by step_by;
	uint32_t slot; /* index of the call among its communicator's in the step */
};

struct numerics_parts {
	const struct cw_numerics_job *job;
	struct numerics_sample_at *at; /* per sample */
	/* Indices of collectives' summaries: by (comm, seq, is_output, rank); no others. */
	uint32_t *by_call;
	/* … by (comm, slot, is_output, rank, step). */
	uint32_t *by_series;
	uint32_t n;
};

/* 0 or -ENOMEM. */
int numerics_parts_init(struct numerics_parts *p, const struct cw_numerics_job *job);
void numerics_parts_fini(struct numerics_parts *p);

/* The end of the run of summaries with the same call (comm, seq), which begins at i of by_call. */
uint32_t numerics_call_end(const struct numerics_parts *p, uint32_t i);

/*
 * Half a unit in the last place of a floating point type that has infinities; 0 = any other type.
 */
double numerics_unit(unsigned dtype);

/* Sorts the array in place and returns its median; 0 if it is empty. */
double numerics_median(double *v, size_t n);

/* The parts of the judge; each fills its own fields of the report. 0 or -ENOMEM. */
int numerics_find_first(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_rows(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_headroom(const struct numerics_parts *p, struct cw_numerics_report *ret);
void numerics_find_ranges(const struct numerics_parts *p, struct cw_numerics_report *ret);
int numerics_find_divergences(const struct numerics_parts *p, struct cw_numerics_report *ret);
void numerics_find_imbalances(const struct numerics_parts *p, struct cw_numerics_report *ret);
