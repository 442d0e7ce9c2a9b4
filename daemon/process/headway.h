/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does a process get anywhere outside NCCL (docs/design/hang.md#headway)? It does when, over a
 * window of two seconds, its own threads or its descendants used CPU, moved bytes, or ran between
 * uninterruptible sleeps (storage). It does not when it only blocks, and the housekeeping that goes
 * on in every blocked process must not look like work:
 *
 *  - Threads known to run on their own clock are left out: those the agent names because they were
 *    started by NCCL or the driver (agent/record/helper_threads.h; NCCL's proxy polls the
 *    network on a whole core, under its maker's name), and some by their name (helper_threads in
 *    headway.c). Of whom nothing is known, counts, which errs towards patience.
 *  - A thread that has been inside of a waiting call of the driver since before the window is left
 *    out, too, the main thread as well: the driver polls (agent/cuda/driver_waits.h). So is one
 *    inside of an NCCL call: NCCL spins while it connects to its peers (record/inside.h).
 *  - Who waits for Python's interpreter lock asks for it 200 times a second: some 0.2 % of a core
 * for each thread, which is not work however many there are.
 *  - Less than 1 % of one core is not work. A watchdog polling every 100 ms takes about 0.1 %, a
 *    loop of sleep(10 ms) about 0.5 %; checkpoints, evaluation and compilers take 20 % and more.
 *  - Less than 64 KiB in a window is not I/O: log lines, tensorboard's flush, eventfd wake-ups.
 *  - Uninterruptible sleep counts while the thread runs now and then: many small answers of a slow
 *    server move few bytes. One that has not run for a window waits for an answer that does not
 * come.
 *
 * Calls of NCCL count as well, but they are in the record, not here (digest/digest.c joins
 * both).
 *
 * Facts only: a rank that waits inside an NCCL call of which its record does not tell may spin, and
 * "makes headway" here. The engine asks about headway only at the end of the wait chain.
 *
 * Cost: two small reads per second for a busy or fully idle process. Threads are listed only when
 * the process used CPU that is not the main thread's; descendants only when it was quiet itself,
 * and no more than CW_HEADWAY_MAX_FILES of their files.
 *
 * Once it has been quiet for ten seconds, its threads are looked at in every window up to the first
 * that somebody else may wake.
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

struct cw_headway_cpu { /* one thread or one descendant, as of the last scan */
	pid_t id;
	pid_t own_tid; /* of a thread, in its own pid namespace; 0 = could not be had */
	bool seen;     /* in the scan going on */
	uint64_t start_ticks;
	uint64_t cpu_ticks;
	uint64_t io_bytes;
	uint64_t runs; /* of a descendant's main thread, or of a thread */
	/* Of a thread, where there is an interpreter: it was seen asleep, and wanted that then. */
	bool has_slept, wants_interpreter;
};

struct cw_headway_table {
	struct cw_headway_cpu *v;
	size_t n, cap;
	bool is_valid; /* holds a complete scan from the start of the window */
};

struct cw_headway {
	int64_t headway_ns; /* last time; never before the first step */
	const char *by;     /* static: "cpu", "io", "child", "storage"; "" = not since the start */
	/*
	 * Last time that threads other than helpers had used more than a tick since the last one.
	 * Whose it was is found out once in a window: the answer may be that old.
	 */
	int64_t cpu_change_ns;
	bool is_d_state;    /* main thread, at the last step */
	bool is_child_busy; /* in the last window */
	bool is_frozen;     /* a cgroup of its is, at the end of a quiet window */
	unsigned host_wait; /* enum cw_host_wait: its first thread at the end of a quiet window */
	struct cw_lock_wait lock; /* that it waits for then */

	bool has_base, has_base_io, has_base_sched;
	int64_t base_ns;
	uint64_t base_ticks, base_child_ticks, base_io, base_own_io;
	struct cw_procsched base_sched;
	uint64_t quiet_ticks; /* as of cpu_change_ns, or a scan since that told whose they were */
	uint64_t busy_ticks;  /* of other threads than helpers, in those scans */
	uint64_t cut;         /* looks that ended at CW_HEADWAY_MAX_FILES */
	struct cw_headway_table threads, family;
	int64_t threads_ns;              /* when threads were scanned last */
	struct cw_headway_table runners; /* while it waits for a lock: who may end that */
};

/*
 * Files of descendants that one look opens: 256 of them, with their threads in the hundreds, would
 * hold the loop for half a second. First comes what every descendant does and whom its first thread
 * has started; whom its other threads have, as far as the rest goes.
 */
#define CW_HEADWAY_MAX_FILES 2048u

struct cw_headway_process {
	int proc_fd;
	pid_t pid;
	/* A rank of its own among the descendants: it and what hangs under it is left out. May be
	 * NULL. */
	bool (*is_rank)(pid_t pid, void *user);
	void *user;
	/* Threads that do no work of the rank's, by their number there; 0 = none. May be NULL. */
	const uint32_t *helpers;
	size_t n_helpers;
	/* Those inside of the driver or of an NCCL call, which poll: no work either, once it is so
	 * for all the window. */
	const struct cw_rec_wait *waits;
	size_t n_waits;
	pid_t own_pid; /* pid by which the process knows itself; 0 = pid */
	struct cw_host_interpreter interpreter;
	const struct cw_record *record; /* NULL = its agent writes no files. Borrowed */
};

void cw_headway_init(struct cw_headway *h);
void cw_headway_fini(struct cw_headway *h);

/*
 * Call about once a second with a fresh stat of the process. now_ns: of the awake clock, as all
 * times here. While nobody looked nothing stands still, and of work that was done meanwhile, when
 * is not known: it counts as of now.
 */
void cw_headway_step(struct cw_headway *h, const struct cw_headway_process *process,
		     const struct cw_procstat *st, int64_t now_ns);

/* Whether a thread of that name is known to run whatever the rank does. A name proves nothing: it
 * is what the program says. */
bool cw_headway_is_helper(const char *comm);
