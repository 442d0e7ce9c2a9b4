/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the call stacks of the ops in a reply. Ranks of a job mostly issue the same calls from
 * the same lines. The reply therefore contains each text once for all processes of the node.
 */
#pragma once

#include "model/text_set.h"
#include "proto/messages.h"
#include "record/record_reader.h"

/*
 * Most bytes of stacks in a reply. Even the largest number of ops leaves this part of a frame free.
 */
#define CW_WINDOW_MAX_STACK_BYTES (128u << 10)
/*
 * Most stacks that we read for a reply. Each takes some hundred reads of a record, which must not
 * block the loop.
 */
#define CW_WINDOW_MAX_STACK_LOOKS 256u

struct cw_window_stacks {
	struct cw_text_set texts;
	uint32_t looks_left;
	const struct cw_record *record; /* the record that known[] is about */
	uint32_t known[CW_REC_STACKS]; /* per stack of the record: number in texts + 1, 0 = not read
					  yet */
};

/* The caller finally owns stacks->texts. */
void cw_window_stacks_init(struct cw_window_stacks *stacks);

/*
 * Replaces the stack numbers of a record's ops by numbers of texts, or by 0 if there is no room.
 * Returns 0 or -ENOMEM.
 */
int cw_window_stacks_of(struct cw_window_stacks *stacks, const struct cw_record *record,
			struct cw_msg_op *ops, size_t n);
