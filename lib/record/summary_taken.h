/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that a reader shares with a rank. A reader may request all summaries of a rank
 * (COLLWATCH_COMPLETE). It then has to confirm which summaries it has read. The file is in the
 * directory of that variable, and both processes map it. The reader does not write to the record
 * itself.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"

/* Format of the file's name: cw_rec_header.pid and .created_wall_ns. */
#define CW_SUMMARY_TAKEN_SUFFIX ".taken"
#define CW_SUMMARY_TAKEN_NAME "%u-%llu" CW_SUMMARY_TAKEN_SUFFIX
#define CW_SUMMARY_TAKEN_MAGIC UINT64_C(0x6e656b6174776363) /* "ccwtaken" */

struct cw_summary_taken {
	uint64_t magic;
	/*
	 * For each entry of the ring: the `publish` of the last summary that the reader has read.
	 * The number only grows. Atomic.
	 */
	uint64_t newest[CW_REC_SUMMARY_RING];
};
