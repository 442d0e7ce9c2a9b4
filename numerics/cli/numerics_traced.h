/* SPDX-License-Identifier: Apache-2.0 */
/* What `numerics` shows of steps that collwatch.torch traced: each call, out of the file. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "numerics/read/tensor_lines.h"

#define NUMERICS_STEPS_MAX 64u

/* Steps that were asked for. */
struct numerics_steps {
	struct {
		int64_t first, last;
	} ranges[NUMERICS_STEPS_MAX];
	uint32_t n;
};

/* "1,3,10-20" or "all", besides what is there. -EINVAL otherwise, -E2BIG too many of them. */
int numerics_steps_parse(const char *text, struct numerics_steps *steps);
bool numerics_steps_has(const struct numerics_steps *steps, int64_t step);

/* Those that were asked for, and which others are there. Reads the files once more; blocks. */
void numerics_traced_show(FILE *out, const struct cw_tensor_lines *in,
			  const struct numerics_steps *asked);
/*
 * Into a collwatch.modules/1: `trace`, calls of the steps that were asked for, and
 * `trace_left_out`, how many more there are. 0 or -errno.
 */
int numerics_traced_doc(const struct cw_tensor_lines *in, const struct numerics_steps *asked,
			json_t *doc);
