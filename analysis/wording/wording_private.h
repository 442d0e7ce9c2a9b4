/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that put a verdict into words, and nobody else. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills c->reason (reason.c). */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* "killed by SIGKILL", "exited with status 1"; empty where it is not known. Returns buf. */
const char *reason_of_death(const struct cw_snap_rank *r, char *buf, size_t len);

/* It ended in the very call that the others wait in, and not on its way there. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);

/* Fills v->ruled_out (ruled_out.c). Returns 0 or -ENOMEM. */
int ruled_out_list(struct diagnosis *diag);
