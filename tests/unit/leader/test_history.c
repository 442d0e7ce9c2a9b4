/* SPDX-License-Identifier: Apache-2.0 */
/* Histories that differ, seen by rolling hash alone: in a snapshot, and by a leader over time. */
#include <criterion/criterion.h>
#include <string.h>

#include "leader/history.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(history, .init = verdict_setup, .fini = verdict_teardown);

/* Eight ranks that train on; no rank waits, no window is there, no newest hash stands still. */
static struct cw_snap_member *build_job(uint64_t done)
{
	struct cw_snap_member *members;

	(void)sb_comm(b, "world", 0, 8, 1, done);
	snap = sb_snapshot(b);
	members = snap->comms[0].members;
	for (uint32_t m = 0; m < 8; m++)
		members[m].known &= ~(unsigned)CW_KNOWN_HASH;
	return members;
}

static void set(struct cw_snap_member *m, unsigned i, uint64_t seq, uint64_t hash)
{
	m->checkpoints[i] = (struct cw_checkpoint){ seq, hash };
}

static void judge_built(void)
{
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
}

Test(history, mismatch_is_told_without_knowing_the_call)
{
	struct cw_snap_member *m = build_job(300);

	for (uint32_t i = 0; i < 8; i++) {
		set(&m[i], 0, 256, i == 6 ? 1 : 2);
		set(&m[i], 1, 192, 3);
	}
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_eq(v.detail, CW_DETAIL_UNKNOWN_CALL);
	cr_expect(v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_LIKELY);
	cr_expect_str_eq(sb_culprits(snap, &v), "6");
	cr_expect_eq(v.n_victims, 0);
	cr_expect_eq(v.after_seq, 192);
	cr_expect_eq(v.coll_seq, 256);
	cr_expect_not_null(strstr(said_text(&v.said), "between collectives #192 and #256"), "%s",
			   said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "#192"), "%s",
			   said_text(&v.culprits[0].said));
	cr_expect(v.wants_windows);
}

Test(history, all_sides_are_named_when_none_is_larger)
{
	struct cw_snap_member *m = build_job(300);

	for (uint32_t i = 0; i < 8; i++)
		set(&m[i], 0, 256, i < 4);
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_str_eq(sb_culprits(snap, &v), "0-7");
}

/* Ranks are looked at some calls apart: each pair shares some points, not all share one. */
Test(history, sides_are_joined_over_points_that_only_some_share)
{
	struct cw_snap_member *m = build_job(300);

	for (uint32_t i = 0; i < 8; i++) {
		uint64_t newest = 256 + 8 * (uint64_t)(i / 2);

		set(&m[i], 0, newest, newest * (i == 3 ? 5 : 7));
		set(&m[i], 1, newest - 8, (newest - 8) * (i == 3 ? 5 : 7));
	}
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_str_eq(sb_culprits(snap, &v), "3");
	cr_expect_eq(v.after_seq, 0);
}

Test(history, rank_that_shares_no_point_is_on_no_side)
{
	struct cw_snap_member *m = build_job(300);

	for (uint32_t i = 0; i < 8; i++)
		set(&m[i], 0, 256, i == 6 ? 1 : 2);
	set(&m[1], 0, 1000, 9);
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_str_eq(sb_culprits(snap, &v), "6");
}

Test(history, same_histories_at_different_points_are_healthy)
{
	struct cw_snap_member *m = build_job(300);

	for (uint32_t i = 0; i < 8; i++) {
		set(&m[i], 0, 256 + 8 * i, 100 + i);
		set(&m[i], 1, 192, 3);
	}
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY);
}

/* The window begins behind the difference: the first difference in it is a later one. */
Test(history, windows_that_begin_too_late_do_not_name_the_call)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 300);
	struct cw_snap_member *m;

	for (uint32_t i = 0; i < 8; i++)
		c->members[i].has_window = true;
	sb_odd(c, 6, 298)->count = 5;
	snap = sb_snapshot(b);
	m = snap->comms[0].members;
	for (uint32_t i = 0; i < 8; i++) {
		m[i].known &= ~(unsigned)CW_KNOWN_HASH;
		set(&m[i], 0, 256, i == 2 ? 1 : 2);
	}
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_eq(v.detail, CW_DETAIL_UNKNOWN_CALL);
	cr_expect_str_eq(sb_culprits(snap, &v), "2");
}

/*
 * A hash differs for another grouping as for another call, but windows tell these apart: then it is
 * no proof, and no rank waits.
 */
Test(history, another_grouping_explains_another_hash)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 300);
	struct cw_snap_member *m;

	for (uint32_t i = 0; i < 8; i++) {
		c->members[i].has_window = true;
		sb_odd(c, i, 297)->count = 5;
	}
	snap = sb_snapshot(b);
	m = snap->comms[0].members;
	for (uint32_t i = 0; i < 8; i++) {
		m[i].known &= ~(unsigned)CW_KNOWN_HASH;
		set(&m[i], 0, 299, i == 2 ? 1 : 2);
		for (uint32_t k = 0; i == 2 && k < m[i].n_window; k++) {
			struct cw_op *op = &m[i].window[k];

			if (op->coll_seq != 297 && op->coll_seq != 298)
				continue;
			op->flags |= CW_OPF_GROUPED;
			op->group_id = 9;
			op->count = op->coll_seq == 298 ? 5 : m[0].window[0].count;
		}
	}
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_MISMATCH);
	cr_expect_neq(v.detail, CW_DETAIL_UNKNOWN_CALL);
	cr_expect(!v.is_proof);
	cr_expect_eq(v.confidence, CW_CONFIDENCE_POSSIBLE, "%s %s: %s",
		     cw_confidence_name(v.confidence), cw_detail_name(v.detail),
		     said_text(&v.said));
}

/* ---- the leader's memory ---- */

static struct cw_history leader;

static void forget(void)
{
	cw_history_fini(&leader);
	verdict_teardown();
}

TestSuite(history_leader, .init = verdict_setup, .fini = forget);

/* One look where rank r shows only the point `seqs[r]`. */
static void evaluate(const uint64_t seqs[8], uint32_t odd, uint64_t odd_from)
{
	struct cw_snap_member *m;

	snap = cw_snapshot_free(snap);
	sb_clear_comms(b);
	m = build_job(300);
	for (uint32_t i = 0; i < 8; i++)
		set(&m[i], 0, seqs[i], i == odd && seqs[i] >= odd_from ? 1 : seqs[i] + 7);
	cr_assert_eq(cw_history_update(&leader, snap), 0);
}

Test(history_leader, compares_points_shown_at_different_evaluations)
{
	static const uint64_t first[8] = { 64, 64, 64, 64, 0, 0, 0, 0 };
	static const uint64_t second[8] = { 72, 72, 72, 72, 64, 64, 64, 64 };
	static const uint64_t third[8] = { 80, 80, 80, 80, 72, 72, 72, 72 };
	struct cw_history_range range;

	evaluate(first, 6, 72);
	cr_expect_eq(snap->comms[0].differ_seq, 0);
	evaluate(second, 6, 72);
	cr_expect_eq(snap->comms[0].differ_seq, 0);
	cr_expect(!cw_history_should_ask(&leader, &snap->comms[0], 100, SB_NOW, &range));
	evaluate(third, 6, 72);
	cr_expect_eq(snap->comms[0].differ_seq, 72);
	cr_expect(cw_history_should_ask(&leader, &snap->comms[0], 100, SB_NOW, &range));
	cr_expect_eq(range.to_seq, 72);
	/* It asks once, and again only after a while, a limited number of times. */
	cr_expect(!cw_history_should_ask(&leader, &snap->comms[0], 100, SB_NOW + 1, &range));
	for (unsigned i = 1; i < CW_HISTORY_TRIES; i++)
		cr_expect(cw_history_should_ask(&leader, &snap->comms[0], 100,
						SB_NOW + i * CW_HISTORY_RETRY_NS, &range));
	cr_expect(!cw_history_should_ask(&leader, &snap->comms[0], 100, 2 * SB_NOW, &range));
}

/* Rank r shows the hashes after the calls up to last[r], at most three, and no checkpoint. */
static void evaluate_last(const uint64_t last[8], uint32_t odd, uint64_t odd_from)
{
	static struct cw_checkpoint points[8][3];
	struct cw_snap_member *m;

	snap = cw_snapshot_free(snap);
	sb_clear_comms(b);
	m = build_job(300);
	for (uint32_t i = 0; i < 8; i++) {
		m[i].last_hashes = points[i];
		m[i].n_last_hashes = last[i] < 3 ? (uint32_t)last[i] : 3;
		for (uint32_t k = 0; k < m[i].n_last_hashes; k++) {
			uint64_t seq = last[i] - m[i].n_last_hashes + 1 + k;

			points[i][k] =
				(struct cw_checkpoint){ seq,
							i == odd && seq >= odd_from ? 1 : seq + 7 };
		}
	}
	cr_assert_eq(cw_history_update(&leader, snap), 0);
}

/*
 * Eight calls may take a minute: we find the rank that differs at the call, even if the others came
 * there at other times.
 */
Test(history_leader, compares_the_hashes_after_last_calls)
{
	static const uint64_t first[8] = { 6, 6, 6, 6, 6, 6, 2, 6 };
	static const uint64_t second[8] = { 9, 9, 9, 9, 9, 9, 4, 9 };
	static const uint64_t third[8] = { 12, 12, 12, 12, 12, 12, 5, 12 };
	struct cw_history_range range;

	evaluate_last(first, 6, 5);
	cr_expect_eq(snap->comms[0].differ_seq, 0);
	evaluate_last(second, 6, 5);
	cr_expect_eq(snap->comms[0].differ_seq, 0);
	evaluate_last(third, 6, 5);
	cr_expect_eq(snap->comms[0].differ_seq, 5);
	cr_expect_eq(snap->comms[0].agreed_seq, 4);
	cr_expect(cw_history_should_ask(&leader, &snap->comms[0], 100, SB_NOW, &range));
	cr_expect_eq(range.from_seq, 5);
	cr_expect_eq(range.to_seq, 5);
	judge_built();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY, "no side has a point in common now");
}

Test(history_leader, asks_for_a_long_range_part_by_part)
{
	static const uint64_t seqs[8] = { 4096, 4096, 4096, 4096, 4096, 4096, 4096, 4096 };
	struct cw_history_range range;

	evaluate(seqs, 6, 4096);
	for (uint64_t from = 1; from < 4096; from += 1500) {
		cr_assert(cw_history_should_ask(&leader, &snap->comms[0], 1500, SB_NOW, &range));
		cr_expect_eq(range.from_seq, from);
		cr_expect_eq(range.to_seq, from == 3001 ? 4096 : from + 1499);
	}
	cr_expect(!cw_history_should_ask(&leader, &snap->comms[0], 1500, SB_NOW, &range));
	cr_expect(cw_history_should_ask(&leader, &snap->comms[0], 1500, 2 * SB_NOW, &range));
	cr_expect_eq(range.from_seq, 1);
}

Test(history_leader, remembers_where_histories_parted)
{
	static const uint64_t first[8] = { 64, 64, 64, 64, 64, 64, 64, 64 };
	static const uint64_t later[8] = { 800, 800, 800, 800, 800, 800, 800, 800 };

	evaluate(first, 1, 64);
	cr_expect_eq(snap->comms[0].differ_seq, 64);
	evaluate(later, 1, 64);
	cr_expect_eq(snap->comms[0].differ_seq, 64);
	judge_built();
	cr_expect_eq(v.coll_seq, 64);
	cr_expect_str_eq(sb_culprits(snap, &v), "1");
}

Test(history_leader, late_point_is_not_compared_with_a_newer_one_in_its_place)
{
	static const uint64_t ahead[8] = { 8 + 8 * 128, 0, 0, 0, 0, 0, 0, 0 };
	static const uint64_t behind[8] = { 0, 8, 0, 0, 0, 0, 0, 0 };

	evaluate(ahead, 8, 0);
	evaluate(behind, 1, 8);
	cr_expect_eq(snap->comms[0].differ_seq, 0);
}
