/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of messages that the previous version does not know, and its view of the other parts.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lab/vnet/network.h"

/*
 * Returns the frame as the previous version would write or read it. The caller owns *ret. 0,
 * -EBADMSG or -ENOMEM.
 */
int network_old_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len);
/*
 * The previous version identifies a job by a hash. Fills in the result of ranks.job_of_hash().
 * Copies nothing.
 */
void network_old_version_name_job(const struct network_config *config, struct cw_message *m);
