/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared part of every recorded call, kept together: what it costs is mostly which lines it
 * touches. All code of the path lies in one section; what it reads and writes is known from the
 * thread's last op. Between two calls a training step sweeps the caches, and some twenty misses
 * would be waited for one after the other: the first thing a call does is to ask for all that it
 * can name.
 */
#pragma once

#include <stdint.h>

#include "agent/agent.h"
#include "agent/comms.h"
#include "agent/record.h"

/* Same section: same pages, and next to each other. */
#define CW_HOT __attribute__((section("cw_hot"), hot))

/* The processor finds the lines behind these by itself; asking for more would be in the way. */
#define CW_HOT_AHEAD 512

extern const char __start_cw_hot[] __attribute__((visibility("hidden")));

static inline void cw_fetch_lines(uintptr_t at, size_t bytes)
{
#pragma GCC unroll 8
	for (uintptr_t end = at + bytes; at < end; at += 64)
		__builtin_prefetch((const void *)at);
}

/*
 * Asks for code and data of a call on the communicator of the thread's last op: before anything
 * else, when the record exists. Costs some 5 ns where all is there.
 */
static inline void cw_hot_fetch(void)
{
	uintptr_t rc = (uintptr_t)&cw_record.comms[cw_tls.last_comm];

	cw_fetch_lines((uintptr_t)__start_cw_hot, CW_HOT_AHEAD);
	__builtin_prefetch(&cw_comms[cw_tls.last_comm]);
	__builtin_prefetch(&cw_record.header->ring_ticket);
	cw_fetch_lines(rc + offsetof(struct cw_rec_comm, coll_entered), 2 * 64);
}

/* A division would cost as much as everything else in a store. */
_Static_assert((CW_REC_RING_OPS & (CW_REC_RING_OPS - 1)) == 0 &&
		       (CW_REC_COMM_OPS & (CW_REC_COMM_OPS - 1)) == 0,
	       "rings have a power of two slots");

/* The rows of an op as eight-byte words: publish is the first, the others follow. */
#define CW_OP_WORDS (sizeof(struct cw_rec_op) / sizeof(uint64_t))
#define CW_OP_STATUS_WORD (offsetof(struct cw_rec_op, comm) / sizeof(uint64_t))

_Static_assert(offsetof(struct cw_rec_op, publish) == 0, "publish is the first word");
_Static_assert(offsetof(struct cw_rec_op, comm) % 8 == 0 &&
		       offsetof(struct cw_rec_op, progress_slot) ==
			       offsetof(struct cw_rec_op, comm) + 6,
	       "comm, result, flags and progress slot share one word");

/*
 * Puts an op, as words, into the slot that its ticket names in a ring of count slots, a power of
 * two; words[0] is ignored. ticket comes from an atomic add on the ring's counter. Any thread,
 * lock-free.
 */
static inline void cw_record_put(struct cw_rec_op *ring, uint32_t count, uint64_t ticket,
				 const uint64_t words[CW_OP_WORDS])
{
	uint64_t *to = (uint64_t *)&ring[ticket & (count - 1)];

	__atomic_store_n(&to[0], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
#pragma GCC unroll 16
	for (unsigned i = 1; i < CW_OP_WORDS; i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
	__atomic_store_n(&to[0], ticket + 1, __ATOMIC_RELEASE);
}

/* A flag for cw_record_finish() beside CW_OPF_*: the op's completion will stay unknown. */
#define CW_FINISH_UNTRACK (1u << 16)

/*
 * Completes an op in a ring unless it was overwritten: flags_set are added, flags_clear removed,
 * and with return_ns != 0 the time and result stored. Time first, then result and flags in one
 * store: RETURNED is never seen with an old result.
 */
static inline void cw_record_finish(struct cw_rec_op *ring, uint32_t count, uint64_t ticket,
				    uint64_t return_ns, int result, unsigned flags_set,
				    unsigned flags_clear)
{
	struct cw_rec_op *op = &ring[ticket & (count - 1)];
	union {
		uint64_t word;
		struct {
			uint16_t comm;
			int16_t result;
			uint16_t flags;
			uint16_t progress_slot;
		} f;
	} status;

	if (__atomic_load_n(&op->publish, __ATOMIC_ACQUIRE) != ticket + 1)
		return;
	status.word = CW_LOAD(((uint64_t *)op)[CW_OP_STATUS_WORD]);
	status.f.flags = (uint16_t)((status.f.flags | flags_set) & ~flags_clear);
	if (flags_set & CW_FINISH_UNTRACK)
		status.f.progress_slot = CW_REC_NO_SLOT;
	if (return_ns) {
		status.f.result = (int16_t)result;
		CW_STORE(op->return_ns, return_ns);
	}
	__atomic_store_n(&((uint64_t *)op)[CW_OP_STATUS_WORD], status.word, __ATOMIC_RELEASE);
}
