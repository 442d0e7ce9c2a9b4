/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a reader of all of a rank's summaries tells the rank which ones it has (COLLWATCH_COMPLETE):
 * a file in that directory, which both map. The record itself is written by the rank alone.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"

/* Of cw_rec_header.pid and .created_wall_ns. */
#define CW_SUMMARY_TAKEN_SUFFIX ".taken"
#define CW_SUMMARY_TAKEN_NAME "%u-%llu" CW_SUMMARY_TAKEN_SUFFIX
#define CW_SUMMARY_TAKEN_MAGIC UINT64_C(0x6e656b6174776363) /* "ccwtaken" */

struct cw_summary_taken {
	uint64_t magic;
	/* `publish` of the last one read in each place of the ring; only grows. Atomic. */
	uint64_t newest[CW_REC_SUMMARY_RING];
};
