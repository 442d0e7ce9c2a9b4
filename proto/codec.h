/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts messages to bytes and back. Several threads must not use one message at a time. Does not
 * block. However hostile the sender, we allocate at most CW_CODEC_MAX_MEMORY per message.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

#define CW_CODEC_MAX_MEMORY (64u << 20)

/*
 * Encodes msg with its frame header into a fresh buffer *ret_buf, which the caller frees with
 * free(). Returns 0; -EMSGSIZE: the message does not fit a frame; -EINVAL: a required string is
 * NULL, or the type is unknown; or -ENOMEM.
 */
int cw_message_encode(const struct cw_message *msg, uint8_t **ret_buf, size_t *ret_len);

/*
 * Turns the frame of a digest, from cw_message_encode(), into the frame of a digest copy, or back.
 * `type` is the new type: CW_MSG_DIGEST or CW_MSG_DIGEST_COPY. The two frames differ only in the
 * tag of the type.
 */
void cw_message_set_digest_type(uint8_t *frame, uint32_t type);

/*
 * Decodes one frame's payload. A message of an unknown type yields CW_MSG_NONE. Returns 0;
 * -EBADMSG: the payload is malformed or exceeds a limit of proto/messages.h; or -ENOMEM.
 */
int cw_message_decode(const uint8_t *payload, size_t len, struct cw_message **ret_msg);

/*
 * Like cw_message_decode(), but for a payload from another node. In a digest copy we only count the
 * ranks, because the next copy usually replaces this one before any use. Its `ranks` are NULL until
 * cw_message_make_whole() decodes them. That function returns 0, -EBADMSG or -ENOMEM. After an
 * error the message counts as whole, but has no ranks.
 */
int cw_message_decode_received(const uint8_t *payload, size_t len, struct cw_message **ret_msg);
bool cw_message_is_whole(const struct cw_message *msg);
int cw_message_make_whole(struct cw_message *msg);

/* Frees the message. msg may be NULL. Returns NULL. */
struct cw_message *cw_message_free(struct cw_message *msg);

/* Returns the name of the type for logs, such as "digest" or "agent_hello"; never NULL. */
const char *cw_message_name(unsigned type);
