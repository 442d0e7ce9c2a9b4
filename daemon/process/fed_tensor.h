/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first tensor with NaN or infinity that a process fed into an op (docs/design.md section 6):
 * noticed when its record is sampled, said once in the journal, kept for `status` and for evidence.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/record_reader.h"

#define CW_MESSAGE_ID_FED_TENSOR "8e3dfc1a6b6f4a0c9d1f7b0e54a6c2d7"

struct cw_fed_tensor {
	int64_t seen_ns; /* 0 = none yet */
	uint64_t comm_id;
	char comm_name[32];
	struct cw_rec_summary numbers; /* a stranger's */
};

/* Whose it is, for the journal. */
struct cw_fed_owner {
	pid_t pid;
	uid_t uid;
	int32_t rank; /* -1 = no label */
	const char *job;
};

/* After a refresh of the record. True when there is one that was not there before; says it. */
bool cw_fed_tensor_look(struct cw_fed_tensor *fed, const struct cw_record *record, int64_t now_ns,
			const struct cw_fed_owner *owner);

/* "rank 3 fed 12 NaN and 0 Inf among 256 fp32 into all_reduce #41 on dp" */
void cw_fed_tensor_format(const struct cw_fed_tensor *fed, int32_t rank, char *buf, size_t len);
