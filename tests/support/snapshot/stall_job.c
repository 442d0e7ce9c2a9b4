/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/snapshot/stall_job.h"

#include <criterion/criterion.h>

struct stall_job j;

void stall_job_setup(void)
{
	j = (struct stall_job){ .tracker = cw_stall_new(),
				.t = cw_thresholds_default(),
				.n_ranks = 8,
				.now_ns = SB_NOW,
				.done = 41,
				.culprit = 3,
				.liveness = CW_LIVE_ALIVE,
				.known = UINT32_MAX };
	cr_assert(j.tracker);
	/* The demo waits this long for a rank that does nothing. */
	j.t.no_progress_after_ns = 5 * SB_S;
}

void stall_job_teardown(void)
{
	j.tracker = cw_stall_free(j.tracker);
}

struct sb *stall_job_builder(void)
{
	struct sb *b = sb_new(j.n_ranks, 2);
	struct sb_comm *c = sb_comm(b, "world", 0, j.n_ranks, 1, j.done);
	int64_t age = j.now_ns - j.fault_ns;

	for (uint32_t m = 0; m < j.n_ranks; m++)
		c->members[m].known &= j.known;
	if (j.fault_ns) {
		sb_all_wait_but(c, j.wrong_count ? SB_MAX_RANKS : j.culprit, age ? age : 1);
		if (j.wrong_count)
			sb_odd(c, j.culprit, j.done + 1)->count = j.wrong_count;
	}
	if (j.n_movers)
		(void)sb_comm(b, "other", 0, j.n_movers, 1, (uint64_t)j.now_ns / SB_S);
	if (j.culprit < j.n_ranks) {
		struct cw_snap_rank *r = &b->ranks[j.culprit];

		r->liveness = j.liveness;
		r->exit_code = j.exit_code;
		r->host_wait = j.host_wait;
		r->flags |= j.flags;
		r->job_timeout_ns = j.job_timeout_ns;
		if (j.active_until_ns && j.active_until_ns < j.now_ns)
			r->host_activity_ns = SB_NOW - (j.now_ns - j.active_until_ns);
		if (j.ended_ns)
			r->ended_ns = SB_NOW - (j.now_ns - j.ended_ns);
		b->node_state[r->node] = j.culprit_node_state;
	}
	return b;
}

static void shift(int64_t *ns, int64_t by_ns)
{
	if (*ns)
		*ns += by_ns;
}

/* Moves all times of a snapshot from SB_NOW to the fake clock. */
static void shift_times(struct cw_snapshot *snap, int64_t by_ns)
{
	snap->now_ns += by_ns;
	for (uint32_t i = 0; i < snap->n_ranks; i++) {
		shift(&snap->ranks[i].host_activity_ns, by_ns);
		shift(&snap->ranks[i].sampled_ns, by_ns);
		shift(&snap->ranks[i].ended_ns, by_ns);
	}
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; m < snap->comms[c].nranks; m++) {
			struct cw_snap_member *member = &snap->comms[c].members[m];

			shift(&member->progress_ns, by_ns);
			if (member->pending)
				shift(&member->pending->enter_ns, by_ns);
			if (member->last)
				shift(&member->last->enter_ns, by_ns);
		}
}

void stall_job_evaluate(struct sb *b, struct cw_snapshot *snap)
{
	struct cw_verdict v;

	shift_times(snap, j.now_ns - SB_NOW);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	j.verdict_class = v.verdict_class;
	cw_stall_step(j.tracker, snap, &v, &j.d);
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
}

void stall_job_step(void)
{
	struct sb *b = stall_job_builder();
	struct cw_snapshot *snap = sb_snapshot(b);

	snap->thresholds = j.t;
	snap->policy = j.policy;
	for (uint32_t m = 0; m < j.n_movers; m++)
		snap->comms[1].members[m].progress_ns = SB_NOW;
	stall_job_evaluate(b, snap);
}

int64_t stall_job_run_until(uint32_t phase, int64_t limit_ns)
{
	int64_t start = j.now_ns;

	for (;;) {
		stall_job_step();
		if (j.d.phase == phase)
			return j.now_ns - start;
		if (j.now_ns - start >= limit_ns)
			return -1;
		j.now_ns += SB_S;
	}
}

void stall_job_fault(void)
{
	j.fault_ns = j.now_ns;
	j.active_until_ns = j.now_ns;
}
