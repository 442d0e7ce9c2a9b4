/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages to bytes and back. Not thread-safe per message; no blocking; allocates, with a bound
 * (CW_CODEC_MAX_MEMORY) that a hostile sender cannot exceed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

#define CW_CODEC_MAX_MEMORY (64u << 20)

/*
 * Encodes msg with its frame header into a fresh buffer (*ret_buf, free()). -EMSGSIZE when it does
 * not fit a frame, -EINVAL when a required string is NULL or the type is unknown, -ENOMEM.
 */
int cw_message_encode(const struct cw_message *msg, uint8_t **ret_buf, size_t *ret_len);

/*
 * Makes the frame of a digest, as cw_message_encode() made it, that of its copy, or the other way:
 * type is CW_MSG_DIGEST or CW_MSG_DIGEST_COPY. All but one byte is the same.
 */
void cw_message_set_digest_type(uint8_t *frame, uint32_t type);

/*
 * Decodes one frame's payload. A message of a type this version does not know yields CW_MSG_NONE.
 * -EBADMSG when it is malformed or breaks a limit of proto/messages.h, -ENOMEM.
 */
int cw_message_decode(const uint8_t *payload, size_t len, struct cw_message **ret_msg);

/*
 * The same of what came from another node. Of a digest's copy, which the next one mostly replaces
 * before anybody needs it, the ranks are counted only: `ranks` is NULL until the message is made
 * whole. 0, -EBADMSG, -ENOMEM: it is whole in any case then, if without ranks.
 */
int cw_message_decode_received(const uint8_t *payload, size_t len, struct cw_message **ret_msg);
bool cw_message_is_whole(const struct cw_message *msg);
int cw_message_make_whole(struct cw_message *msg);

/* Takes NULL; returns NULL. */
struct cw_message *cw_message_free(struct cw_message *msg);

/* For logs: "digest", "agent_hello", …; never NULL. */
const char *cw_message_name(unsigned type);
