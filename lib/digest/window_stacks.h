/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the call stacks of the ops in a reply. Ranks of a job mostly issue the same calls from
 * the same lines. The reply therefore contains each text only once for all processes of the node.
 */
#pragma once

#include "model/text_set.h"
#include "proto/messages.h"
#include "record/record_reader.h"

/*
 * Limit of the bytes of stacks in a reply. A reply with the largest number of ops still has this
 * much room in its frame.
 */
#define CW_WINDOW_MAX_STACK_BYTES (128u << 10)
/*
 * Limit of the stacks that we read for a reply. Each stack takes some hundred reads of a record.
 * Without a limit, these reads would block the loop.
 */
#define CW_WINDOW_MAX_STACK_LOOKS 256u

struct cw_window_stacks {
	struct cw_text_set texts;
	uint32_t looks_left;
	const struct cw_record *record; /* the record of the numbers in known[] */
	/* Per stack of the record: number in texts + 1; 0 = not read yet. */
	uint32_t known[CW_REC_STACKS];
};

/* Prepares an empty collection. At the end the caller owns stacks->texts. */
void cw_window_stacks_init(struct cw_window_stacks *stacks);

/*
 * Replaces the stack numbers of a record's ops by numbers of texts, or by 0 if the text does not
 * fit. Returns 0 or -ENOMEM.
 */
int cw_window_stacks_of(struct cw_window_stacks *stacks, const struct cw_record *record,
			struct cw_msg_op *ops, size_t n);
