/* SPDX-License-Identifier: Apache-2.0 */
/* Where a culprit is and what it is doing there, in one sentence. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills c->reason. */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* "killed by SIGKILL", "exited with status 1"; empty where it is not known. Returns buf. */
const char *reason_of_death(const struct cw_snap_rank *r, char *buf, size_t len);

/*
 * "stopped by SIGSTOP sent by …", "held by a debugger": what the verdict says keeps the whole
 * process from running; empty where nothing does. Returns buf.
 */
const char *reason_of_halt(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len);

/*
 * Where a process that lives is now: "outside NCCL", "inside ncclCommAbort", "held by a debugger";
 * empty where that is not known. Returns buf.
 */
const char *reason_of_place(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len);

/* It ended in the very call that the others wait in, and not on its way there. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);
/* It made that call, whether or not it came back. */
bool reason_has_entered(const struct diagnosis *diag, uint32_t rank);
