/* SPDX-License-Identifier: Apache-2.0 */
/* Where a culprit is and what it is doing there, in one sentence. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills c->reason. */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* "killed by SIGKILL", "exited with status 1"; empty where it is not known. Returns buf. */
const char *reason_of_death(const struct cw_snap_rank *r, char *buf, size_t len);

/* It ended in the very call that the others wait in, and not on its way there. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);
