/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats an incident for Slack's incoming webhooks. "text" is for the notification, "blocks" for
 * the channel. Job labels and commands come from users, so we escape them. We also cut them to
 * Slack's limits, because Slack refuses the whole message if one part is too long.
 *
 * Depends only on its argument.
 */
#pragma once

#include <jansson.h>

/* Formats an incident, a collwatch.incident/1. Returns a new reference; NULL = out of memory. */
json_t *cw_alert_slack(const json_t *incident);
/* Formats a folded alert, a collwatch.folded/1. Returns a new reference; NULL = out of memory. */
json_t *cw_alert_slack_folded(const json_t *folded);
