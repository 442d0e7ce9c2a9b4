/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared part of every recorded call, kept together. Between two calls a training step sweeps
 * caches and TLB; what a call costs then is how many pages it waits for one after the other, each a
 * walk of page tables that are cold themselves. So all that it can name is asked for before any of
 * it is needed, in two rounds: the wrapper asks for code, the agent's own data (one page) and the
 * thread's; from these it is known what a call like the thread's last one writes in the record. No
 * code of the path lies outside of one section, and nothing asks the C library for the time.
 */
#pragma once

#include <stdint.h>

#include "agent/base/state.h"
#include "agent/ops/graph.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"

/* Same section: same pages, and next to each other. */
#define CW_HOT __attribute__((section("cw_hot"), hot))
#define CW_HOT_PAGES 3 /* of it: those that a call runs through */

#ifdef __x86_64__
/* Without asking the GOT where the agent's part is: it is near. */
#define CW_FETCH_THREAD() __asm__ volatile("prefetcht0 %fs:-64")
#else
#define CW_FETCH_THREAD() cw_fetch(&cw_tls)
#endif

extern const char __start_cw_hot[] __attribute__((visibility("hidden")));

/*
 * A function of nothing but prefetches has no effect that GCC 12 knows of: it drops the call. Hence
 * always_inline, and an asm that says there is one.
 */
#define CW_FETCHER static inline __attribute__((always_inline))

CW_FETCHER void cw_fetch(const void *at)
{
	__builtin_prefetch(at);
	__asm__ volatile("");
}

/*
 * First of all, what needs no load to be named: pages of code and of the agent's data, and the
 * thread's. Code is asked for as data, which fills the second-level TLB and the caches all share.
 */
CW_FETCHER void cw_hot_fetch_first(const void *member)
{
	const char *code = __start_cw_hot;

	cw_fetch(&cw_armed);
	CW_FETCH_THREAD();
	cw_fetch(&cw_comms[0]);
	cw_fetch(member);
	__asm__ volatile("" ::"r"(&cw_tls)); /* the GOT's word for where that is */
#pragma GCC unroll 8
	for (unsigned page = 0; page < CW_HOT_PAGES; page++)
		cw_fetch(code + page * 4096);
}

/*
 * Then what the agent's data and the thread's last op point to: a call like the last one writes
 * there. A hint that is wrong costs a line.
 */
CW_FETCHER void cw_hot_fetch(void)
{
	const struct cw_rec_comm *rc = &cw_record.comms[cw_tls.last_comm];
	const struct cw_rec_op *op = &cw_record.ring[cw_tls.next_slot & (CW_REC_RING_OPS - 1)];
	const struct cw_rec_op *own = &rc->ops[cw_tls.next_comm_slot & (CW_REC_COMM_OPS - 1)];

	cw_fetch(&rc->coll_entered);
	cw_fetch(&cw_record.header->ring_ticket);
	cw_fetch(op);
	cw_fetch(own);
	cw_fetch((const void *)cw_graph_is_capturing); /* the driver's code */
	cw_fetch(&cw_comms[cw_tls.last_comm]);
	cw_fetch((const char *)cw_armed);
	cw_fetch((const char *)&rc->coll_entered + 64);
	cw_fetch((const char *)op + 64);
	cw_fetch((const char *)own + 64);
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
 *
 * A thread can be put off the CPU in the middle until the others have gone once round the ring, and
 * then stores into their op. It sees that when it is done, and leaves the slot empty. To keep it
 * away altogether would take a locked instruction for every op, which waits for the slot's memory.
 */
static inline void cw_record_put(struct cw_rec_op *ring, uint32_t count, uint64_t ticket,
				 const uint64_t words[CW_OP_WORDS])
{
	uint64_t *to = (uint64_t *)&ring[ticket & (count - 1)];
	bool is_passed;

	__atomic_store_n(&to[0], 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
#pragma GCC unroll 16
	for (unsigned i = 1; i < CW_OP_WORDS; i++)
		__atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
	is_passed = __atomic_load_n(&to[0], __ATOMIC_RELAXED) != 0;
	__atomic_store_n(&to[0], cw_unlikely(is_passed) ? 0 : ticket + 1, __ATOMIC_RELEASE);
}

/* A flag for cw_record_finish() beside CW_OPF_*: the op's completion will stay unknown. */
#define CW_FINISH_UNTRACK (1u << 16)

/*
 * Completes an op in a ring unless it was overwritten: flags_set are added, flags_clear removed,
 * and with return_ns != 0 the time and result stored. Time first, then result and flags in one
 * store: RETURNED is never seen with an old result. If the slot goes to another op meanwhile, that
 * one may have got our words: it is taken out.
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
	if (cw_unlikely(__atomic_load_n(&op->publish, __ATOMIC_RELAXED) != ticket + 1))
		__atomic_store_n(&op->publish, 0, __ATOMIC_RELEASE);
}
