/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every call looks at first: whether calls are recorded, and what the agent keeps of a thread.
 *
 * A forked child finds the armed byte wiped by the kernel (MADV_WIPEONFORK covers raw clone and
 * posix_spawn, where atfork handlers do not run) and passes every call straight through.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CW_EXPORT __attribute__((visibility("default")))

/* Data that every call looks at: one page, few lines. */
#define CW_HOT_DATA __attribute__((section("cw_hot_data")))

#define cw_likely(x) __builtin_expect(!!(x), 1)
#define cw_unlikely(x) __builtin_expect(!!(x), 0)

struct cw_group;

/* Initial-exec, and small: it is part of every thread of every preloaded process. */
struct cw_tls {
	uint32_t depth;          /* inside a wrapper: NCCL calling itself does not count */
	uint32_t group_depth;    /* open ncclGroupStart */
	uint32_t tid;            /* gettid(), 0 = not asked yet */
	uint16_t last_comm;      /* entry the last op was on: a hint */
	uint16_t last_module;    /* of the last call site, if module_bytes is not 0 */
	uint32_t next_slot;      /* of the bulk ring, as of the last op: a hint */
	uint32_t next_comm_slot; /* of last_comm's own: a hint */
	struct cw_group *group;
	uintptr_t module_start; /* of last_module */
	uintptr_t module_bytes;
	uintptr_t frame; /* of the wrapper, where call stacks are taken */
} __attribute__((aligned(64)));

extern __thread struct cw_tls cw_tls __attribute__((tls_model("initial-exec")));

/* Points at a zero byte until the record exists. */
extern const volatile unsigned char *cw_armed;

static inline bool cw_agent_is_armed(void)
{
	return *__atomic_load_n(&cw_armed, __ATOMIC_ACQUIRE) != 0;
}

/* COLLWATCH_DISABLE is on: wrappers only forward. Read once. */
bool cw_agent_is_disabled(void);

/* CLOCK_MONOTONIC: the record's clock. */
static inline uint64_t cw_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* The calling thread's id, from the kernel once per thread. */
uint32_t cw_tid_ask(void);

static inline uint32_t cw_tid(void)
{
	return cw_likely(cw_tls.tid) ? cw_tls.tid : cw_tid_ask();
}
