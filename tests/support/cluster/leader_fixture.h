/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster in memory that the tests of leaders share, and their checks of an alert. */
#pragma once

#include "cluster.h"

/* New for each test: nine ranks on three nodes. One node leads. */
extern struct cluster c;

void leader_setup(void);
void leader_teardown(void);

/* Gives the message to the leader on that node, as if its own node had sent it. */
void leader_hear(struct network_node *n, const struct cw_message *sent);

/* Returns the time from the fault of c to the alert. */
double leader_alert_delay_s(const struct cluster_alert *a);
/* True if one of the notes on the alert's coverage contains the text. */
bool leader_alert_has_note(const struct cluster_alert *a, const char *text);
