/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of messages that the previous version does not know, and its view of the others. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lab/vnet/network.h"

/*
 * The frame as that version would have written it, or would read it: the caller owns *ret. 0,
 * -EBADMSG, -ENOMEM.
 */
int network_old_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len);
/*
 * For that version, a hash identifies the job: fills in the result of ranks.job_of_hash().
 * Copies nothing.
 */
void network_old_version_name_job(const struct network_config *config, struct cw_message *m);
