/* SPDX-License-Identifier: Apache-2.0 */
/* Of the ops of a window, those that belong to a range of collectives. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

/*
 * Moves the collectives from from_seq to to_seq, and the rest of the groups they lie in, to the
 * front; at most max ops, and no half group: it cannot be compared. Returns how many.
 */
size_t cw_op_range_select(struct cw_msg_op *ops, size_t n, uint64_t from_seq, uint64_t to_seq,
			  size_t max);
