/* SPDX-License-Identifier: Apache-2.0 */
/* Could the webhook's server be reached, and does its certificate hold? Nothing is posted. */
#pragma once

#include "common/err.h"

#define CW_WEBHOOK_PROBE_MS 5000

enum cw_webhook_probe {
	CW_WEBHOOK_PROBE_OK = 0,
	CW_WEBHOOK_PROBE_UNREACHABLE,
	CW_WEBHOOK_PROBE_TLS,
};

/*
 * Looks its name up, connects, and shakes hands where it is https; blocks for CW_RESOLVE_NS and
 * CW_WEBHOOK_PROBE_MS at most. err: why. On a loop of its own: not for the daemon's.
 */
enum cw_webhook_probe cw_webhook_probe(const char *url, struct cw_err *err);
