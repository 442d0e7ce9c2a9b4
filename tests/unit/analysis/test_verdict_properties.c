/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Properties that hold for every hang, over simulated hangs. Ranks run a training step over
 * tensor-parallel, data-parallel and world comms until one of them leaves the common path and all
 * others have come to a stand behind it.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/stall/stall.h"
#include "model/signature.h"
#include "record/record_layout.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/snap_builder.h"

#define RANKS 16
#define TP 4
#define STEP_OPS 5
#define CASES 400

enum fault { BLOCK, KILL, STOP, WRONG_COUNT, WRONG_KIND, FAULT__MAX };

struct scenario {
	enum fault fault;
	uint32_t culprit;
	unsigned at;            /* the culprit's op of the fault, counted from 0 */
	uint32_t number[RANKS]; /* rank number of each rank: a permutation */
	uint32_t hidden;        /* number of the rank without data; RANKS = none */
	bool with_company;      /* healthy ranks and comms beside it */
};

static uint64_t state;

static uint32_t random_below(uint32_t n)
{
	state++;
	return (uint32_t)(cw_hash_mix64(state) % n);
}

/* tp, tp, dp, tp, world: comms 0-3 are tp groups, 4-7 dp groups, 8 the world. */
static uint32_t comm_of_op(uint32_t rank, unsigned op)
{
	switch (op % STEP_OPS) {
	case 2:
		return RANKS / TP + rank % TP;
	case 4:
		return 2 * (RANKS / TP);
	default:
		return rank / TP;
	}
}

static uint32_t member_of(uint32_t comm, uint32_t rank)
{
	if (comm < RANKS / TP)
		return rank % TP;
	return comm < 2 * (RANKS / TP) ? rank / TP : rank;
}

struct run {
	const struct scenario *s;
	struct sb_comm *comms[9];
	unsigned done[RANKS]; /* ops completed */
	bool inside[RANKS];   /* entered op number done[] */
	unsigned round;
};

static bool leaves_here(const struct run *r, uint32_t rank)
{
	return rank == r->s->culprit && r->done[rank] == r->s->at;
}

/* Every rank that may enter its next op does. */
static bool enter_all(struct run *r)
{
	bool moved = false;

	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint32_t comm = comm_of_op(rank, r->done[rank]);
		uint32_t m = member_of(comm, rank);
		struct cw_op *odd;

		if (r->inside[rank] || (leaves_here(r, rank) && r->s->fault < WRONG_COUNT))
			continue;
		sb_waits(r->comms[comm], m, 20 * SB_S - r->round * (SB_S / 100));
		r->inside[rank] = moved = true;
		if (!leaves_here(r, rank))
			continue;
		odd = sb_odd(r->comms[comm], m, r->comms[comm]->members[m].entered);
		if (r->s->fault == WRONG_COUNT)
			odd->count--;
		else
			odd->kind = CW_OP_REDUCE_SCATTER;
	}
	return moved;
}

static bool is_complete(const struct run *r, uint32_t rank)
{
	const struct sb_comm *c = r->comms[comm_of_op(rank, r->done[rank])];
	uint64_t seq = c->members[member_of(comm_of_op(rank, r->done[rank]), rank)].entered;

	if (!r->inside[rank])
		return false;
	/* The smaller count returns, and its rank goes on. */
	if (leaves_here(r, rank))
		return r->s->fault == WRONG_COUNT;
	for (uint32_t m = 0; m < c->nranks; m++) {
		if (c->members[m].entered < seq)
			return false;
		for (uint32_t i = 0; i < c->members[m].n_odd; i++)
			if (c->members[m].odd[i].coll_seq == seq)
				return false;
	}
	return true;
}

static bool complete_all(struct run *r)
{
	bool complete[RANKS], moved = false;

	for (uint32_t rank = 0; rank < RANKS; rank++)
		complete[rank] = is_complete(r, rank);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		uint32_t comm = comm_of_op(rank, r->done[rank]);
		struct sb_member *m = &r->comms[comm]->members[member_of(comm, rank)];

		if (!complete[rank])
			continue;
		m->completed = m->entered;
		m->age_ns = 0;
		r->done[rank]++;
		r->inside[rank] = false;
		moved = true;
	}
	return moved;
}

static void make_comms(struct run *r, struct sb *b)
{
	for (uint32_t g = 0; g < RANKS / TP; g++)
		r->comms[g] = sb_comm(b, "tp", g * TP, TP, 1, 10);
	for (uint32_t g = 0; g < TP; g++)
		r->comms[RANKS / TP + g] = sb_comm(b, "dp", g, RANKS / TP, TP, 10);
	r->comms[8] = sb_comm(b, "world", 0, RANKS, 1, 10);
}

/* Numbers all ranks, and takes the hidden rank's data away. */
static void number_ranks(const struct scenario *s, struct sb *b)
{
	for (uint32_t c = 0; c < b->n_comms; c++)
		for (uint32_t m = 0; m < b->comms[c]->nranks; m++) {
			uint32_t *rank = &b->comms[c]->members[m].rank;

			if (*rank < RANKS)
				*rank = s->number[*rank];
			if (*rank == s->hidden)
				*rank = CW_SNAP_NONE;
		}
}

static void add_company(struct sb *b)
{
	struct sb_comm *idle = sb_comm(b, "idle", RANKS, 4, 1, 99);
	struct sb_comm *busy = sb_comm(b, "busy", RANKS, 4, 1, 99);

	(void)idle;
	sb_all_wait_but(busy, 2, SB_S / 200);
}

static struct sb *simulate(const struct scenario *s)
{
	struct sb *b = sb_new(RANKS + (s->with_company ? 4 : 0), 2);
	struct run r = { .s = s };
	struct cw_snap_rank *culprit = &b->ranks[s->number[s->culprit]];
	bool moved = true;

	for (uint32_t i = 0; i < b->n_ranks; i++)
		b->ranks[i].node = i / (RANKS / 2) % 2;
	make_comms(&r, b);
	for (; moved; r.round++) {
		moved = enter_all(&r);
		moved = complete_all(&r) || moved;
		cr_assert_lt(r.round, 1000);
	}
	for (uint32_t c = 0; c < b->n_comms; c++)
		for (uint32_t m = 0; m < b->comms[c]->nranks; m++)
			b->comms[c]->members[m].has_window = true;
	culprit->host_activity_ns = SB_NOW - 20 * SB_S;
	if (s->fault == KILL) {
		culprit->liveness = CW_LIVE_KILLED;
		culprit->ended_ns = SB_NOW - 20 * SB_S;
	}
	if (s->fault == STOP)
		culprit->liveness = CW_LIVE_STOPPED;
	number_ranks(s, b);
	if (s->with_company)
		add_company(b);
	return b;
}

struct answer {
	unsigned verdict_class, confidence;
	enum cw_detail detail;
	uint32_t n_culprits, culprit, n_victims;
	bool is_proof;
	char summary[512];
};

static struct answer ask(const struct scenario *s)
{
	struct sb *b = simulate(s);
	struct cw_snapshot *snap;
	struct cw_verdict v = sb_verdict(b, &snap);
	struct answer a = { .verdict_class = v.verdict_class,
			    .confidence = v.confidence,
			    .detail = v.detail,
			    .n_culprits = v.n_culprits,
			    .culprit = v.n_culprits ? v.culprits[0].rank : CW_SNAP_NONE,
			    .n_victims = v.n_victims,
			    .is_proof = v.is_proof };

	(void)cw_say_text(&v.said, a.summary, sizeof(a.summary));
	cw_verdict_fini(&v);
	(void)cw_snapshot_free(snap);
	sb_free(b);
	return a;
}

/* Each number gives a scenario of its own, always the same. */
static struct scenario draw(uint64_t number)
{
	struct scenario s = { .hidden = RANKS };

	state = number << 32;
	s.fault = random_below(FAULT__MAX);
	s.culprit = random_below(RANKS);
	s.at = random_below(3 * STEP_OPS);

	for (uint32_t i = 0; i < RANKS; i++)
		s.number[i] = i;
	return s;
}

static unsigned true_class(const struct scenario *s)
{
	if (s->fault == KILL)
		return CW_CLASS_PROCESS_DEAD;
	return s->fault >= WRONG_COUNT ? CW_CLASS_MISMATCH : CW_CLASS_NEVER_ENTERED;
}

/* The answer is right: the class, and the culprit alone. */
static bool is_right(const struct scenario *s, const struct answer *a)
{
	if (s->fault == WRONG_COUNT && a->detail != CW_DETAIL_COUNT)
		return false;
	if (s->fault == WRONG_KIND && a->detail != CW_DETAIL_KIND)
		return false;
	return a->verdict_class == true_class(s) && a->n_culprits == 1 &&
	       a->culprit == s->number[s->culprit];
}

Test(verdict_properties, finds_every_simulated_culprit)
{
	for (uint64_t i = 0; i < CASES; i++) {
		struct scenario s = draw(i);
		struct answer a = ask(&s);

		cr_expect(is_right(&s, &a), "case %lu, fault %d of rank %u at %u: %s (%s) %s",
			  (unsigned long)i, s.fault, s.culprit, s.at,
			  cw_class_name(a.verdict_class), cw_detail_name(a.detail), a.summary);
	}
}

Test(verdict_properties, permuted_numbers_permute_the_culprits_and_nothing_else)
{
	for (uint64_t i = 0; i < CASES; i++) {
		struct scenario s = draw(i);
		struct answer a = ask(&s), p;

		for (uint32_t r = RANKS - 1; r > 0; r--) {
			uint32_t k = random_below(r + 1), kept = s.number[r];

			s.number[r] = s.number[k];
			s.number[k] = kept;
		}
		p = ask(&s);
		cr_expect_eq(p.verdict_class, a.verdict_class);
		cr_expect_eq(p.detail, a.detail);
		cr_expect_eq(p.confidence, a.confidence);
		cr_expect_eq(p.is_proof, a.is_proof);
		cr_expect_eq(p.n_victims, a.n_victims, "%s | %s", a.summary, p.summary);
		cr_expect_eq(p.n_culprits, a.n_culprits);
		cr_expect(is_right(&s, &p), "case %lu: %s", (unsigned long)i, p.summary);
	}
}

Test(verdict_properties, healthy_company_changes_nothing)
{
	for (uint64_t i = 0; i < CASES; i++) {
		struct scenario s = draw(i);
		struct answer a = ask(&s), c;

		s.with_company = true;
		c = ask(&s);
		cr_expect_eq(c.verdict_class, a.verdict_class);
		cr_expect_eq(c.culprit, a.culprit);
		cr_expect_eq(c.n_culprits, a.n_culprits);
		cr_expect_eq(c.n_victims, a.n_victims);
		cr_expect_eq(c.confidence, a.confidence);
		/*
		 * The further ranks do not wait, so the victims are no longer all the
		 * others there are.
		 */
		cr_expect(strncmp(c.summary, a.summary, strcspn(a.summary, ".")) == 0,
			  "case %lu: %s | %s", (unsigned long)i, a.summary, c.summary);
	}
}

Test(verdict_properties, missing_data_never_makes_it_certain_of_something_wrong)
{
	unsigned certain = 0;

	for (uint64_t i = 0; i < 4 * CASES; i++) {
		struct scenario s = draw(i);
		struct answer a;

		s.hidden = random_below(RANKS);
		a = ask(&s);
		if (a.confidence == CW_CONFIDENCE_CERTAIN) {
			certain++;
			cr_expect(is_right(&s, &a),
				  "case %lu, fault %d of rank %u at %u, without %u: %s",
				  (unsigned long)i, s.fault, s.culprit, s.at, s.hidden, a.summary);
		}
	}
	/* Otherwise this would test nothing. */
	cr_expect_gt(certain, 0);
}

/* ---- arbitrary input ---- */

static void fill_random(void *p, size_t len)
{
	unsigned char *bytes = p;

	for (size_t i = 0; i < len; i++)
		bytes[i] = (unsigned char)random_below(256);
}

/* Small numbers, so that things meet; now and then any number at all. */
static uint64_t some_number(void)
{
	uint64_t any;

	if (random_below(16))
		return random_below(6);
	fill_random(&any, sizeof(any));
	return any;
}

static struct cw_op some_op(void)
{
	static const uint8_t kinds[] = { CW_OP_ALL_REDUCE, CW_OP_BROADCAST,  CW_OP_REDUCE,
					 CW_OP_SEND,       CW_OP_RECV,       CW_OP_COMM_INIT,
					 CW_OP_COMM_SPLIT, CW_OP_ALL_GATHER, CW_OP_GROUP_END };
	struct cw_op op = { .kind = kinds[random_below(sizeof(kinds))],
			    .dtype = (uint8_t)some_number(),
			    .redop = (uint8_t)some_number(),
			    .progress = (uint8_t)random_below(5),
			    .flags = (uint16_t)(random_below(4) ? random_below(4)
								: random_below(1 << 16)),
			    .root = (int32_t)some_number() - 1,
			    .peer = (int32_t)some_number() - 1,
			    .count = some_number(),
			    .bytes = some_number(),
			    .coll_seq = some_number(),
			    .p2p_seq = some_number(),
			    .op_index = some_number(),
			    .group_id = some_number(),
			    .enter_ns = (int64_t)some_number() };

	if (!random_below(20))
		op.kind = (uint8_t)random_below(256);
	return op;
}

static void set_random_member(struct cw_snapshot *snap, uint32_t comm, uint32_t m)
{
	struct cw_op pending = some_op(), last = some_op(), window[6];
	struct cw_p2p_peer peers[3];
	struct cw_snap_member member = { .rank = random_below(snap->n_ranks),
					 .state =
						 random_below(4) ? CW_COMM_READY : random_below(10),
					 .known = random_below(3) ? 63 : random_below(64),
					 .coll_entered = some_number(),
					 .coll_returned = some_number(),
					 .coll_reached = some_number(),
					 .coll_completed = some_number(),
					 .hash_seq = some_number(),
					 .hash = some_number(),
					 .pending = random_below(2) ? &pending : NULL,
					 .last = random_below(2) ? &last : NULL,
					 .window = random_below(2) ? window : NULL,
					 .n_window = random_below(7),
					 .p2p = peers,
					 .n_p2p = random_below(4),
					 .progress_ns = (int64_t)some_number() };

	for (unsigned i = 0; i < 6; i++)
		window[i] = some_op();
	for (unsigned i = 0; i < 3; i++)
		peers[i] = (struct cw_p2p_peer){ .peer = (uint32_t)some_number(),
						 .sends = some_number(),
						 .recvs = some_number() };
	if (random_below(8))
		cr_assert_eq(cw_snapshot_set_member(snap, comm, m, &member), 0);
}

static struct cw_snapshot *random_snapshot(void)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t index;

	cr_assert(snap);
	snap->now_ns = 100 * SB_S;
	cr_assert_eq(cw_snapshot_add_node(snap, NULL, &index), 0);
	snap->nodes[0].state = random_below(5);
	for (unsigned i = 0; i < 6; i++) {
		struct cw_snap_rank rank = { .rank = (int32_t)some_number() - 1,
					     .node = (uint32_t)some_number(),
					     .liveness = random_below(8),
					     .flags = random_below(128),
					     .host_call = some_op(),
					     .ended_ns = (int64_t)some_number(),
					     .host_activity_ns = (int64_t)some_number() };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	}
	for (unsigned c = 0; c < 1 + random_below(4); c++) {
		struct cw_snap_comm comm = { .id = some_number(), .nranks = random_below(7) };

		cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
		for (uint32_t m = 0; m < comm.nranks; m++)
			set_random_member(snap, index, m);
	}
	return snap;
}

/* All indices are in range; no rank is both culprit and victim. */
static void check_consistency(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	cr_assert_lt(v->verdict_class, CW_CLASS__MAX);
	cr_assert(v->comm == CW_SNAP_NONE || v->comm < snap->n_comms);
	cr_assert(v->detail < CW_DETAIL__MAX && said_text(&v->said)[0]);
	for (uint32_t i = 0; i < v->n_culprits; i++) {
		cr_assert_lt(v->culprits[i].rank, snap->n_ranks);
		cr_assert(said_text(&v->culprits[i].said)[0]);
		for (uint32_t k = 0; k < v->n_victims; k++)
			cr_assert_neq(v->victims[k], v->culprits[i].rank);
	}
	for (uint32_t i = 0; i < v->n_chain; i++) {
		cr_assert_lt(v->chain[i].rank, snap->n_ranks);
		cr_assert_lt(v->chain[i].comm, snap->n_comms);
	}
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; k < v->sides[i].n_ranks; k++)
			cr_assert_lt(v->sides[i].ranks[k], snap->n_ranks);
}

Test(verdict_properties, survives_any_snapshot)
{
	for (uint64_t i = 0; i < 20000; i++) {
		struct cw_stall *tracker = cw_stall_new();
		struct cw_stall_decision d;
		struct cw_snapshot *snap;
		struct cw_verdict v;

		state = (i + 1) << 40;
		snap = random_snapshot();
		cr_assert_eq(cw_verdict_compute(snap, &v), 0);
		check_consistency(snap, &v);
		cw_stall_step(tracker, snap, &v, &d);
		snap->now_ns += 400 * SB_S;
		cw_stall_step(tracker, snap, &v, &d);
		cw_verdict_fini(&v);
		(void)cw_snapshot_free(snap);
		tracker = cw_stall_free(tracker);
	}
}
