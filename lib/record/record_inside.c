/* SPDX-License-Identifier: Apache-2.0 */
#include "record/inside.h"
#include "record/record_internal.h"

/*
 * We read at most as many rings as an agent's record has. A record with more is foreign, and would
 * cost the daemon time.
 */
#define MAX_RINGS CW_REC_COMMS

/*
 * If nothing hangs, the counters of the last refresh rule out most communicators, and we do not
 * read their ops.
 */
size_t cw_record_inside(const struct cw_record *rec, struct cw_rec_wait *ret, size_t max)
{
	struct cw_rec_op ops[CW_REC_COMM_OPS];
	size_t n = 0, n_ops, n_rings = 0;

	for (size_t i = 0; i < rec->n_comms && n_rings < MAX_RINGS; i++) {
		const struct cw_rec_comm *e = &rec->comms[i].entry;

		if (!cw_rec_may_be_inside(e->flags, e->op_index, e->op_returned))
			continue;
		n_rings++;
		if (cw_record_read_comm_ring(rec, &rec->comms[i], ops, &n_ops) == 0)
			n = cw_rec_inside_add(ops, n_ops, ret, n, max);
	}
	for (size_t i = 0; i < n; i++)
		ret[i].since_ns = (uint64_t)cw_record_time(rec, ret[i].since_ns);
	return n;
}
