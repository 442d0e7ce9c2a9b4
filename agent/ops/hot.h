/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code and data that all recorded calls share, placed together. Between two calls a training
 * step replaces the contents of the caches and the TLB. A call then waits for each page that it
 * touches, one after the other. Each wait walks page tables that are cold themselves. We therefore
 * prefetch all pages that we can name before the call needs them, in two rounds. First the wrapper
 * prefetches code, the agent's own data (one page) and the thread's data. These data tell us where
 * a call like the thread's last one writes in the record. The second round prefetches those places.
 * All code of the path is in one section, and no code asks the C library for the time.
 */
#pragma once

#include <stdint.h>

#include "agent/base/state.h"
#include "agent/ops/graph.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"

/* Places functions in one section. They then share pages and lie next to each other. */
#define CW_HOT __attribute__((section("cw_hot"), hot))
#define CW_HOT_PAGES 3 /* pages of the section that a call runs through */

#ifdef __x86_64__
/* The agent's thread data lies at a near offset, so we need no GOT lookup. */
#define CW_FETCH_THREAD() __asm__ volatile("prefetcht0 %fs:-64")
#else
#define CW_FETCH_THREAD() cw_fetch(&cw_tls)
#endif

extern const char __start_cw_hot[] __attribute__((visibility("hidden")));

/*
 * Marks a function that only prefetches. GCC 12 sees no effect in such a function and drops the
 * call. We therefore use always_inline, and an asm statement as the visible effect.
 */
#define CW_FETCHER static inline __attribute__((always_inline))

CW_FETCHER void cw_fetch(const void *at)
{
	__builtin_prefetch(at);
	__asm__ volatile("");
}

/*
 * First round: prefetches addresses that we know without a load. They are code pages, the agent's
 * data and the thread's data. We prefetch code as data, which fills the second-level TLB and the
 * shared caches.
 */
CW_FETCHER void cw_hot_fetch_first(const void *member)
{
	const char *code = __start_cw_hot;

	cw_fetch(&cw_armed);
	CW_FETCH_THREAD();
	cw_fetch(&cw_comms[0]);
	cw_fetch(member);
	__asm__ volatile("" ::"r"(&cw_tls)); /* loads the GOT entry of cw_tls into the cache */
#pragma GCC unroll 8
	for (unsigned page = 0; page < CW_HOT_PAGES; page++)
		cw_fetch(code + page * 4096);
}

/*
 * Second round: prefetches addresses that need a load. They follow from pointers in the agent's
 * data and from the thread's last op. A similar call writes to the same places. A wrong hint costs
 * one cache line.
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

/*
 * A power of two lets us mask instead of dividing. A division would cost as much as the rest of a
 * store.
 */
_Static_assert((CW_REC_RING_OPS & (CW_REC_RING_OPS - 1)) == 0 &&
		       (CW_REC_COMM_OPS & (CW_REC_COMM_OPS - 1)) == 0,
	       "rings have a power of two slots");

/* Number of eight-byte words in an op. publish is the first word. */
#define CW_OP_WORDS (sizeof(struct cw_rec_op) / sizeof(uint64_t))
#define CW_OP_STATUS_WORD (offsetof(struct cw_rec_op, comm) / sizeof(uint64_t))

_Static_assert(offsetof(struct cw_rec_op, publish) == 0, "publish is the first word");
_Static_assert(offsetof(struct cw_rec_op, comm) % 8 == 0 &&
		       offsetof(struct cw_rec_op, progress_slot) ==
			       offsetof(struct cw_rec_op, comm) + 6,
	       "comm, result, flags and progress slot share one word");

/*
 * Stores an op, given as words, in the slot of its ticket. The ring has `count` slots, a power of
 * two. We ignore words[0]. `ticket` comes from an atomic add on the ring's counter. Any thread,
 * lock-free.
 *
 * The kernel may preempt a thread in the middle, until other threads have filled the whole ring
 * once. The thread then stores into another op. It notices this at the end, and leaves the slot
 * empty. Each op would need a locked instruction to rule this out, and such an instruction waits
 * for the slot's memory.
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

/*
 * A flag for cw_record_finish(), in addition to CW_OPF_*. With it, the op's completion will stay
 * unknown.
 */
#define CW_FINISH_UNTRACK (1u << 16)

/*
 * Completes an op in a ring unless another op has overwritten it. Adds flags_set, removes
 * flags_clear, and with return_ns != 0 stores the time and result. We store the time first, then
 * result and flags in one store. A reader therefore never sees RETURNED with an old result. If
 * another op takes the slot during our stores, it may contain our words, so we empty the slot.
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
