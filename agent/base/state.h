/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state that every call reads first: the armed byte, and the agent's thread-local data.
 *
 * In a forked child the kernel sets the armed byte to 0, and the child then passes every call
 * straight through. MADV_WIPEONFORK has this effect even after raw clone and posix_spawn, which do
 * not run atfork handlers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CW_EXPORT __attribute__((visibility("default")))

/* For data that every call reads. In one section it shares one page and few cache lines. */
#define CW_HOT_DATA __attribute__((section("cw_hot_data")))

#define cw_likely(x) __builtin_expect(!!(x), 1)
#define cw_unlikely(x) __builtin_expect(!!(x), 0)

struct cw_group;

/*
 * The agent's data of one thread. Initial-exec and small, because every thread of every preloaded
 * process has it.
 */
struct cw_tls {
	uint32_t depth;          /* > 0 inside a wrapper: we then ignore NCCL's calls to itself */
	uint32_t group_depth;    /* open ncclGroupStart calls */
	uint32_t tid;            /* gettid(), 0 = not read yet */
	uint16_t last_comm;      /* hint: entry of the communicator of the last op */
	uint16_t last_module;    /* module of the last call site, valid if module_bytes is not 0 */
	uint32_t next_slot;      /* hint: next slot of the bulk ring after the last op */
	uint32_t next_comm_slot; /* hint: next slot of last_comm's ring */
	struct cw_group *group;
	uintptr_t module_start; /* range of last_module */
	uintptr_t module_bytes;
	uintptr_t frame; /* the wrapper's frame, set if the agent takes call stacks */
} __attribute__((aligned(64)));

extern __thread struct cw_tls cw_tls __attribute__((tls_model("initial-exec")));

/*
 * The armed byte: not 0 if the agent records calls. Points at a zero byte until the record exists.
 */
extern const volatile unsigned char *cw_armed;

static inline bool cw_agent_is_armed(void)
{
	return *__atomic_load_n(&cw_armed, __ATOMIC_ACQUIRE) != 0;
}

/*
 * Returns whether COLLWATCH_DISABLE is on. The wrappers then only forward. We read the variable
 * once.
 */
bool cw_agent_is_disabled(void);

/* Returns the time on CLOCK_MONOTONIC in ns, the clock of the record. */
static inline uint64_t cw_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Reads the calling thread's id from the kernel. cw_tid() calls it once per thread. */
uint32_t cw_tid_ask(void);

static inline uint32_t cw_tid(void)
{
	return cw_likely(cw_tls.tid) ? cw_tls.tid : cw_tid_ask();
}
