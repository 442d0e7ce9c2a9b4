/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the frames of a daemon of an invented later version. It knows all fields of this version,
 * and further fields in each message.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the frame as the later version would write it, with the number of the next version. The
 * envelope, its message and all messages inside it have unknown fields of each wire type. The
 * caller owns *ret. Returns 0; -EBADMSG if the frame is malformed, or memory ran out while we read
 * it; -EMSGSIZE if the result is too long; -ENOMEM.
 */
int newer_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len);
