/* SPDX-License-Identifier: Apache-2.0 */
/*
 * COLLWATCH_PROGRESS=auto: a pair of progress writes for each op must not cost more than 0.3 % of
 * the stream's time. On a busy stream we therefore choose ops that get no writes.
 *
 * When we skip an op's writes, we do not know whether another op follows. If no op follows, we
 * cannot see a hang of the skipped op. We therefore limit the skips, and learn which ops to write
 * for:
 *
 * - Each progress slot earns 0.3 % of the time that passes and pays for each pair of writes. It may
 *   save up one second's earnings. A slot skips ops only if its stream has more than one pair per
 *   CW_PROGRESS_BUDGET_PAIR_EARNED_NS for long.
 * - The last op before the host goes quiet matters most. If no op follows an op for
 *   CW_PROGRESS_BUDGET_QUIET_NS, we store two marks. The "spot" mark has the op's kind, count and
 *   call site. The "place" mark adds the op's position in the burst (the ops since the last pause).
 *   From then on we write for ops that match a mark.
 * - We always write for the first ops of a slot, and for the first op after a pause. We also write
 *   for an op that is more than CW_REC_SLOT_SINCE_MAX ops behind the last written one.
 *
 * We skip only single collectives that no rank leaves before all ranks have entered
 * (agent/ops/ops.c). A missing rank then proves that such a collective cannot have completed. All
 * other uses of the slot always get their writes, and pay for them.
 *
 * Any thread, lock-free, no division. Two threads on one slot may lose each other's updates. We
 * then write for an op more or less.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "record/record_layout.h"

/*
 * The cost of a pair of writes on a stream, measured on an H200 with driver 580 (docs/lab/gpu.md).
 */
#define CW_PROGRESS_BUDGET_PAIR_NS 4600u
/* We may spend 3 of every 1,000 ns on writes. */
#define CW_PROGRESS_BUDGET_EARNED_IN_1000 3u
#define CW_PROGRESS_BUDGET_PAIR_EARNED_NS                                                          \
	(CW_PROGRESS_BUDGET_PAIR_NS * UINT64_C(1000) / CW_PROGRESS_BUDGET_EARNED_IN_1000)
/*
 * A slot may save up the earnings of this time. These earnings pay for the burst of an ordinary
 * training step.
 */
#define CW_PROGRESS_BUDGET_IN_HAND_NS UINT64_C(1000000000)
/*
 * The host is quiet if it launches nothing for this long. A stream that is busy enough to skip ops
 * has shorter gaps.
 */
#define CW_PROGRESS_BUDGET_QUIET_NS UINT64_C(2000000)
#define CW_PROGRESS_BUDGET_FIRST_OPS 64u
/*
 * Marks are bits in a hash table. With more than CW_PROGRESS_BUDGET_MARKS marks, chance hits would
 * be common.
 */
#define CW_PROGRESS_BUDGET_MARK_BITS 512u
#define CW_PROGRESS_BUDGET_MARKS 64u
/*
 * Of CW_PROGRESS_BUDGET_LOOKS ops that the budget cannot pay for, at most CW_PROGRESS_BUDGET_HITS
 * may get writes because of marks.
 */
#define CW_PROGRESS_BUDGET_LOOKS 1024u
#define CW_PROGRESS_BUDGET_HITS 64u

struct cw_progress_budget_marks {
	uint64_t bits[CW_PROGRESS_BUDGET_MARK_BITS / 64];
	uint32_t count;
};

/* The state of a slot. All fields are zero at the start. */
struct cw_progress_budget {
	uint64_t paid_until_ns; /* a time in the future = the slot has no earnings left */
	uint64_t returned_ns;   /* time when the newest call returned; 0 = none yet */
	uint64_t opened;        /* op_index of the newest op with a "reached" write */
	/*
	 * op_index of the newest op with a "completed" write. A failed call gets no such write, so
	 * this index may stay below `opened`.
	 */
	uint64_t closed;
	/* op_index of the newest op passed to cw_progress_budget_leave_out() */
	uint64_t chosen;
	uint32_t spot, place; /* hashes for the marks of the op in `chosen` */
	uint32_t ops;         /* ops so far, up to CW_PROGRESS_BUDGET_FIRST_OPS */
	uint32_t burst;       /* ops since the host was quiet */
	uint32_t looks, hits;
	/* The last two ops with a matching mark: the spot, or 0 for a place. */
	uint32_t hit_by[2];
	struct cw_progress_budget_marks spots; /* marks of kind, count and call site */
	/* Marks of kind, count, call site and position in the burst. */
	struct cw_progress_budget_marks places;
	struct cw_progress_budget_marks common; /* spots too frequent to mean anything */
} __attribute__((aligned(64)));

extern bool cw_progress_budget_is_on;

/* Clears the state of a slot before its first op. */
void cw_progress_budget_reset(uint16_t slot);

/* Returns a hash that identifies an op by its kind, count and call site. */
static inline uint32_t cw_progress_budget_spot(unsigned kind, uint64_t count, const void *caller)
{
	uint64_t h = ((uintptr_t)caller ^ count << 20 ^ (uint64_t)kind << 56) *
		     UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(h >> 32);
}

/*
 * Decides whether op_index, which the caller is about to launch, gets writes. Returns 0 if the op
 * gets writes. Otherwise returns the distance to the newest earlier op with writes, at most
 * CW_REC_SLOT_SINCE_MAX. The caller must make the writes before it passes another op of the slot.
 */
unsigned cw_progress_budget_leave_out(struct cw_progress_budget *t, uint32_t spot,
				      uint64_t op_index, uint64_t now_ns);

/*
 * Note the begin and the end of a pair of writes for an op. cw_progress_budget_open() also pays for
 * the pair.
 */
void cw_progress_budget_open(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);
void cw_progress_budget_close(struct cw_progress_budget *t, uint64_t op_index, uint64_t now_ns);

/* Notes that the call of a skipped op has returned to the host. */
void cw_progress_budget_return(struct cw_progress_budget *t, uint64_t now_ns);

struct cw_progress_budget *cw_progress_budget_of(uint16_t slot);
