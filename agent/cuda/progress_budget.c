/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cuda/progress_budget.h"

#include <string.h>

#include "agent/base/state.h"
#include "agent/record/record.h"

CW_HOT_DATA bool cw_progress_budget_is_on;

static struct cw_progress_budget slots[CW_REC_PROGRESS_SLOTS];

struct cw_progress_budget *cw_progress_budget_of(uint16_t slot)
{
	return &slots[slot % CW_REC_PROGRESS_SLOTS];
}

void cw_progress_budget_reset(uint16_t slot)
{
	memset(cw_progress_budget_of(slot), 0, sizeof(struct cw_progress_budget));
}

/* ---- marks ---- */

static uint64_t *word_of(struct cw_progress_budget_marks *m, uint32_t hash)
{
	return &m->bits[hash / 64 % (CW_PROGRESS_BUDGET_MARK_BITS / 64)];
}

static bool has_mark(struct cw_progress_budget_marks *m, uint32_t hash)
{
	return CW_LOAD(*word_of(m, hash)) >> hash % 64 & 1;
}

static void forget_marks(struct cw_progress_budget_marks *m)
{
	for (unsigned i = 0; i < CW_PROGRESS_BUDGET_MARK_BITS / 64; i++)
		CW_STORE(m->bits[i], UINT64_C(0));
	CW_STORE(m->count, 0u);
}

static void set_mark(struct cw_progress_budget_marks *m, uint32_t hash)
{
	uint64_t *word = word_of(m, hash);

	if (has_mark(m, hash))
		return;
	if (CW_LOAD(m->count) >= CW_PROGRESS_BUDGET_MARKS)
		forget_marks(m);
	CW_STORE(*word, CW_LOAD(*word) | UINT64_C(1) << hash % 64);
	CW_STORE(m->count, CW_LOAD(m->count) + 1);
}

static void clear_mark(struct cw_progress_budget_marks *m, uint32_t hash)
{
	uint64_t *word = word_of(m, hash);

	CW_STORE(*word, CW_LOAD(*word) & ~(UINT64_C(1) << hash % 64));
	CW_STORE(m->count, CW_LOAD(m->count) - 1);
}

static uint32_t place_of(uint32_t spot, uint32_t burst)
{
	return (spot ^ burst) * UINT32_C(0x9e3779b1) >> 8;
}

/* Marks the place and the spot of the newest op, because the host went quiet after it. */
static void learn(struct cw_progress_budget *t)
{
	uint32_t spot = CW_LOAD(t->spot);

	set_mark(&t->places, CW_LOAD(t->place));
	if (!has_mark(&t->common, spot))
		set_mark(&t->spots, spot);
}

/* Removes marks with too many hits. Such marks would let too many ops exceed the budget. */
static void forget(struct cw_progress_budget *t, uint32_t spot, bool by_spot)
{
	CW_STORE(t->looks, 0u);
	CW_STORE(t->hits, 0u);
	if (by_spot) {
		clear_mark(&t->spots, spot);
		set_mark(&t->common, spot);
	} else {
		forget_marks(&t->places);
	}
}

/*
 * Returns whether marks caused too many writes. A spot that is one of the last two hits is
 * frequent, and CW_PROGRESS_BUDGET_HITS limits it. For a rare spot the limit is four times as high,
 * because other spots caused most of the hits.
 */
static bool has_too_many_hits(struct cw_progress_budget *t, uint32_t by)
{
	bool is_frequent = by == CW_LOAD(t->hit_by[0]) || by == CW_LOAD(t->hit_by[1]);
	uint32_t hits = CW_LOAD(t->hits) + 1;

	CW_STORE(t->hits, hits);
	CW_STORE(t->hit_by[1], CW_LOAD(t->hit_by[0]));
	CW_STORE(t->hit_by[0], by);
	return hits > (is_frequent ? CW_PROGRESS_BUDGET_HITS : 4 * CW_PROGRESS_BUDGET_HITS);
}

/* Returns whether a mark requests writes for an op that the budget cannot pay for. */
static bool is_marked(struct cw_progress_budget *t, uint32_t spot, uint32_t place)
{
	bool by_spot = has_mark(&t->spots, spot);

	if (CW_LOAD(t->looks) == CW_PROGRESS_BUDGET_LOOKS) {
		CW_STORE(t->looks, 0u);
		CW_STORE(t->hits, 0u);
	}
	CW_STORE(t->looks, CW_LOAD(t->looks) + 1);
	if (!by_spot && !has_mark(&t->places, place))
		return false;
	if (has_too_many_hits(t, by_spot ? spot : 0))
		forget(t, spot, by_spot);
	return true;
}

/* ---- one op ---- */

/*
 * Returns whether the host was quiet: for CW_PROGRESS_BUDGET_QUIET_NS no call returned and no op
 * was launched.
 */
static bool is_after_pause(const struct cw_progress_budget *t, uint64_t now_ns)
{
	uint64_t returned = CW_LOAD(t->returned_ns);

	return now_ns > returned && now_ns - returned > CW_PROGRESS_BUDGET_QUIET_NS;
}

unsigned cw_progress_budget_leave_out(struct cw_progress_budget *t, uint32_t spot,
				      uint64_t op_index, uint64_t now_ns)
{
	bool after_pause = is_after_pause(t, now_ns);
	uint32_t burst = after_pause ? 1 : CW_LOAD(t->burst) + 1;
	uint32_t place = place_of(spot, burst), ops = CW_LOAD(t->ops);
	uint64_t closed = CW_LOAD(t->closed), chosen = CW_LOAD(t->chosen);

	/* If we wrote for the last op anyway, there is nothing to learn from it. */
	if (after_pause && chosen && chosen >= CW_LOAD(t->opened))
		learn(t);
	CW_STORE(t->chosen, op_index);
	CW_STORE(t->spot, spot);
	CW_STORE(t->place, place);
	CW_STORE(t->burst, burst);
	if (ops < CW_PROGRESS_BUDGET_FIRST_OPS) {
		CW_STORE(t->ops, ops + 1);
		return 0;
	}
	/*
	 * Never skip an op behind a pair of writes that has not ended. Such an op would seem to be
	 * running.
	 */
	if (after_pause || CW_LOAD(t->opened) != closed || op_index <= closed ||
	    op_index - closed > CW_REC_SLOT_SINCE_MAX || CW_LOAD(t->paid_until_ns) <= now_ns ||
	    is_marked(t, spot, place))
		return 0;
	return (unsigned)(op_index - closed);
}

void cw_progress_budget_open(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns)
{
	uint64_t paid = CW_LOAD(t->paid_until_ns);
	uint64_t first =
		now_ns > CW_PROGRESS_BUDGET_IN_HAND_NS ? now_ns - CW_PROGRESS_BUDGET_IN_HAND_NS : 0;
	uint64_t last = now_ns + CW_PROGRESS_BUDGET_IN_HAND_NS;

	paid = (paid > first ? paid : first) + CW_PROGRESS_BUDGET_PAIR_EARNED_NS;
	CW_STORE(t->paid_until_ns, paid < last ? paid : last);
	if (op_index != CW_LOAD(t->chosen) && is_after_pause(t, now_ns))
		CW_STORE(t->burst, 0u);
	CW_STORE(t->opened, op_index);
}

void cw_progress_budget_close(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns)
{
	CW_STORE(t->closed, op_index);
	CW_STORE(t->returned_ns, now_ns);
}

void cw_progress_budget_return(struct cw_progress_budget *t, uint64_t now_ns)
{
	CW_STORE(t->returned_ns, now_ns);
}
