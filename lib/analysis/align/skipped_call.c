/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We compare the signatures of the differing call and the calls after it, of one member of each
 * side. If a member skipped or added a call, its calls agree with those of the other member after a
 * shift by one. If a member swapped two calls, they agree crosswise. The usual side may have made
 * no further call yet. Then we predict its next call. Training loops repeat, so we look up the last
 * time that it made the same two calls.
 */
#include "analysis/align/skipped_call.h"

#include <stddef.h>

#include "analysis/align/position.h"
#include "model/signature.h"

/*
 * Signatures of calls with consecutive coll_seqs. The record's window holds at most RUN_MAX calls.
 */
#define RUN_MAX 64

struct run {
	uint64_t sig[RUN_MAX];
	uint32_t n;
};

/* Reads the signatures of the calls from coll_seq `from` on, up to the first gap in the window. */
static void read_run(const struct cw_snap_member *m, uint64_t from, struct run *run)
{
	run->n = 0;
	for (uint32_t i = 0; i < m->n_window && run->n < RUN_MAX; i++) {
		const struct cw_op *op = &m->window[i];

		if (!position_is_step(op) || op->coll_seq != from + run->n)
			continue;
		run->sig[run->n++] = cw_signature(op->kind, op->dtype, op->redop, op->root,
						  op->count, op->bytes);
	}
}

/*
 * True if a[i + da] == b[i + db] for every i at which both are known, and there is at least one
 * such i.
 */
static bool runs_match(const struct run *a, uint32_t da, const struct run *b, uint32_t db)
{
	uint32_t i = 0;

	for (; i + da < a->n && i + db < b->n; i++)
		if (a->sig[i + da] != b->sig[i + db])
			return false;
	return i > 0;
}

/*
 * Predicts the call of `usual` after coll_seq `seq`. Training loops repeat, so we take the call
 * that followed when `usual` last made the same two calls in a row. Returns false if the window
 * does not show it.
 */
static bool predict_next(const struct cw_snap_member *usual, uint64_t seq, uint64_t *ret)
{
	struct run run;
	uint64_t from = seq >= RUN_MAX ? seq - RUN_MAX + 1 : 1;

	/* If the window begins later than `from`, we start at its first call. */
	for (run.n = 0; from < seq; from++) {
		read_run(usual, from, &run);
		if (run.n == seq - from + 1)
			break;
	}
	if (run.n < 3)
		return false;
	for (uint32_t i = run.n - 2; i >= 1; i--)
		if (run.sig[i] == run.sig[run.n - 1] && run.sig[i - 1] == run.sig[run.n - 2]) {
			*ret = run.sig[i + 1];
			return true;
		}
	return false;
}

enum cw_detail skipped_call_name(const struct cw_snap_member *usual,
				 const struct cw_snap_member *odd, uint64_t seq)
{
	struct run a, b;

	read_run(usual, seq, &a);
	read_run(odd, seq, &b);
	if (!a.n || !b.n)
		return CW_DETAIL_NONE;
	/*
	 * The members of the usual side wait in the differing call, so we have not seen their next
	 * call.
	 */
	if (a.n == 1 && predict_next(usual, seq, &a.sig[1]))
		a.n = 2;
	/*
	 * If the later calls agree, or we have not seen them, the differing call is wrong. No call
	 * is missing or extra.
	 */
	if (a.n == 1 || runs_match(&a, 1, &b, 1))
		return CW_DETAIL_NONE;
	if (a.n >= 2 && b.n >= 2 && a.sig[0] == b.sig[1] && a.sig[1] == b.sig[0] &&
	    (runs_match(&a, 2, &b, 2) || (a.n == 2 && b.n == 2)))
		return CW_DETAIL_ORDER;
	if (runs_match(&a, 1, &b, 0))
		return CW_DETAIL_MISSING;
	if (runs_match(&a, 0, &b, 1))
		return CW_DETAIL_EXTRA;
	return CW_DETAIL_NONE;
}
