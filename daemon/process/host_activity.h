/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a process shows host activity outside NCCL
 * (docs/design/patience.md#host-activity). It does if, over a window of two seconds, its own
 * threads or its descendants used CPU, moved bytes, or ran between uninterruptible sleeps
 * (storage). A process that only blocks shows none. Every blocked process does some housekeeping,
 * and that must not look like work:
 *
 *  - We leave out threads known to run on their own clock. The agent names the threads that NCCL or
 *    the driver started (agent/record/helper_threads.h): NCCL's proxy polls the network on a whole
 *    core, under its maker's name. We know others by name (helper_threads, host_activity.c). An
 *    unknown thread counts, so we err towards patience.
 *  - We leave out a thread that has been inside a waiting call of the driver since before the
 *    window, even the main thread: the driver polls (agent/cuda/driver_waits.h). The same holds for
 *    a thread inside an NCCL call: NCCL spins while it connects (record/inside.h).
 *  - A thread that waits for Python's interpreter lock asks for it 200 times a second. This takes
 *    some 0.2 % of a core per thread, and is not work, however many such threads there are.
 *  - Less than 1 % of one core is not work. A watchdog polling every 100 ms takes about 0.1 %, a
 *    loop of sleep(10 ms) about 0.5 %; checkpoints, evaluation and compilers take 20 % and more.
 *  - Less than 64 KiB in a window is not I/O: log lines, tensorboard's flush, eventfd wake-ups.
 *  - Uninterruptible sleep counts as activity while the thread runs now and then: many small
 *    answers of a slow server move few bytes. If it has not run for a window, its answer may never
 *    come.
 *
 * Calls of NCCL count as well, but they are in the record, not here (digest/digest.c joins both).
 *
 * We report facts only. If a rank waits inside an NCCL call that its record does not show, it may
 * spin, and then "shows host activity" here. The engine uses host activity only at the end of the
 * wait chain.
 *
 * Cost: two small reads per second for a busy or fully idle process. We list threads only if the
 * process used CPU beyond its main thread's. We read descendants only if the process itself was
 * quiet, and at most CW_HOST_ACTIVITY_MAX_FILES of their files.
 *
 * After ten quiet seconds we also inspect the threads in every window, until we find the first
 * thread that another process may wake.
 *
 * Loop thread only; no blocking.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/kernel/procstat.h"
#include "daemon/process/lock_wait.h"
#include "record/record_layout.h"
#include "record/record_reader.h"

struct cw_host_activity_cpu { /* one thread or one descendant, as of the last scan */
	pid_t id;
	pid_t own_tid; /* tid of a thread in its own pid namespace; 0 = unknown */
	bool seen;     /* found in the present scan */
	uint64_t start_ticks;
	uint64_t cpu_ticks;
	uint64_t io_bytes;
	uint64_t runs; /* runs of a thread, or of a descendant's main thread */
	/*
	 * For a thread of a process with an interpreter. has_slept: we have seen it asleep.
	 * wants_interpreter: it then waited for the interpreter.
	 */
	bool has_slept, wants_interpreter;
};

struct cw_host_activity_table {
	struct cw_host_activity_cpu *v;
	size_t n, cap;
	bool is_valid; /* holds a complete scan from the start of the window */
};

struct cw_host_activity {
	int64_t host_activity_ns; /* time of the last host activity; never before the first step */
	/* Static: "cpu", "io", "child", "storage"; "" = no activity since the start. */
	const char *by;
	/*
	 * The last time that we saw threads other than helpers use more than a tick. We find out
	 * once per window which threads used CPU time, so the value may be a window old.
	 */
	int64_t cpu_change_ns;
	bool is_d_state;    /* the main thread, at the last step */
	bool is_child_busy; /* true in the last window */
	bool is_frozen;     /* one of its cgroups is frozen; read at the end of a quiet window */
	unsigned host_wait; /* enum cw_host_wait of the first thread, after a quiet window */
	struct cw_lock_wait lock; /* lock that the first thread then waits for */

	bool has_base, has_base_io, has_base_sched;
	int64_t base_ns;
	uint64_t base_ticks, base_child_ticks, base_io, base_own_io;
	struct cw_procsched base_sched;
	/* CPU ticks at cpu_change_ns, or at a later scan that showed which threads used them. */
	uint64_t quiet_ticks;
	uint64_t busy_ticks; /* ticks of threads other than helpers, in those scans */
	uint64_t cut;        /* scans cut short at CW_HOST_ACTIVITY_MAX_FILES */
	struct cw_host_activity_table threads, family;
	int64_t threads_ns; /* last scan of the threads */
	/* Threads that may end the first thread's wait for a lock. */
	struct cw_host_activity_table runners;
};

/*
 * The limit of descendants' files per scan. 256 descendants with hundreds of threads each would
 * hold up the loop for half a second. We first read every descendant and the children of its first
 * thread. The children of its other threads follow, as far as the limit allows.
 */
#define CW_HOST_ACTIVITY_MAX_FILES 2048u

struct cw_host_activity_process {
	int proc_fd;
	pid_t pid;
	/*
	 * True for a descendant that is a rank itself. We leave out this rank and its descendants.
	 * May be NULL.
	 */
	bool (*is_rank)(pid_t pid, void *user);
	void *user;
	/*
	 * The tids of threads that do no work for the rank, in the process's own namespace; 0 =
	 * none. May be NULL.
	 */
	const uint32_t *helpers;
	size_t n_helpers;
	/*
	 * The threads inside the driver or inside an NCCL call. They poll, and polling is not work
	 * if it has lasted for the whole window.
	 */
	const struct cw_rec_wait *waits;
	size_t n_waits;
	pid_t own_pid; /* the process's pid in its own namespace; 0 = pid */
	struct cw_host_interpreter interpreter;
	const struct cw_record *record; /* NULL = its agent writes no files; borrowed */
};

void cw_host_activity_init(struct cw_host_activity *h);
void cw_host_activity_fini(struct cw_host_activity *h);

/*
 * Call it about once a second with a fresh stat of the process. now_ns is the awake clock, as for
 * all times here: while the daemon does not run, a process does not count as still. We cannot date
 * the work that it did meanwhile, so we count it as done now.
 */
void cw_host_activity_step(struct cw_host_activity *h,
			   const struct cw_host_activity_process *process,
			   const struct cw_procstat *st, int64_t now_ns);

/*
 * True if threads of this name run even while the rank does no work. The name proves nothing,
 * because the program chooses it.
 */
bool cw_host_activity_is_helper(const char *comm);
