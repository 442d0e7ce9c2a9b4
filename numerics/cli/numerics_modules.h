/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the report of `numerics` on modules and operators: single sentences, the whole text, and
 * the collwatch.modules/1 document.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "numerics/judge/modules.h"
#include "numerics/read/tensor_lines.h"

/*
 * Writes "rank 2 was the first …". Each function from here to numerics_modules_stop() writes one
 * line into buf. said must have a first event.
 */
char *numerics_modules_first(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     char *buf, size_t len);
char *numerics_modules_row(const struct cw_tensor_lines *in, const struct cw_modules_row *row,
			   char *buf, size_t len);
/* Writes a difference between replicas. line: the comparison. i: index into its differences. */
char *numerics_modules_replica(const json_t *line, size_t i, char *buf, size_t len);
char *numerics_modules_coverage(const struct cw_tensor_lines *in, char *buf, size_t len);

/* Writes a sentence about a line of the program at which it stopped by itself. */
char *numerics_modules_stop(const struct cw_tensor_lines_file *file, const json_t *stop, char *buf,
			    size_t len);
/* Prints a call and its statistics as lines of text. */
void numerics_modules_show_call(FILE *out, const json_t *frame);

bool numerics_modules_is_alarming(const struct cw_tensor_lines *in,
				  const struct cw_modules_report *said);
/*
 * True if the files contain data of a whole step. Otherwise they prove nothing about the numbers.
 */
bool numerics_modules_has_looked(const struct cw_tensor_lines *in);
/*
 * Prints the report. last: the number of frames to show before the first bad one, and of lines of
 * code to show before a stop.
 */
void numerics_modules_show(FILE *out, const struct cw_tensor_lines *in,
			   const struct cw_modules_report *said, size_t last);
/* Makes the document. New reference; NULL = out of memory. */
json_t *numerics_modules_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     size_t last);
