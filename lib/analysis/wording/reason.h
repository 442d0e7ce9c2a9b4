/* SPDX-License-Identifier: Apache-2.0 */
/* Where a culprit is and what it is doing there, in one sentence. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"
#include "model/saying.h"

/* Fills c->said with this sentence. */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* "killed by SIGKILL", "exited with status 1"; empty if it is not known. */
struct cw_clause reason_of_death(const struct diagnosis *diag, const struct cw_snap_rank *r);

/*
 * Text such as "stopped by SIGSTOP sent by …" or "held by a debugger": what keeps the whole process
 * from running, according to the verdict. Empty if nothing does.
 */
struct cw_clause reason_of_halt(const struct diagnosis *diag, uint32_t rank);

/*
 * Where a live process is now: "outside NCCL", "inside ncclCommAbort", "held by a debugger". Empty
 * if that is not known.
 */
struct cw_clause reason_of_place(const struct diagnosis *diag, uint32_t rank);

/* True if the rank died inside the call that the others wait in, not on its way there. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);
/* True if the rank made the call that the others wait in, whether or not the call returned. */
bool reason_has_entered(const struct diagnosis *diag, uint32_t rank);
