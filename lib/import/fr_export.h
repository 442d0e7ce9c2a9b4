/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a snapshot as dumps of PyTorch's Flight Recorder, one file per rank. The recorder's
 * viewers (torchfrtrace, torch.distributed.flight_recorder) can then open collwatch's recordings.
 *
 * The format has no place for liveness, roots and reduction operators, nor for communicators in
 * creation. After a round trip, a dead rank appears as a rank that never entered its call. Calls
 * have host times; device times are unknown. One thread; blocks on files.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "model/snapshot.h"

struct cw_fr_export {
	uint32_t n_dumps;
	/* Ranks without a dump: no record, or no number that readers accept. */
	uint32_t n_unnumbered;
	uint32_t n_unnamed; /* communicators that we omit because some members are unknown */
};

/*
 * Writes DIR/nccl_trace_rank_N for each rank with a record. Creates DIR if it is missing. An
 * existing file is an error (-EEXIST). A failed write is also an error. Returns 0 or -errno.
 */
int cw_flight_recorder_write(const struct cw_snapshot *snap, const char *dir,
			     struct cw_fr_export *ret, struct cw_err *err);
