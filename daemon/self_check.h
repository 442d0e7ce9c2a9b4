/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is wrong with what the configuration names, for `collwatch doctor`: keys, certificates, the
 * state directory's space, the webhook's server. Looks as whoever runs it, at what that user may
 * read, and changes nothing. For a process of its own: it may block for some seconds.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "daemon/config/config.h"

/*
 * New reference: [{"name","what","fix" or null,"stops": the daemon does not start with it}].
 * config NULL: it could not be read, err says why. NULL = out of memory.
 */
json_t *cw_self_check(const struct cw_config *config, const struct cw_err *err);
