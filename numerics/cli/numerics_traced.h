/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows steps that collwatch.torch traced. It reads each call from the file when it shows the call.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "numerics/read/tensor_lines.h"

#define NUMERICS_STEPS_MAX 64u

/* The steps that the user named. */
struct numerics_steps {
	struct {
		int64_t first, last;
	} ranges[NUMERICS_STEPS_MAX];
	uint32_t n;
};

/*
 * Adds "1,3,10-20" or "all" to the steps. Returns 0, -EINVAL for other text, or -E2BIG for too
 * many steps.
 */
int numerics_steps_parse(const char *text, struct numerics_steps *steps);
bool numerics_steps_has(const struct numerics_steps *steps, int64_t step);

/*
 * Prints the steps that the user named, and lists the other steps in the files. Reads the files
 * once more; blocks.
 */
void numerics_traced_show(FILE *out, const struct cw_tensor_lines *in,
			  const struct numerics_steps *asked);
/*
 * Adds two members to doc, a collwatch.modules/1: `trace`, the calls of the requested steps, and
 * `trace_over_limit`, the number of further calls. Returns 0 or -errno.
 */
int numerics_traced_doc(const struct cw_tensor_lines *in, const struct numerics_steps *asked,
			json_t *doc);
