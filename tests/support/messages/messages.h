/* SPDX-License-Identifier: Apache-2.0 */
/* Makes messages for all tests that send or receive them. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message_memory.h"
#include "proto/messages.h"

/*
 * Returns a message of this type in which every field has its own value. The values are the same in
 * each run, and the golden bytes in tests/data/wire come from them. Static; NULL = no such type.
 */
const struct cw_message *cw_sample_message(unsigned type);

/*
 * Returns a random valid message, allocated from `memory`. It depends only on *seed, which the
 * function advances.
 */
struct cw_message *cw_random_message(struct cw_message_memory *memory, unsigned type,
				     unsigned *seed);

/* True if the messages have the same type and equal fields. The sender's version does not count. */
bool cw_message_is_equal(const struct cw_message *a, const struct cw_message *b);

/*
 * Decodes a frame. The caller releases the message with cw_message_free(). Calls abort() if the
 * frame is not valid.
 */
struct cw_message *cw_message_of_frame(const uint8_t *frame, size_t len);
