/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a process shows host activity, which is activity outside of NCCL
 * (docs/design/patience.md#host-activity). We look at windows of two seconds. The process shows
 * host activity if in a window its own threads or its descendants used CPU or moved bytes. It also
 * does if they ran between uninterruptible sleeps (waits for storage). A process that only blocks
 * shows none. Every blocked process does some housekeeping, which must not look like work:
 *
 *  - We leave out threads that are known to run whether or not the rank works. The agent lists the
 *    threads that NCCL or the driver started (agent/record/helper_threads.h). NCCL's proxy, for
 *    example, polls the network on a whole core, under the name of the thread that made it. We know
 *    further threads by their own names (helper_threads in host_activity.c). An unknown thread
 *    counts, so we rather wait too long than alert too early.
 *  - We leave out a thread that has been in a waiting call of the driver since before the window,
 *    even the main thread. The driver polls in such a call (agent/cuda/driver_waits.h). We also
 *    leave out a thread that has been in an NCCL call for as long, because NCCL spins while it
 *    connects (record/inside.h).
 *  - A thread that waits for Python's interpreter lock asks for the lock 200 times a second. This
 *    takes some 0.2 % of a core per thread. It is not work, even if many such threads add up.
 *  - Less than 1 % of one core is not work. A watchdog that polls every 100 ms takes about 0.1 %,
 *    and a loop of sleep(10 ms) about 0.5 %. Checkpoints, evaluation and compilers take 20 % and
 *    more.
 *  - Less than 64 KiB in a window is not I/O. Log lines, tensorboard's flush and eventfd wake-ups
 *    stay below.
 *  - Uninterruptible sleep counts as activity as long as the thread runs now and then. A slow
 *    server may send many small answers, which move few bytes. If the thread has not run for a
 *    window, it waits for one answer, which may never come.
 *
 * Calls of NCCL count as progress, too, but the record has them (digest/digest.c joins both).
 *
 * We report facts only. A rank may spin inside an NCCL call that its record does not show. This
 * rank then shows host activity here. The engine uses host activity only at the end of the wait
 * chain.
 *
 * Cost: two small reads per second for a busy or fully idle process. We list the threads only if
 * the process used more CPU than its main thread. We read the descendants only if the process
 * itself was quiet, and at most CW_HOST_ACTIVITY_MAX_FILES of their files.
 *
 * After ten quiet seconds we also inspect the threads in every window, until we find a thread that
 * another process may wake.
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

struct cw_host_activity_cpu { /* one thread or one descendant, at the last scan */
	pid_t id;
	pid_t own_tid; /* tid of the thread in its own pid namespace; 0 = unknown */
	bool seen;     /* true if the scan in progress has found this thread or descendant */
	uint64_t start_ticks;
	uint64_t cpu_ticks;
	uint64_t io_bytes;
	uint64_t runs; /* how often the thread got a CPU; for a descendant, its main thread */
	/*
	 * Only for a thread of a process with an interpreter. has_slept: we have seen it asleep.
	 * wants_interpreter: the last time, it slept to wait for the interpreter's lock.
	 */
	bool has_slept, wants_interpreter;
};

struct cw_host_activity_table {
	struct cw_host_activity_cpu *v;
	size_t n, cap;
	bool is_valid; /* true if v is a complete scan from the start of the window */
};

struct cw_host_activity {
	/* Time of the last host activity; at the first step, the time of this step. */
	int64_t host_activity_ns;
	/*
	 * Kind of the last activity, a static text: "cpu", "io", "child", "storage"; "" = none yet.
	 */
	const char *by;
	/*
	 * When we last saw that threads other than helpers had used more than a tick of CPU time.
	 * (Helpers are the threads that we leave out.) Only one scan per window shows which threads
	 * used the CPU, so this may be a window old.
	 */
	int64_t cpu_change_ns;
	/* True if the main thread was in uninterruptible sleep at the last step. */
	bool is_d_state;
	bool is_child_busy; /* true if a descendant was active in the last window */
	/* True if a cgroup of the process is frozen; we read this after a quiet window. */
	bool is_frozen;
	unsigned host_wait; /* enum cw_host_wait of the first thread, read after a quiet window */
	struct cw_lock_wait lock; /* the lock that the first thread waits for, with host_wait */

	bool has_base, has_base_io, has_base_sched;
	int64_t base_ns;
	uint64_t base_ticks, base_child_ticks, base_io, base_own_io;
	struct cw_procsched base_sched;
	/*
	 * CPU ticks of the process at cpu_change_ns, or at a later scan that showed which threads
	 * used them.
	 */
	uint64_t quiet_ticks;
	/* Ticks that threads other than helpers used, according to those scans. */
	uint64_t busy_ticks;
	uint64_t cut; /* number of scans that stopped at CW_HOST_ACTIVITY_MAX_FILES */
	struct cw_host_activity_table threads, family;
	int64_t threads_ns; /* time of the last scan of the threads */
	/* The threads without helpers. One of them may end the first thread's wait for a lock. */
	struct cw_host_activity_table runners;
};

/*
 * Maximum number of files of descendants per scan. 256 descendants with hundreds of threads each
 * would hold up the loop for half a second. We first read every descendant, and the children of its
 * first thread. Then come the children of its other threads, up to the limit.
 */
#define CW_HOST_ACTIVITY_MAX_FILES 2048u

struct cw_host_activity_process {
	int proc_fd;
	pid_t pid;
	/*
	 * Returns true for a descendant that is a rank itself. We leave out such a rank and its
	 * descendants. NULL = no descendant is a rank.
	 */
	bool (*is_rank)(pid_t pid, void *user);
	void *user;
	/*
	 * Tids of threads that do no work for the rank, in the process's own pid namespace. An
	 * entry of 0 means no thread. NULL = there are none.
	 */
	const uint32_t *helpers;
	size_t n_helpers;
	/*
	 * Threads that are inside the driver or inside an NCCL call, and since when. A call that
	 * has lasted for the whole window only polls, which is not work.
	 */
	const struct cw_rec_wait *waits;
	size_t n_waits;
	pid_t own_pid; /* pid of the process in its own pid namespace; 0 = it is the same as pid */
	struct cw_host_interpreter interpreter;
	/* Record in which the agent counts its own I/O; borrowed; NULL = the agent does no I/O. */
	const struct cw_record *record;
};

void cw_host_activity_init(struct cw_host_activity *h);
void cw_host_activity_fini(struct cw_host_activity *h);

/*
 * Updates h. Call this about once a second, with a fresh stat of the process. now_ns and all times
 * of h are on the awake clock, which stops while the daemon does not run. We do not count a process
 * as quiet in that time. We cannot date the work that it did in that time, so we treat it as done
 * now.
 */
void cw_host_activity_step(struct cw_host_activity *h,
			   const struct cw_host_activity_process *process,
			   const struct cw_procstat *st, int64_t now_ns);

/*
 * True if threads with this name run even while the rank does no work. This is only a hint, because
 * a program chooses the names of its threads.
 */
bool cw_host_activity_is_helper(const char *comm);
