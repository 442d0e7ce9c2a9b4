/* SPDX-License-Identifier: Apache-2.0 */
/* What the version before does not know of messages, and what it makes of the rest. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lab/vnet/network.h"

/*
 * The frame as that version would have written it, or would read it: *ret is the caller's. 0,
 * -EBADMSG, -ENOMEM.
 */
int network_old_version_frame(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len);
/* To it, a route is the job: puts in what ranks.job_of_route() says. Nothing of it is copied. */
void network_old_version_name_job(const struct network_config *config, struct cw_message *m);
