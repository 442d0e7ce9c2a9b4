/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes registers and stacks out of a live process without being able to hurt it: each thread is
 * held (PTRACE_SEIZE, PTRACE_INTERRUPT) only while its registers and at most 256 KiB of stack are
 * copied. Whoever kills the taker at any moment only makes the kernel let the thread go: a seized
 * thread is detached with its tracer's end, and one that was stopped before stays stopped.
 *
 * The taker is a process of its own (a tracer's duties end for sure only with the tracer) and
 * writes into memory it shares with its parent.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The main thread comes first; the rest of a rank's threads are mostly alike. */
#define CW_STACK_MAX_THREADS 64u
#define CW_STACK_MAX_BYTES (256u << 10)
/*
 * All threads of a process together are held no longer than this, by the clock: no capture slows a
 * rank down by more. Usual are 0.1 ms a thread.
 */
#define CW_STACK_HOLD_MS 100u
/* DWARF numbers: x86-64 has 17 (0-15, return address), aarch64 32 (x0-x30, sp). */
#define CW_STACK_MAX_REGS 32u

enum cw_stack_result {
	CW_STACK_PENDING = 0, /* not looked at, or the taker died over it */
	CW_STACK_TAKEN,
	CW_STACK_PEEKED,          /* not held: stack pointer and pc alone are known */
	CW_STACK_UNINTERRUPTIBLE, /* state D: left alone */
	CW_STACK_OURS,            /* a thread of the agent */
	CW_STACK_GONE,
	CW_STACK_TRACED,      /* somebody else holds it */
	CW_STACK_NOT_ALLOWED, /* no right to trace */
	CW_STACK_NOT_STOPPED, /* it did not stop in time */
	CW_STACK_OTHER_USER,  /* not to be seen by the user who registered it */
	CW_STACK_FAILED,
	CW_STACK_SPENT, /* the time for which a rank may be held was used up before */
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
	uid_t uid;   /* whose the process must be */
	int proc_fd; /* of /proc/PID */
	uint32_t n_threads, n_total;
	uint32_t next;     /* the thread to take next: past the one being taken */
	int64_t budget_ns; /* CW_STACK_HOLD_MS, less what dying takes */
	int64_t held_ns;   /* all threads together; what a taker that died held counts in full */
	struct cw_stack_thread threads[CW_STACK_MAX_THREADS];
	const struct cw_mapped_memory
		*memory; /* what may be copied, as of the beginning; NULL = nothing */
	uint8_t stacks[CW_STACK_MAX_THREADS][CW_STACK_MAX_BYTES];
};

/*
 * Maps a copy (shared, anonymous, pages on demand), lists the threads and learns which of the
 * process's memory may be read. 0 or -errno. Released with the process that called it.
 */
int cw_stack_take_copy(pid_t pid, uid_t uid, struct cw_stack_copy **ret);

/*
 * Forks takers until all threads are dealt with, at most a few when they die or give up half way.
 * Blocks, for the time limits inside at most about 2 s.
 */
int cw_stack_take_all(struct cw_stack_copy *copy);

/*
 * The taker's work, for the process it is to be done in: from copy->next on. Returns 0 when
 * through, or -ETIMEDOUT: a thread did not stop and this process must end to let it go. A thread
 * gets 250 ms to stop. From the last moment at which it certainly ran, it is held for limit_ms, or
 * what is left of budget_ns, at most: then the kernel kills this process, even a stopped one.
 */
int cw_stack_take(struct cw_stack_copy *copy, uint32_t limit_ms);
