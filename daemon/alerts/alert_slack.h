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
/* epitaph: collwatch.epitaph/1. */
json_t *cw_alert_slack_epitaph(const json_t *epitaph);
/* folded: collwatch.folded/1. */
json_t *cw_alert_slack_folded(const json_t *folded);
