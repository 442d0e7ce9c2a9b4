/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=auto: which ops get no progress writes, if a pair for each op would cost more
 * than 0.3 % of the stream's time.
 *
 * When we skip an op's writes, we do not know whether another op follows. If none follows, we
 * cannot see a hang of that op. So we bound the skips, and learn where not to skip:
 *
 * - Each progress slot earns 0.3 % of the time that passes and pays for each pair, with a second's
 *   earnings in hand. Only a stream that sustains more than a pair each
 *   CW_PROGRESS_BUDGET_PAIR_EARNED_NS skips any.
 * - The last op before the host goes quiet matters most. If nothing follows an op for
 *   CW_PROGRESS_BUDGET_QUIET_NS, we remember two things: its kind, count and call site, and these
 *   with its position in the burst. From then on we write for ops that match.
 * - We always write for the first ops of a slot, and for the first op after a pause. We also write
 *   for an op that is more than CW_REC_SLOT_SINCE_MAX ops behind the last written one.
 *
 * Candidates are single collectives that no rank leaves before all ranks have entered
 * (agent/ops/ops.c): a missing rank then proves that they cannot have completed. All other uses of
 * the slot always get their writes, and pay for them.
 *
 * Any thread, lock-free, no division. Two threads on one slot may lose each other's updates; then
 * we write for an op more or less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/* The cost of a pair of writes on a stream: an H200 with driver 580 (docs/lab/gpu.md). */
#define CW_PROGRESS_BUDGET_PAIR_NS 4600u
/* We may spend 3 of every 1,000 ns on writes. */
#define CW_PROGRESS_BUDGET_EARNED_IN_1000 3u
#define CW_PROGRESS_BUDGET_PAIR_EARNED_NS                                                          \
	(CW_PROGRESS_BUDGET_PAIR_NS * UINT64_C(1000) / CW_PROGRESS_BUDGET_EARNED_IN_1000)
/* The earnings in hand pay for the burst of an ordinary training step. */
#define CW_PROGRESS_BUDGET_IN_HAND_NS UINT64_C(1000000000)
/* Longer than the gap between two ops of any stream that skips some. */
#define CW_PROGRESS_BUDGET_QUIET_NS UINT64_C(2000000)
#define CW_PROGRESS_BUDGET_FIRST_OPS 64u
/*
 * Marks are bits of a hash. With more than CW_PROGRESS_BUDGET_MARKS of them, chance hits would
 * be common.
 */
#define CW_PROGRESS_BUDGET_MARK_BITS 512u
#define CW_PROGRESS_BUDGET_MARKS 64u
/* Of so many ops that the budget cannot pay for, marks may force writes for so many. */
#define CW_PROGRESS_BUDGET_LOOKS 1024u
#define CW_PROGRESS_BUDGET_HITS 64u

struct cw_progress_budget_marks {
	uint64_t bits[CW_PROGRESS_BUDGET_MARK_BITS / 64];
	uint32_t count;
};

/* The state of a slot; all zero at the start. */
struct cw_progress_budget {
	uint64_t paid_until_ns; /* in the future: no earnings in hand */
	uint64_t returned_ns;   /* return of the newest call; 0 = none yet */
	uint64_t opened;        /* newest op with a "reached" write */
	uint64_t closed;        /* newest with "completed": before opened if its call failed */
	uint64_t chosen;        /* newest op of a leave_out() call */
	uint32_t spot, place;   /* of chosen */
	uint32_t ops;           /* ops so far, up to CW_PROGRESS_BUDGET_FIRST_OPS */
	uint32_t burst;         /* ops since the host was quiet */
	uint32_t looks, hits;
	uint32_t hit_by[2];                     /* the last two: a spot, 0 = any place */
	struct cw_progress_budget_marks spots;  /* kind, count and call site */
	struct cw_progress_budget_marks places; /* those, and the position in the burst */
	struct cw_progress_budget_marks common; /* spots too frequent to mean anything */
} __attribute__((aligned(64)));

extern bool cw_progress_budget_is_on;

/* Call this before the first op of a slot. */
void cw_progress_budget_reset(uint16_t slot);

/* Identifies an op by its kind, count and call site. */
static inline uint32_t cw_progress_budget_spot(unsigned kind, uint64_t count, const void *caller)
{
	uint64_t h = ((uintptr_t)caller ^ count << 20 ^ (uint64_t)kind << 56) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/*
 * Decides whether op_index, which the caller is about to launch, gets writes. 0 = write. Otherwise:
 * the distance to the newest op before it that has writes, at most CW_REC_SLOT_SINCE_MAX. Between
 * this call and the writes the caller asks about no other op of the slot.
 */
unsigned cw_progress_budget_leave_out(struct cw_progress_budget *t, uint32_t spot,
				      uint64_t op_index, uint64_t now_ns);

/* A pair of writes begins, and ends. */
void cw_progress_budget_open(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);
void cw_progress_budget_close(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);

/* The call of a skipped op returned. */
void cw_progress_budget_return(struct cw_progress_budget *t, uint64_t now_ns);

struct cw_progress_budget *cw_progress_budget_of(uint16_t slot);
