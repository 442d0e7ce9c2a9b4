/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether the webhook's server is reachable and its certificate is valid. Posts nothing. */
#pragma once

#include "common/err.h"

#define CW_WEBHOOK_PROBE_MS 5000

enum cw_webhook_probe {
	CW_WEBHOOK_PROBE_OK = 0,
	CW_WEBHOOK_PROBE_UNREACHABLE,
	CW_WEBHOOK_PROBE_TLS,
};

/*
 * Resolves the server's name, connects and, for https, performs the TLS handshake. Stores the
 * reason of a failure in err. Blocks for at most CW_RESOLVE_NS and CW_WEBHOOK_PROBE_MS together. It
 * runs its own event loop, so never call it from the daemon's loop.
 */
enum cw_webhook_probe cw_webhook_probe(const char *url, struct cw_err *err);
