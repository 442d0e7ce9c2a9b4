/* SPDX-License-Identifier: Apache-2.0 */
/* The place and the activity of a culprit, in one sentence. Pure. */
#pragma once

#include "analysis/culprit/diagnosis.h"
#include "model/saying.h"

/* Fills c->said with the place and the activity of the culprit. */
void reason_of_culprit(const struct diagnosis *diag, struct cw_culprit *c);

/* Returns how a process ended: "killed by SIGKILL", "exited with status 1". Empty if not known. */
struct cw_clause reason_of_death(const struct diagnosis *diag, const struct cw_snap_rank *r);

/*
 * Returns what keeps the rank's whole process from running, according to the verdict: "stopped by
 * SIGSTOP sent by …", "held by a debugger". Empty if nothing does.
 */
struct cw_clause reason_of_halt(const struct diagnosis *diag, uint32_t rank);

/*
 * Returns the place of a live process now: "outside NCCL", "inside ncclCommAbort", "held by a
 * debugger". Empty if the place is not known.
 */
struct cw_clause reason_of_place(const struct diagnosis *diag, uint32_t rank);

/* True if the rank died inside the call that the others wait in, not before it. */
bool reason_died_inside(const struct diagnosis *diag, uint32_t rank);
/* True if the rank made the call that the others wait in, whether or not the call returned. */
bool reason_has_entered(const struct diagnosis *diag, uint32_t rank);
