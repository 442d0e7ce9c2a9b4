/* SPDX-License-Identifier: Apache-2.0 */
/* One snapshot under construction and the verdict on it, for the tests of the engine. */
#pragma once

#include "tests/support/snapshot/snap_builder.h"

/* New for each test: eight ranks on two nodes. */
extern struct sb *b;
extern struct cw_snapshot *snap;
extern struct cw_verdict v;

void verdict_setup(void);
void verdict_teardown(void);

/* Makes the snapshot and the verdict on it. */
void judge(void);

/* Makes the verdict and asserts that it is the expected one. Culprits and victims are rank sets. */
void expect(unsigned verdict_class, const char *detail, const char *culprits, const char *victims);
