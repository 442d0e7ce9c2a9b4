/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the files and servers that the configuration names, for `collwatch doctor`: keys,
 * certificates, the state directory's space, the webhook's server. It checks them with the rights
 * of the user that runs it, and changes nothing. Run it in a process of its own: it may block for
 * some seconds.
 */
#pragma once

#include <jansson.h>

#include "common/err.h"
#include "daemon/config/config.h"

/*
 * Returns a new reference to [{"name","what","fix" or null,"stops","note"}], or NULL if out of
 * memory. "stops": the finding keeps the daemon from starting. If config is NULL, the configuration
 * is unreadable, and err says why.
 */
json_t *cw_self_check(const struct cw_config *config, const struct cw_err *err);
