/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot as dumps of PyTorch's Flight Recorder, one file per rank, so that its viewers open
 * what collwatch has seen (torchfrtrace, torch.distributed.flight_recorder).
 *
 * The format has no place for liveness, roots and reduction operators, nor for communicators being
 * made: read again, a dead rank is one that never entered. Calls have the times of the host; a
 * device's are not known. One thread; blocks on files.
 */
#pragma once

#include <stdint.h>

#include "common/err.h"
#include "model/snapshot.h"

struct cw_fr_export {
	uint32_t n_dumps;
	uint32_t n_unnumbered; /* without a number readers take, or a record: no dump */
	uint32_t n_unnamed;    /* communicators whose members are not all known: left out */
};

/*
 * Writes DIR/nccl_trace_rank_N for each rank with a record; makes DIR where it is not there. A file
 * that is there already is an error (-EEXIST), as is anything that cannot be written.
 */
int cw_flight_recorder_write(const struct cw_snapshot *snap, const char *dir,
			     struct cw_fr_export *ret, struct cw_err *err);
