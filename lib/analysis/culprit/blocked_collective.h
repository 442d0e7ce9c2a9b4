/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that is blocked although no visible rank is missing at its gate
 * (analysis/waits/waitgraph.h). There are three cases. All members are inside and the call does not
 * end. Or invisible members may be missing. Or the two halves of a message do not fit. Pure.
 */
#pragma once

#include "analysis/culprit/engine_context.h"

/*
 * Returns the name of a host-blocking call in verdicts: CW_DETAIL_INIT, CW_DETAIL_SPLIT and so on.
 */
enum cw_detail blocked_collective_host_detail(uint32_t op_kind);

/* Fills *f for a gate at which no visible rank is missing. */
void blocked_collective_classify(const struct engine_context *s, uint32_t gate, struct finding *f);

/*
 * Returns the only rank that is in every pair of members whose sizes differ. All other members
 * agree with each other. CW_SNAP_NONE = there is no such rank, or only one such pair.
 */
uint32_t blocked_collective_common_party(const struct engine_context *s, uint32_t comm);

/*
 * Compares the setup of the members if blocked_collective_classify() found no culprit for the gate.
 * In the comm's first call a difference explains the hang. In a later call f->setup only mentions
 * the difference. Returns 0 or -ENOMEM.
 */
int blocked_collective_compare_setup(struct engine_context *s, uint32_t gate, struct finding *f);

/*
 * Judges the network connections if the two functions above found no culprit. A fault of a
 * connection or GPU becomes f->connections and the detail of *f. Returns 0 or -ENOMEM.
 */
int blocked_collective_judge_connections(struct engine_context *s, uint32_t gate,
					 struct finding *f);
