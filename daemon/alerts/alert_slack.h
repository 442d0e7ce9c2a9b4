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

/* incident: collwatch.incident/1. New reference; NULL = out of memory. */
json_t *cw_alert_slack(const json_t *incident);
/* postmortem: collwatch.postmortem/1. */
json_t *cw_alert_slack_postmortem(const json_t *postmortem);
/* folded: collwatch.folded/1. */
json_t *cw_alert_slack_folded(const json_t *folded);
