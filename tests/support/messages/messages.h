/* SPDX-License-Identifier: Apache-2.0 */
/* Messages for tests of everything that sends or receives them. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/message_memory.h"
#include "proto/messages.h"

/*
 * A message of the type with every field set to a value of its own, the same in each run. The
 * golden bytes in tests/data/wire come from it. Static; NULL = no such type.
 */
const struct cw_message *cw_sample_message(unsigned type);

/* A random valid message that lies in the memory; reproducible from *seed, which it advances. */
struct cw_message *cw_random_message(struct cw_message_memory *memory, unsigned type,
				     unsigned *seed);

/* Same type and the same in every field; the sender's version does not count. */
bool cw_message_is_equal(const struct cw_message *a, const struct cw_message *b);

/* Decodes a frame; cw_message_free() it. abort() if it is no valid frame. */
struct cw_message *cw_message_of_frame(const uint8_t *frame, size_t len);
