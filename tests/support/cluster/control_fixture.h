/* SPDX-License-Identifier: Apache-2.0 */
/* Data for the control socket: a cluster in memory, and a store with incidents of two users. */
#pragma once

#include "daemon/control/control.h"
#include "tests/support/cluster/cluster.h"

/* New for each test: four ranks on two nodes, five seconds after their start. */
extern struct cluster c;
extern struct cw_control_source source;
/* The store's directory, which only this test uses. */
extern char control_dir[];

/* Makes a store with the incidents 00000000000000aa of uid 1000 and …bb of uid 1001. */
void control_setup(void);
void control_teardown(void);
/* Adds an incident to the store. */
void control_put(const char *id, int uid, const char *job);
