/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's half of record/summary_taken.h: tells a rank which of its summaries have been read,
 * so that it overwrites no others.
 *
 * Not thread-safe; does not wait for the rank.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_taken.h"

/*
 * The file in dir of the record that says this header, there from now on and complete from the
 * first moment. 0 or -errno.
 */
int cw_summary_taking_start(const char *dir, const struct cw_rec_header *header,
			    struct cw_summary_taken **ret);

/* All up to newest[CW_REC_SUMMARY_RING]. */
void cw_summary_taking_tell(struct cw_summary_taken *taken, const uint64_t newest[]);

/* The rank waits no longer. The file stays, for it may look for it yet. Takes NULL. */
void cw_summary_taking_end(struct cw_summary_taken *taken);
