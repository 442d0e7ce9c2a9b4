/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/culprit/same_process.h"

/*
 * A thread comes to all its devices in a step. It does not grow with the wait: who gets on later
 * has a life of its own.
 */
#define STEP_NS (INT64_C(15) * 1000000000)

static bool is_idle(const struct engine_context *s, uint32_t rank)
{
	return s->snap->ranks[rank].host_call.kind == CW_OP_NONE && !waitgraph_waits(&s->g, rank) &&
	       !s->g.behind[rank] && engine_context_unobserved(s, rank) == CW_SNAP_NONE;
}

/* When it was last seen to get on, in whatever comm; 0 = never. */
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

		if (r == culprit || !cw_snap_rank_shares_process(one, &s->snap->ranks[r]) ||
		    !is_idle(s, r))
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
