/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies registers and stacks of a live process without a way to hurt it. We hold each thread
 * (PTRACE_SEIZE, PTRACE_INTERRUPT) only while we copy its registers and at most 256 KiB of stack.
 * If the taker is killed at any moment, the kernel releases the thread. A seized thread is detached
 * when its tracer ends, and a thread that was stopped before stays stopped.
 *
 * The taker is a process of its own, because a tracer's duties are certain to end only with the
 * tracer. It writes into memory that it shares with its parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The main thread comes first; most other threads of a rank are alike. */
#define CW_STACK_MAX_THREADS 64u
#define CW_STACK_MAX_BYTES (256u << 10)
/*
 * Limit on the time that we hold all threads of a process together, by the clock: no capture delays
 * a rank by more. Usual is 0.1 ms per thread.
 */
#define CW_STACK_HOLD_MS 100u
/* DWARF numbers: x86-64 has 17 (0-15, return address), aarch64 32 (x0-x30, sp). */
#define CW_STACK_MAX_REGS 32u

enum cw_stack_result {
	CW_STACK_PENDING = 0, /* not examined, or the taker died at it */
	CW_STACK_TAKEN,
	CW_STACK_PEEKED,          /* not held: only stack pointer and pc are known */
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
	uint64_t regs[CW_STACK_MAX_REGS]; /* of CW_STACK_TAKEN, by DWARF number */
	uint64_t stack_start;             /* address of the first copied byte */
	uint32_t stack_len;
};

/* Shared between taker and parent; the taker is trusted code over untrusted bytes. */
struct cw_mapped_memory;

struct cw_stack_copy {
	pid_t pid;
	uid_t uid;   /* required owner of the process */
	int proc_fd; /* of /proc/PID */
	uint32_t n_threads, n_total;
	uint32_t next;     /* next thread to take, after the current one */
	int64_t budget_ns; /* CW_STACK_HOLD_MS, less the time to die */
	int64_t held_ns;   /* all threads together; a dead taker's last hold counts in full */
	struct cw_stack_thread threads[CW_STACK_MAX_THREADS];
	struct cw_mapped_memory *memory; /* may be copied, as of the beginning; NULL = none */
	uint8_t stacks[CW_STACK_MAX_THREADS][CW_STACK_MAX_BYTES];
};

/*
 * Maps a copy (shared, anonymous, pages on demand), lists the threads and finds the readable memory
 * of the process. 0 or -errno. The caller frees the copy; a child that ends may leave this out.
 */
int cw_stack_take_copy(pid_t pid, uid_t uid, struct cw_stack_copy **ret);

/* Returns NULL. Takers that still run keep what they share with the caller. */
struct cw_stack_copy *cw_stack_take_free(struct cw_stack_copy *copy);

/*
 * Forks takers until all threads are done; at most a few, if takers die or give up half way.
 * Blocks, for at most about 2 s by its own time limits.
 */
int cw_stack_take_all(struct cw_stack_copy *copy);

/*
 * The taker's work, in the process that calls it: starts at copy->next. Returns 0 when done, or
 * -ETIMEDOUT: a thread did not stop, and this process must end to release it. A thread gets
 * 250 ms to stop. The hold counts from the last moment at which the thread certainly ran. It
 * lasts for limit_ms, or the rest of budget_ns, at most: then the kernel kills this process, even
 * if it is stopped.
 */
int cw_stack_take(struct cw_stack_copy *copy, uint32_t limit_ms);
