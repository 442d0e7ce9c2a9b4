/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the ops of a window that belong to a range of collectives. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

/*
 * Moves the collectives from from_seq to to_seq, with their whole groups, to the front of ops.
 * Returns the number of moved ops, at most max. We never move a part of a group, because the
 * receiver could not compare it.
 */
size_t cw_op_range_select(struct cw_msg_op *ops, size_t n, uint64_t from_seq, uint64_t to_seq,
			  size_t max);
