/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of a daemon of an invented later version. It knows all that this version knows, and
 * further fields in each message.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the frame as the later version writes it: with the next version's number, and with
 * unknown fields of each wire type in the envelope, in its message and in all messages inside it.
 * The caller owns *ret. 0; -EBADMSG if the frame is malformed, or memory ran out while we read it;
 * -EMSGSIZE if the result is too long; -ENOMEM.
 */
int newer_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len);
