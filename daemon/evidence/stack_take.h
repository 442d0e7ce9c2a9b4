/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies registers and stacks of a live process, without any risk for it. We hold (stop) each
 * thread with PTRACE_SEIZE and PTRACE_INTERRUPT, but only while we copy its registers and at most
 * 256 KiB of its stack. If the taker is killed at any moment, the kernel releases the thread: a
 * seized thread is detached when its tracer ends. A thread that was stopped before stays stopped.
 *
 * The taker is a process of its own, because only the end of a process reliably releases the
 * threads that it traces. It writes the copies into memory that it shares with its parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Maximum number of threads that we copy. The main thread comes first. Most other threads of a rank
 * look alike.
 */
#define CW_STACK_MAX_THREADS 64u
#define CW_STACK_MAX_BYTES (256u << 10)
/*
 * Longest wall time for holding all threads of a process, added up. A capture delays a rank by no
 * more than this. Usually a hold takes 0.1 ms per thread.
 */
#define CW_STACK_HOLD_MS 100u
/*
 * Maximum number of registers, counted as in DWARF. x86-64 has 17 (0-15, return address), aarch64
 * has 32 (x0-x30, sp).
 */
#define CW_STACK_MAX_REGS 32u

enum cw_stack_result {
	CW_STACK_PENDING = 0, /* not done yet, or the taker died while it held this thread */
	CW_STACK_TAKEN,
	CW_STACK_PEEKED,          /* copied without a hold, so we know only stack pointer and pc */
	CW_STACK_UNINTERRUPTIBLE, /* the thread is in state D, so we do not touch it */
	CW_STACK_OURS,            /* a thread of our agent */
	CW_STACK_GONE,
	CW_STACK_TRACED,      /* another process traces the thread */
	CW_STACK_NOT_ALLOWED, /* we have no right to trace the thread */
	CW_STACK_NOT_STOPPED, /* the thread did not stop in time */
	CW_STACK_OTHER_USER,  /* the registered user may not see the thread */
	CW_STACK_FAILED,
	CW_STACK_SPENT, /* the time for holding this process was used up */
};

struct cw_stack_thread {
	pid_t tid;
	char name[64];
	char state;
	uint8_t result; /* enum cw_stack_result */
	int error;      /* errno, for CW_STACK_FAILED */
	int64_t held_ns;
	/*
	 * Time that the thread had run when it slept, from schedstat; 0 = it did not sleep, or not
	 * known. If the thread had the same time earlier, it slept since, and its stack is the
	 * same.
	 */
	uint64_t run_ns;
	uint64_t pc, sp;
	/* Registers by their DWARF numbers; only for CW_STACK_TAKEN. */
	uint64_t regs[CW_STACK_MAX_REGS];
	uint64_t stack_start; /* address of the first byte that we copied */
	uint32_t stack_len;
};

/*
 * The memory that the taker shares with its parent. Our code writes it, but the bytes come from an
 * untrusted process.
 */
struct cw_mapped_memory;

struct cw_stack_copy {
	pid_t pid;
	uid_t uid;   /* user that must own the process */
	int proc_fd; /* descriptor of the process's /proc/PID */
	uint32_t n_threads, n_total;
	uint32_t next;     /* index of the thread to copy after the current one */
	int64_t budget_ns; /* CW_STACK_HOLD_MS less the time that a killed taker needs to die */
	/* Sum over all threads; the last hold of a taker that died counts with its full limit. */
	int64_t held_ns;
	struct cw_stack_thread threads[CW_STACK_MAX_THREADS];
	/* The memory that we may copy, as we saw it at the start; NULL = none. */
	struct cw_mapped_memory *memory;
	uint8_t stacks[CW_STACK_MAX_THREADS][CW_STACK_MAX_BYTES];
};

/*
 * Allocates a copy in shared, anonymous memory, which takes pages on demand. Lists the threads, and
 * finds the readable memory of the process. Returns 0 or -errno. The caller frees the copy, unless
 * it is a child that exits.
 */
int cw_stack_take_copy(pid_t pid, uid_t uid, struct cw_stack_copy **ret);

/* Frees the copy. A taker that still runs keeps the shared memory. Returns NULL. */
struct cw_stack_copy *cw_stack_take_free(struct cw_stack_copy *copy);

/*
 * Forks takers until all threads are done. If takers die or give up, forks a few more at most.
 * Blocks for at most about 2 s, because all its steps have time limits. Returns 0 or -errno.
 */
int cw_stack_take_all(struct cw_stack_copy *copy);

/*
 * Copies the threads from copy->next on, in the calling process. Returns 0 when all threads are
 * done. -ETIMEDOUT: a thread did not stop, and this process must exit to release it. A thread has
 * 250 ms to stop. Its hold begins at the last moment when the thread was certainly running. The
 * hold may last for limit_ms, or for the rest of budget_ns if this is less. Then the kernel kills
 * this process, even if it is stopped.
 */
int cw_stack_take(struct cw_stack_copy *copy, uint32_t limit_ms);
