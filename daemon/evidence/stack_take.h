/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies registers and stacks of a live process in a way that cannot hurt it. We hold each thread
 * (PTRACE_SEIZE, PTRACE_INTERRUPT) only while we copy its registers and at most 256 KiB of stack.
 * If the taker is killed at any moment, the kernel releases the thread. A seized thread is detached
 * when its tracer ends, and a thread that was stopped before stays stopped.
 *
 * The taker is a process of its own, because only its end surely releases the threads that it
 * traces. It writes into memory that it shares with its parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The limit of threads. The main thread comes first; most other threads of a rank are alike. */
#define CW_STACK_MAX_THREADS 64u
#define CW_STACK_MAX_BYTES (256u << 10)
/*
 * The limit of the time that we hold all threads of a process together, in wall time. No capture
 * delays a rank by more. Usually a hold takes 0.1 ms per thread.
 */
#define CW_STACK_HOLD_MS 100u
/*
 * The number of registers, counted as in DWARF: x86-64 has 17 (0-15, return address), aarch64 32
 * (x0-x30, sp).
 */
#define CW_STACK_MAX_REGS 32u

enum cw_stack_result {
	CW_STACK_PENDING = 0, /* not examined, or the taker died while it held this thread */
	CW_STACK_TAKEN,
	CW_STACK_PEEKED,          /* not held; we know only stack pointer and pc */
	CW_STACK_UNINTERRUPTIBLE, /* state D: we do not touch it */
	CW_STACK_OURS,            /* a thread of the agent */
	CW_STACK_GONE,
	CW_STACK_TRACED,      /* another tracer holds it */
	CW_STACK_NOT_ALLOWED, /* no right to trace */
	CW_STACK_NOT_STOPPED, /* did not stop in time */
	CW_STACK_OTHER_USER,  /* not visible to the registered user */
	CW_STACK_FAILED,
	CW_STACK_SPENT, /* the hold time of the rank was already used up */
};

struct cw_stack_thread {
	pid_t tid;
	char name[64];
	char state;
	uint8_t result; /* enum cw_stack_result */
	int error;      /* errno of CW_STACK_FAILED */
	int64_t held_ns;
	uint64_t pc, sp;
	uint64_t regs[CW_STACK_MAX_REGS]; /* registers by DWARF number; only for CW_STACK_TAKEN */
	uint64_t stack_start;             /* address of the first copied byte */
	uint32_t stack_len;
};

/* The memory that taker and parent share. The taker is trusted code over untrusted bytes. */
struct cw_mapped_memory;

struct cw_stack_copy {
	pid_t pid;
	uid_t uid;   /* required owner of the process */
	int proc_fd; /* descriptor of /proc/PID */
	uint32_t n_threads, n_total;
	uint32_t next;     /* next thread to take, after the current one */
	int64_t budget_ns; /* CW_STACK_HOLD_MS less the time that a taker needs to die */
	int64_t held_ns;   /* sum over all threads; a dead taker's last hold counts in full */
	struct cw_stack_thread threads[CW_STACK_MAX_THREADS];
	/* Memory that we may copy, as of the beginning; NULL = none. */
	struct cw_mapped_memory *memory;
	uint8_t stacks[CW_STACK_MAX_THREADS][CW_STACK_MAX_BYTES];
};

/*
 * Makes a copy (shared, anonymous memory with pages on demand), lists the threads and finds the
 * readable memory of the process. 0 or -errno. The caller frees the copy; a child that ends need
 * not do so.
 */
int cw_stack_take_copy(pid_t pid, uid_t uid, struct cw_stack_copy **ret);

/* Takers that still run keep the memory that they share with the caller. Returns NULL. */
struct cw_stack_copy *cw_stack_take_free(struct cw_stack_copy *copy);

/*
 * Forks takers until all threads are done. If takers die or give up half way, we fork at most a
 * few. Blocks for at most about 2 s, by its own time limits.
 */
int cw_stack_take_all(struct cw_stack_copy *copy);

/*
 * Does the taker's work in the calling process, from copy->next on. Returns 0 when all threads are
 * done. -ETIMEDOUT: a thread did not stop, and this process must end to release it. A thread gets
 * 250 ms to stop. The hold counts from the last moment at which the thread certainly ran. It lasts
 * for at most limit_ms, or the rest of budget_ns. Then the kernel kills this process, even if it is
 * stopped.
 */
int cw_stack_take(struct cw_stack_copy *copy, uint32_t limit_ms);
