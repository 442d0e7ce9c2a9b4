/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader's half of record/summary_taken.h: tells a rank which summaries we have read, so that
 * it overwrites no others.
 *
 * Not thread-safe; does not wait for the rank.
 */
#pragma once

#include <stdint.h>

#include "record/record_layout.h"
#include "record/summary_taken.h"

/*
 * Creates the file in dir for the record with this header; the file is complete from its first
 * moment. 0 or -errno.
 */
int cw_summary_taking_start(const char *dir, const struct cw_rec_header *header,
			    struct cw_summary_taken **ret);

/* Marks all summaries up to newest[CW_REC_SUMMARY_RING] as read. */
void cw_summary_taking_update(struct cw_summary_taken *taken, const uint64_t newest[]);

/* The rank stops waiting. The file stays, because the rank may still open it. Takes NULL. */
void cw_summary_taking_end(struct cw_summary_taken *taken);
