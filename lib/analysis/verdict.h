/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: it makes a verdict from a snapshot (docs/design/verdict.md). Pure: the same snapshot
 * gives the same verdict on any machine, live or months later.
 *
 * A verdict says what the snapshot shows *if* the pending ops stay as they are.
 * analysis/stall/stall.h decides whether they have been pending long enough to alert a person.
 */
#pragma once

#include "model/verdict_types.h"

/*
 * Fills *ret with the verdict on snap. The caller owns *ret and frees it with cw_verdict_fini().
 * Any thread; does not block; O(ranks + members + window ops). Returns 0, or -ENOMEM with *ret
 * unchanged.
 */
int cw_verdict_compute(const struct cw_snapshot *snap, struct cw_verdict *ret);

/*
 * Like cw_verdict_compute(), but fills one verdict for each independent trouble of the job. No rank
 * is a culprit of two troubles. No rank waits, even indirectly, for the culprits of two troubles.
 * The first verdict equals that of cw_verdict_compute().
 */
int cw_verdict_compute_all(const struct cw_snapshot *snap, struct cw_verdict_list *ret);
