/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster in memory that the tests of leaders share, and their checks of an alert. */
#pragma once

#include "cluster.h"

/* Fresh for each test: nine ranks on three nodes. One node leads. */
extern struct cluster c;

void leader_setup(void);
void leader_teardown(void);

/* The leader on that node gets the message, as if its own node had sent it. */
void leader_hear(struct network_node *n, const struct cw_message *sent);

/* From the fault of c to its alert. */
double leader_alert_delay_s(const struct cluster_alert *a);
/* Whether one of the notes on its coverage contains the text. */
bool leader_alert_has_note(const struct cluster_alert *a, const char *text);
