/* SPDX-License-Identifier: Apache-2.0 */
/* Where a culprit is and what it is doing there, in one sentence. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"

/* Fills c->reason with this sentence. */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* "killed by SIGKILL", "exited with status 1"; empty where it is not known. Returns buf. */
const char *reason_of_death(const struct cw_snap_rank *r, char *buf, size_t len);

/*
 * Text such as "stopped by SIGSTOP sent by …" or "held by a debugger": what keeps the whole process
 * from running, according to the verdict. Empty if nothing does. Returns buf.
 */
const char *reason_of_halt(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len);

/*
 * Where a live process is now: "outside NCCL", "inside ncclCommAbort", "held by a debugger". Empty
 * if that is not known. Returns buf.
 */
const char *reason_of_place(const struct diagnosis *diag, uint32_t rank, char *buf, size_t len);

/* True if the rank died inside the call that the others wait in, not on its way there. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);
/* True if the rank made the call that the others wait in, whether or not the call returned. */
bool reason_has_entered(const struct diagnosis *diag, uint32_t rank);
