/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common parts of the programs that sum tensors up for tests/gpu/sums.py. Cases come in on
 * standard input, each a struct sums_case and its data; for each engine a struct sums_result goes
 * out. Native byte order.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_math.h"

struct sums_case {
	uint64_t elements;
	uint64_t stride_words, first_word;
	uint64_t data_bytes; /* that follow; the tensor is them again and again */
	uint64_t offset;     /* of the tensor's first byte from a page's; SUMS_AT_END */
	uint32_t blocks;
	uint32_t dtype;
};

/* The tensor's last byte is the last of a page, and nothing may be read behind it. */
#define SUMS_AT_END UINT64_MAX

struct sums_result {
	/* first.publish 0 = nothing was not finite; out.publish UINT64_MAX = left out. */
	struct cw_rec_summary out, first;
	struct cw_sum_tensor_stats tensor_stats; /* of a second launch */
};

/* An engine that has no room for the tensor. */
#define SUMS_NOT_COLLECTED (-1)

/*
 * args is filled in except for out and first_out; returns 0, SUMS_NOT_COLLECTED, or the driver's
 * error.
 */
typedef int (*sums_engine_fn)(const struct sums_case *c, struct cw_summary_args *args,
			      struct sums_result *ret);

/*
 * Until standard input ends. Tensors lie in memory of this process, between pages that cannot be
 * read. Returns main()'s status.
 */
int sums_serve(const sums_engine_fn engines[], unsigned n);
