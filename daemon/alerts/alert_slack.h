/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats an incident for Slack's incoming webhooks: "text" for the notification, "blocks" for the
 * channel. Job labels and commands come from users, so we escape them and cut them to Slack's
 * limits: Slack refuses the whole message if one part breaks a limit.
 *
 * Pure.
 */
#pragma once

#include <jansson.h>

/* incident is a collwatch.incident/1. Returns a new reference; NULL = out of memory. */
json_t *cw_alert_slack(const json_t *incident);
/* Like cw_alert_slack(), but postmortem is a collwatch.postmortem/1. */
json_t *cw_alert_slack_postmortem(const json_t *postmortem);
/* Like cw_alert_slack(), but folded is a collwatch.folded/1. */
json_t *cw_alert_slack_folded(const json_t *folded);
