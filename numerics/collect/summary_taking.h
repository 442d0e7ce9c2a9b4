/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's half of record/summary_taken.h. It tells a rank which summaries we have read. The
 * rank overwrites no others.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_taken.h"

/*
 * Creates the file in dir for the record with this header. The file is complete when its name
 * appears. Returns 0 or -errno.
 */
int cw_summary_taking_start(const char *dir, const struct cw_rec_header *header,
			    struct cw_summary_taken **ret);

/*
 * Marks all summaries up to newest[i] as read, for each slot i of the ring (CW_REC_SUMMARY_RING
 * slots).
 */
void cw_summary_taking_update(struct cw_summary_taken *taken, const uint64_t newest[]);

/* Makes the rank stop waiting. The file stays, because the rank may still open it. Accepts NULL. */
void cw_summary_taking_end(struct cw_summary_taken *taken);
