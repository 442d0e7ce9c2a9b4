/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: a snapshot goes in, a verdict comes out (docs/design/verdict.md). Pure: the same
 * snapshot gives the same verdict on any machine, live or months later.
 *
 * A verdict says what the snapshot shows *if* the pending ops stay as they are. Whether they have
 * been pending long enough to bother anybody is the business of analysis/stall/stall.h.
 */
#pragma once

#include "model/verdict_types.h"

/*
 * Fills *ret with the verdict on snap; the caller owns it and calls cw_verdict_fini(). Loop thread
 * or any; does not block; O(ranks + members + window ops). Returns 0 or -ENOMEM (then *ret is
 * untouched).
 */
int cw_verdict_compute(const struct cw_snapshot *snap, struct cw_verdict *ret);

/*
 * Like cw_verdict_compute(), but returns one verdict for each independent trouble of the job. No
 * rank is a culprit of two troubles, and no rank waits, even indirectly, for the culprits of two.
 * The first verdict equals that of cw_verdict_compute().
 */
int cw_verdict_compute_all(const struct cw_snapshot *snap, struct cw_verdict_list *ret);
