/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the judge's findings about a job's numbers as sentences, for the command line and the
 * journal. Each function writes one sentence into buf, on one line, and returns buf. Pure.
 */
#pragma once

#include <stddef.h>

#include "numerics/judge/numerics.h"

/* Writes "all_reduce #812 on dp". */
char *cw_numerics_text_call(const struct cw_numerics_job *job, uint32_t sample, char *buf,
			    size_t len);
/* Writes "rank 5 was the first to feed …". */
char *cw_numerics_text_first(const struct cw_numerics_job *job,
			     const struct cw_numerics_report *said, uint32_t i, char *buf,
			     size_t len);
char *cw_numerics_text_row(const struct cw_numerics_job *job, const struct cw_numerics_row *row,
			   char *buf, size_t len);
char *cw_numerics_text_headroom(const struct cw_numerics_job *job,
				const struct cw_numerics_headroom *h, char *buf, size_t len);
char *cw_numerics_text_range(const struct cw_numerics_job *job, const struct cw_numerics_range *r,
			     char *buf, size_t len);
/* A function that writes a divergence or a rounding of the report. */
typedef char *cw_numerics_text_divergence_fn(const struct cw_numerics_job *job,
					     const struct cw_numerics_report *said,
					     const struct cw_numerics_divergence *d, char *buf,
					     size_t len);
char *cw_numerics_text_divergence(const struct cw_numerics_job *job,
				  const struct cw_numerics_report *said,
				  const struct cw_numerics_divergence *d, char *buf, size_t len);
/* Writes one of the report's roundings. */
char *cw_numerics_text_rounding(const struct cw_numerics_job *job,
				const struct cw_numerics_report *said,
				const struct cw_numerics_divergence *d, char *buf, size_t len);
char *cw_numerics_text_imbalance(const struct cw_numerics_job *job,
				 const struct cw_numerics_imbalance *m, char *buf, size_t len);
char *cw_numerics_text_suspect(const struct cw_numerics_job *job,
			       const struct cw_numerics_suspect *s, char *buf, size_t len);
