/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signatures that follow the disputed call, of one member of each side, are laid over each
 * other: shifted by one they agree where a call was left out or added, crosswise where two were
 * swapped. Where the usual side has not gone on, what comes next is taken from the last time it
 * made the same two calls: training loops repeat themselves.
 */
#include "analysis/align/skipped_call.h"

#include <stddef.h>

#include "analysis/align/position.h"
#include "model/signature.h"

/* Signatures of consecutive coll_seqs; more than a window of the record holds is not needed. */
#define RUN_MAX 64

struct run {
	uint64_t sig[RUN_MAX];
	uint32_t n;
};

/* From coll_seq `from` on, as far as the window is without gaps. */
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

/* True where a[i + da] == b[i + db] wherever both are known, and at least once. */
static bool runs_match(const struct run *a, uint32_t da, const struct run *b, uint32_t db)
{
	uint32_t i = 0;

	for (; i + da < a->n && i + db < b->n; i++)
		if (a->sig[i + da] != b->sig[i + db])
			return false;
	return i > 0;
}

/*
 * What `usual` would call after coll_seq `seq`, going by the last time it made the same two calls
 * in a row: training loops repeat themselves. False when the window does not tell.
 */
static bool predict_next(const struct cw_snap_member *usual, uint64_t seq, uint64_t *ret)
{
	struct run run;
	uint64_t from = seq >= RUN_MAX ? seq - RUN_MAX + 1 : 1;

	/* The window may begin later than `from`. */
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
	/* The others stand in the disputed call and have not shown what comes after it. */
	if (a.n == 1 && predict_next(usual, seq, &a.sig[1]))
		a.n = 2;
	/* One wrong call in its right place: what follows agrees, or has not been seen. */
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
