/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Call stacks of the ops in a reply: each text once, whichever of the node's processes it is from;
 * ranks of a job mostly issue the same calls from the same lines.
 */
#pragma once

#include "common/text_set.h"
#include "proto/messages.h"
#include "record/record_reader.h"

/* Beside as many ops as a reply takes, the rest of a frame. */
#define CW_WINDOW_MAX_STACK_BYTES (128u << 10)
/* A stack is some hundred reads of a record: the loop must not be held by them. */
#define CW_WINDOW_MAX_STACK_LOOKS 256u

struct cw_window_stacks {
	struct cw_text_set texts;
	uint32_t looks_left;
	const struct cw_record *record; /* whose numbers are known */
	uint32_t known[CW_REC_STACKS];  /* of record: number in texts + 1, 0 = not looked at */
};

/* The texts are the caller's in the end. */
void cw_window_stacks_init(struct cw_window_stacks *stacks);

/* Gives the ops of a record the numbers of the texts; 0 where there is no more room. 0, -ENOMEM. */
int cw_window_stacks_of(struct cw_window_stacks *stacks, const struct cw_record *record,
			struct cw_msg_op *ops, size_t n);
