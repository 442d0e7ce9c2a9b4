/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives inside CUDA graphs that are replayed. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(verdict_replay, .init = verdict_setup, .fini = verdict_teardown);

/* All ranks but rank 3 wait in the replay that holds #42; rank 3 has launched one replay less. */
static struct cw_snap_comm *build_job(void)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, 41), 3, 20 * SB_S);
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 8; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		if (member->pending)
			member->pending->kind = CW_OP_GRAPH_LAUNCH;
		if (member->last)
			member->last->kind = CW_OP_GRAPH_LAUNCH;
	}
	return &snap->comms[0];
}

static void judge_built(unsigned verdict_class, const char *culprits, const char *victims)
{
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
	cr_expect_eq(v.verdict_class, verdict_class, "%s: %s", cw_class_name(v.verdict_class),
		     said_text(&v.said));
	cr_expect_str_eq(sb_culprits(snap, &v), culprits, "%s", said_text(&v.said));
	cr_expect_str_eq(sb_victims(snap, &v), victims, "%s", said_text(&v.said));
}

Test(verdict_replay, rank_with_fewer_replays_never_entered_the_next)
{
	(void)build_job();
	judge_built(CW_CLASS_NEVER_ENTERED, "3", "0-2,4-7");
	cr_expect_eq(v.coll_seq, 42);
	cr_expect_not_null(strstr(said_text(&v.said), "graph_launch #42"), "%s",
			   said_text(&v.said));
}

Test(verdict_replay, replay_meets_the_same_collective_called_by_hand)
{
	struct cw_snap_comm *c = build_job();

	c->members[0].pending->kind = CW_OP_ALL_REDUCE;
	judge_built(CW_CLASS_NEVER_ENTERED, "3", "0-2,4-7");
}

/* The op within the graph is unknown: it cannot differ from another. */
Test(verdict_replay, replays_are_not_compared_by_signature)
{
	struct cw_snap_comm *c = build_job();

	c->members[0].pending->kind = CW_OP_BROADCAST;
	c->members[1].pending->count = 77;
	judge_built(CW_CLASS_NEVER_ENTERED, "3", "0-2,4-7");
}

Test(verdict_replay, unknown_progress_of_a_replay_is_at_most_possible)
{
	struct cw_snap_comm *c = build_job();

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].known &= ~(unsigned)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
		if (c->members[m].pending) {
			c->members[m].pending->progress = CW_PROGRESS_UNKNOWN;
			c->members[m].pending->flags |= CW_OPF_RETURNED;
		}
	}
	judge_built(CW_CLASS_NEVER_ENTERED, "3", "0-2,4-7");
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE);
}

Test(verdict_replay, uncounted_replays_blame_nobody)
{
	struct cw_snap_comm *c = build_job();

	c->members[3].known = 0;
	judge_built(CW_CLASS_UNKNOWN, "", "0-2,4-7");
	cr_expect_eq(v.detail, CW_DETAIL_NOT_VISIBLE);
}

Test(verdict_replay, template_of_a_graph_waits_for_nobody)
{
	sb_all_wait_but(sb_comm(b, "world", 0, 8, 1, 41), 3, 20 * SB_S);
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < 8; m++)
		if (snap->comms[0].members[m].pending)
			snap->comms[0].members[m].pending->flags |= CW_OPF_CAPTURED;
	judge_built(CW_CLASS_HEALTHY, "", "");
}
