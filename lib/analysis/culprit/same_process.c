/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/same_process.h"

/*
 * A thread that drives several devices makes one step's NCCL calls for all of them within this
 * time. The limit does not grow with the wait. A rank that makes progress later belongs to another
 * thread.
 */
#define STEP_NS (INT64_C(15) * 1000000000)

/* Returns the time at which the rank last made progress in any comm; 0 = never. */
static int64_t last_host_activity(const struct engine_context *s, uint32_t rank)
{
	int64_t last_ns = 0;

	for (uint32_t c = 0; c < s->snap->n_comms; c++) {
		uint32_t m = engine_context_comm_rank(s, c, rank);

		if (m != CW_SNAP_NONE && s->snap->comms[c].members[m].progress_ns > last_ns)
			last_ns = s->snap->comms[c].members[m].progress_ns;
	}
	return last_ns;
}

uint32_t same_process_list_idle(const struct engine_context *s, uint32_t culprit, uint32_t *ranks)
{
	const struct cw_snap_rank *one = &s->snap->ranks[culprit];
	int64_t stood_still_ns = 0;
	uint32_t n = 0;

	for (uint32_t r = 0; r < s->snap->n_ranks; r++) {
		int64_t apart_ns;

		/*
		 * An idle rank is in no call, waits at no gate, and does not wait for its device.
		 */
		if (r == culprit || !cw_snap_rank_shares_process(one, &s->snap->ranks[r]) ||
		    s->snap->ranks[r].host_call.kind != CW_OP_NONE || waitgraph_waits(&s->g, r) ||
		    s->g.behind[r] || engine_context_unobserved(s, r) != CW_SNAP_NONE)
			continue;
		if (!stood_still_ns)
			stood_still_ns = last_host_activity(s, culprit);
		apart_ns = last_host_activity(s, r) - stood_still_ns;
		if (apart_ns <= STEP_NS && -apart_ns <= STEP_NS)
			ranks[n++] = r;
	}
	return n;
}

bool same_process_may_be_others(const struct engine_context *s, uint32_t culprit,
				const bool *is_culprit)
{
	const struct cw_snap_rank *one = &s->snap->ranks[culprit];

	for (uint32_t r = 0; r < s->snap->n_ranks; r++) {
		const struct cw_snap_rank *other = &s->snap->ranks[r];

		if (r != culprit && other->host_call.kind == CW_OP_NONE &&
		    !(is_culprit[r] && waitgraph_is_missing(&s->g, r)) &&
		    cw_snap_rank_shares_process(one, other))
			return true;
	}
	return false;
}
