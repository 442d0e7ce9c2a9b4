/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first tensor with NaN or infinity that a process passed as input to an op
 * (docs/design/summaries.md#first-nan-or-infinity). The daemon searches for such a tensor at each
 * sample of the record. Digests, `status` and evidence show it. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_reader.h"

struct cw_nonfinite_input {
	int64_t seen_ns; /* time when we found the tensor; 0 = none yet */
	uint64_t comm_id;
	char comm_name[32];
	struct cw_rec_summary tensor_stats; /* copied from the record; untrusted */
};

/*
 * Searches the record for such a tensor. Call this function after a refresh of the record. Returns
 * true only when it finds the first one.
 */
bool cw_nonfinite_input_find(struct cw_nonfinite_input *nonfinite_input,
			     const struct cw_record *record, int64_t now_ns);

/* Writes "rank 3 fed 12 NaN and 0 Inf among 256 fp32 into all_reduce #41 on dp" to buf. */
void cw_nonfinite_input_format(const struct cw_nonfinite_input *nonfinite_input, int32_t rank,
			       char *buf, size_t len);
