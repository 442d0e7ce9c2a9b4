/* SPDX-License-Identifier: Apache-2.0 */
/* What `numerics` says of modules and operators: sentences, text and the collwatch.modules/1
 * document. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "numerics/judge/modules.h"
#include "numerics/read/tensor_lines.h"

/* "rank 2 was the first …"; each writes one line into buf. said has a first. */
char *numerics_modules_first(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     char *buf, size_t len);
char *numerics_modules_row(const struct cw_tensor_lines *in, const struct cw_modules_row *row,
			   char *buf, size_t len);
/* line: of a comparison of replicas; i: which of what differs in it */
char *numerics_modules_replica(const json_t *line, size_t i, char *buf, size_t len);
char *numerics_modules_coverage(const struct cw_tensor_lines *in, char *buf, size_t len);

/* Where the program stopped by itself: the line that says so. */
char *numerics_modules_stop(const struct cw_tensor_lines_file *file, const json_t *stop, char *buf,
			    size_t len);
/* A call and its numbers, as lines of text. */
void numerics_modules_show_call(FILE *out, const json_t *frame);

bool numerics_modules_is_alarming(const struct cw_tensor_lines *in,
				  const struct cw_modules_report *said);
/* Whether these files have a whole step of anything; where not, they say nothing of the numbers. */
bool numerics_modules_has_looked(const struct cw_tensor_lines *in);
/* last: how many frames before the first bad one, and lines of code before a stop. */
void numerics_modules_show(FILE *out, const struct cw_tensor_lines *in,
			   const struct cw_modules_report *said, size_t last);
/* New reference; NULL = out of memory. */
json_t *numerics_modules_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     size_t last);
