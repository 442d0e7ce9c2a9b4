/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=auto: which ops get no progress writes, where a pair for each would cost more
 * than 0.3 % of their stream's time.
 *
 * Who leaves out an op's writes does not know whether another op follows; if none does, nobody sees
 * that one hang. So what is left out is bounded and learnt:
 *
 * - Each progress slot earns 0.3 % of the time that passes and pays for each pair, with a second's
 *   earnings in hand: only a stream that keeps up more than a pair each
 *   CW_PROGRESS_BUDGET_PAIR_EARNED_NS leaves any out.
 * - The last op before the host went quiet is the one that matters. The place of an op after which
 *   once nothing followed for CW_PROGRESS_BUDGET_QUIET_NS is remembered: its kind, count and
 *   call site, and these with its position in the burst. It is written from then on.
 * - The first ops of a slot, the first after a pause, and one within CW_REC_SLOT_SINCE_MAX ops of
 *   the last that was written are written in any case.
 *
 * Only single collectives that nobody leaves before all have entered them are candidates
 * (agent/ops/ops.c): that somebody is missing then says that they cannot have completed. Whatever
 * else uses the slot is always written, and paid for.
 *
 * Any thread, lock-free, no division. Two threads on one slot may lose each other's notes: an op
 * more or less is written.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/* What a pair of writes costs a stream: of an H200 with driver 580 (docs/gpu.md). */
#define CW_PROGRESS_BUDGET_PAIR_NS 4600u
/* Of 1,000 ns that pass, 3 are for writes. */
#define CW_PROGRESS_BUDGET_EARNED_IN_1000 3u
#define CW_PROGRESS_BUDGET_PAIR_EARNED_NS                                                          \
	(CW_PROGRESS_BUDGET_PAIR_NS * UINT64_C(1000) / CW_PROGRESS_BUDGET_EARNED_IN_1000)
/* The burst of an ordinary training step goes through. */
#define CW_PROGRESS_BUDGET_IN_HAND_NS UINT64_C(1000000000)
/* Longer than between two ops of any stream that leaves some out. */
#define CW_PROGRESS_BUDGET_QUIET_NS UINT64_C(2000000)
#define CW_PROGRESS_BUDGET_FIRST_OPS 64u
/* Marks are bits of a hash; with more places than that they would be hit by chance. */
#define CW_PROGRESS_BUDGET_MARK_BITS 512u
#define CW_PROGRESS_BUDGET_MARKS 64u
/* Of so many ops that could not be paid for, so many may be written because of marks. */
#define CW_PROGRESS_BUDGET_LOOKS 1024u
#define CW_PROGRESS_BUDGET_HITS 64u

struct cw_progress_budget_marks {
	uint64_t bits[CW_PROGRESS_BUDGET_MARK_BITS / 64];
	uint32_t count;
};

/* What is kept of a slot; all zero to begin with. */
struct cw_progress_budget {
	uint64_t paid_until_ns; /* in the future: there is nothing in hand */
	uint64_t returned_ns;   /* the newest call came back; 0 = none yet */
	uint64_t opened;        /* op whose "reached" was written last */
	uint64_t closed;        /* op whose "completed" was: before opened if its call failed */
	uint64_t chosen;        /* the newest op that was asked about */
	uint32_t spot, place;   /* of that one */
	uint32_t ops;           /* seen, up to CW_PROGRESS_BUDGET_FIRST_OPS */
	uint32_t burst;         /* since the host was quiet */
	uint32_t looks, hits;
	uint32_t hit_by[2];                     /* the last two: a spot, 0 = any place */
	struct cw_progress_budget_marks spots;  /* kind, count and call site */
	struct cw_progress_budget_marks places; /* those, and the position in the burst */
	struct cw_progress_budget_marks common; /* spots that come too often to tell anything */
} __attribute__((aligned(64)));

extern bool cw_progress_budget_is_on;

/* Before the first op of a slot. */
void cw_progress_budget_reset(uint16_t slot);

/* What an op is recognised by. */
static inline uint32_t cw_progress_budget_spot(unsigned kind, uint64_t count, const void *caller)
{
	uint64_t h = ((uintptr_t)caller ^ count << 20 ^ (uint64_t)kind << 56) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/*
 * Whether op_index, about to be launched, gets no writes: then how many ops before it the newest
 * one lies that has some, at most CW_REC_SLOT_SINCE_MAX. 0 = write. Between this and the writes
 * nothing else may be asked about the slot.
 */
unsigned cw_progress_budget_leave_out(struct cw_progress_budget *t, uint32_t spot,
				      uint64_t op_index, uint64_t now_ns);

/* A pair begins, ends. */
void cw_progress_budget_open(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);
void cw_progress_budget_close(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);

/* The call of an op that was left out came back. */
void cw_progress_budget_return(struct cw_progress_budget *t, uint64_t now_ns);

struct cw_progress_budget *cw_progress_budget_of(uint16_t slot);
