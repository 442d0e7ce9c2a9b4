/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the files and servers that the configuration names, for `collwatch doctor`. These are
 * keys, certificates, the space in the state directory, and the webhook's server. The checks have
 * the rights of the user that runs them, and they change nothing. Run them in a process of their
 * own, because they may block for some seconds.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "daemon/config/config.h"

/*
 * Returns a new reference to [{"name","what","fix" or null,"stops","note"}]; NULL = out of memory.
 * "stops": the daemon cannot start with this fault. config: NULL = the configuration is unreadable,
 * for the reason in err.
 */
json_t *cw_self_check(const struct cw_config *config, const struct cw_err *err);
