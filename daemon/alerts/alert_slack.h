/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An incident as Slack's incoming webhooks want it: "text" for the notification, "blocks" for the
 * channel. Job labels and commands come from users: they are escaped, and cut to Slack's limits,
 * because Slack refuses a message that breaks one of them as a whole.
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
