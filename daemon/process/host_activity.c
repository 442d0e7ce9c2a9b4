/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/process/host_activity.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "daemon/kernel/cgroup.h"
#include "daemon/process/host_wait.h"
#include "model/facts.h"
#include "model/signature.h"

#define WINDOW_NS (2 * CW_NS_PER_S)
#define MIN_CPU_PERCENT 1
/*
 * CPU ticks that do not count. Helper threads, our own among them, use a tick (10 ms) in all now
 * and then.
 */
#define QUIET_TICKS 1
#define MIN_IO_BYTES (64u << 10)

/*
 * Maximum number of threads, and of descendants, in one scan. Ranks have up to a few hundred
 * threads and a few dozen loader workers.
 */
#define MAX_THREADS 512
#define MAX_FAMILY 256

/*
 * Beginnings of the names of helper threads. The kernel cuts names at 15 bytes, and many libraries
 * append numbers.
 */
static const struct {
	const char *prefix, *reason;
	/* True if the thread wakes the program's threads when the device has finished. */
	bool wakes;
} helper_threads[] = {
	{ "collwatch", "our own: beats every second" },
	{ "cuda-EvtHandlr", "CUDA driver: polls for device events", true },
	{ "cuda0", "CUDA driver: per-context workers", true },
	{ "NCCL ", "NCCL with NCCL_SET_THREAD_NAME=1: proxies, services, socket helpers" },
	{ "pt_nccl_", "PyTorch: NCCL watchdog, heartbeat monitor, GIL check" },
	{ "pt_watchdog", "PyTorch" },
	{ "pt_tcpstore", "PyTorch: serves the store to other ranks" },
	{ "jemalloc_bg_thd", "jemalloc: returns memory" },
};
#define N_HELPERS (sizeof(helper_threads) / sizeof(helper_threads[0]))

static size_t find_helper(const char *comm)
{
	size_t i = 0;

	while (i < N_HELPERS &&
	       strncmp(comm, helper_threads[i].prefix, strlen(helper_threads[i].prefix)) != 0)
		i++;
	return i;
}

bool cw_host_activity_is_helper(const char *comm)
{
	return find_helper(comm) < N_HELPERS;
}

void cw_host_activity_init(struct cw_host_activity *h)
{
	*h = (struct cw_host_activity){ .by = "" };
}

static void table_drop(struct cw_host_activity_table *t)
{
	free(t->v);
	*t = (struct cw_host_activity_table){ 0 };
}

void cw_host_activity_fini(struct cw_host_activity *h)
{
	table_drop(&h->threads);
	table_drop(&h->family);
	table_drop(&h->runners);
}

/*
 * True if the ticks are at least 1 % of a core over dt_ns. If dt_ns is shorter than a window, we
 * take 1 % of a whole window.
 */
static bool is_work(uint64_t ticks, int64_t dt_ns)
{
	int64_t window_ns = dt_ns > WINDOW_NS ? dt_ns : WINDOW_NS;
	uint64_t need_ns = (uint64_t)window_ns * MIN_CPU_PERCENT / 100;

	return ticks * (uint64_t)cw_procstat_tick_ns() >= need_ns;
}

/* ---- one scan ---- */

struct scan {
	uint64_t ticks, io_bytes; /* CPU ticks and bytes since the last scan */
	/* A descendant is in uninterruptible sleep, but runs now and then. */
	bool is_waiting;
};

static struct cw_host_activity_cpu *table_find(struct cw_host_activity_table *t, pid_t id,
					       uint64_t start)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->v[i].id == id && t->v[i].start_ticks == start)
			return &t->v[i];
	return NULL;
}

/* Adds an entry. Returns NULL if out of memory; the work of this thread then does not count. */
static struct cw_host_activity_cpu *table_add(struct cw_host_activity_table *t, pid_t id,
					      uint64_t start)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 32;
		struct cw_host_activity_cpu *v = realloc(t->v, cap * sizeof(*v));

		if (!v)
			return NULL;
		t->v = v;
		t->cap = cap;
	}
	t->v[t->n] = (struct cw_host_activity_cpu){ .id = id, .start_ticks = start };
	return &t->v[t->n++];
}

/*
 * Updates an entry with the current values, and computes its use since the last scan. If the last
 * scan was complete and lacked the entry, the entry is new, and all its CPU time counts. NULL = out
 * of memory.
 */
static struct cw_host_activity_cpu *table_update(struct cw_host_activity_table *t, pid_t id,
						 const struct cw_procstat *st, uint64_t io_bytes,
						 struct scan *ret_used)
{
	struct cw_host_activity_cpu *e = table_find(t, id, st->start_ticks);
	bool is_known = e != NULL;

	*ret_used = (struct scan){ 0 };
	if (!e)
		e = table_add(t, id, st->start_ticks);
	if (!e)
		return NULL;
	if ((is_known || t->is_valid) && st->cpu_ticks >= e->cpu_ticks)
		ret_used->ticks = st->cpu_ticks - e->cpu_ticks;
	if ((is_known || t->is_valid) && io_bytes >= e->io_bytes)
		ret_used->io_bytes = io_bytes - e->io_bytes;
	e->cpu_ticks = st->cpu_ticks;
	e->io_bytes = io_bytes;
	e->seen = true;
	return e;
}

static void table_end(struct cw_host_activity_table *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		if (!t->v[i].seen)
			continue;
		t->v[n] = t->v[i];
		t->v[n++].seen = false;
	}
	t->n = n;
	t->is_valid = true;
}

/* Returns the thread's tid in its own pid namespace. We read it only once per thread. */
static pid_t own_tid(const struct cw_host_activity_process *process, struct cw_host_activity_cpu *e)
{
	if (!process->own_pid || process->own_pid == process->pid)
		return e->id;
	if (!e->own_tid && cw_procstat_own_tid(process->proc_fd, e->id, &e->own_tid) < 0)
		e->own_tid = -1;
	return e->own_tid;
}

static bool is_waiting(const struct cw_host_activity *h,
		       const struct cw_host_activity_process *process, pid_t own_tid)
{
	for (size_t i = 0; i < process->n_waits; i++) {
		const struct cw_rec_wait *w = &process->waits[i];

		if (w->tid == (uint32_t)own_tid && w->since_ns &&
		    w->since_ns <= (uint64_t)h->base_ns)
			return true;
	}
	return false;
}

static pid_t own_first_tid(const struct cw_host_activity_process *process)
{
	return process->own_pid ? process->own_pid : process->pid;
}

/*
 * True if the first thread polls in a waiting call. It is never a helper, because the program
 * itself started it.
 */
static bool is_main_waiting(const struct cw_host_activity *h,
			    const struct cw_host_activity_process *process)
{
	return is_waiting(h, process, own_first_tid(process));
}

static bool is_named_helper(const struct cw_host_activity_process *process, pid_t tid)
{
	for (size_t i = 0; tid > 0 && i < process->n_helpers; i++)
		if (process->helpers[i] == (uint32_t)tid)
			return true;
	return false;
}

/*
 * True if the thread waits for the interpreter's lock. If the thread is just running, we return the
 * previous result: it may have woken up only to ask for the lock.
 */
static bool wants_interpreter(const struct cw_host_activity_process *process,
			      struct cw_host_activity_cpu *e)
{
	struct cw_host_futex futex;

	if (!process->interpreter.bytes || cw_host_wait_thread(process->proc_fd, e->id, &futex) < 0)
		return false;
	if (!futex.is_unsettled) {
		e->has_slept = true;
		e->wants_interpreter = cw_host_wait_is_interpreter(&process->interpreter, &futex);
	}
	return e->wants_interpreter;
}

/*
 * True if the CPU time of this thread is not work, however long it is. ticks: its CPU time in the
 * window.
 */
static bool is_idle_whatever_it_uses(const struct cw_host_activity *h,
				     const struct cw_host_activity_process *process,
				     struct cw_host_activity_cpu *e, uint64_t ticks)
{
	pid_t tid;

	if (!is_work(ticks, WINDOW_NS) && wants_interpreter(process, e))
		return true;
	if (e->id == process->pid)
		return is_main_waiting(h, process);
	if (!process->n_helpers && !process->n_waits)
		return false;
	tid = own_tid(process, e);
	return tid > 0 && (is_named_helper(process, tid) || is_waiting(h, process, tid));
}

static struct scan scan_threads(struct cw_host_activity *h,
				const struct cw_host_activity_process *process)
{
	pid_t tids[MAX_THREADS];
	struct scan scan = { 0 }, used;
	size_t n;

	if (cw_procstat_threads(process->proc_fd, tids, MAX_THREADS, &n) < 0)
		return scan;
	for (size_t i = 0; i < n; i++) {
		struct cw_host_activity_cpu *e;
		struct cw_procstat st;

		if (cw_procstat_read_thread(process->proc_fd, tids[i], &st) < 0 ||
		    (tids[i] != process->pid && cw_host_activity_is_helper(st.comm)))
			continue;
		e = table_update(&h->threads, tids[i], &st, 0, &used);
		if (e && used.ticks && is_idle_whatever_it_uses(h, process, e, used.ticks))
			continue;
		scan.ticks += used.ticks;
	}
	table_end(&h->threads);
	return scan;
}

/*
 * True if the descendant has run since the last scan. Also true if we cannot know: it is new, or
 * the kernel has no schedstat.
 */
static bool has_run(int proc_fd, struct cw_host_activity_cpu *e)
{
	struct cw_procsched sched;
	bool has_run;

	if (!e || cw_procstat_main_sched(proc_fd, &sched) < 0)
		return true;
	has_run = sched.runs != e->runs;
	e->runs = sched.runs;
	return has_run;
}

/* The descendants in the order of reading, and the number of files that we may still open. */
struct family {
	pid_t pids[MAX_FAMILY];
	size_t n, n_read, n_followed;
	unsigned files_left;
	struct scan scan;
};

static bool take_files(struct family *f, unsigned n)
{
	if (f->files_left < n)
		return false;
	f->files_left -= n;
	return true;
}

static void add_children_of(struct family *f, int proc_fd, pid_t tid)
{
	f->n += cw_procstat_children_of(proc_fd, tid, f->pids + f->n, MAX_FAMILY - f->n);
}

/* Reads one descendant, and appends the children of its first thread to the list. */
static void read_descendant(struct cw_host_activity *h, pid_t pid, struct family *f)
{
	_cleanup_(closep) int fd = cw_procstat_open(pid);
	struct cw_host_activity_cpu *e;
	uint64_t io_bytes = 0;
	struct cw_procstat st;
	struct scan used;

	if (fd < 0 || cw_procstat_read(fd, &st) < 0)
		return;
	if (cw_procstat_io_bytes(fd, &io_bytes) < 0) {
		/*
		 * We may not read the descendant's I/O counters, so only its CPU time and state
		 * count.
		 */
		e = table_find(&h->family, pid, st.start_ticks);
		io_bytes = e ? e->io_bytes : 0;
	}
	e = table_update(&h->family, pid, &st, io_bytes, &used);
	if (e) {
		f->scan.ticks += used.ticks;
		f->scan.io_bytes += used.io_bytes;
	}
	if (has_run(fd, e) && st.state == 'D')
		f->scan.is_waiting = true;
	add_children_of(f, fd, pid);
}
#define FILES_OF_DESCENDANT 6u

/*
 * Appends the children of a descendant's other threads. Returns false if the limit of files was
 * reached.
 */
static bool follow_threads(struct cw_host_activity *h, pid_t pid, struct family *f)
{
	_cleanup_(closep) int fd = take_files(f, 4) ? cw_procstat_open(pid) : -1;
	pid_t tids[MAX_THREADS];
	struct cw_procstat st;
	size_t n;

	if (fd < 0)
		/* true: the descendant has ended, and we did not reach the limit */
		return f->files_left >= 4;
	if (cw_procstat_read(fd, &st) < 0 || st.threads < 2 ||
	    !table_find(&h->family, pid, st.start_ticks) ||
	    cw_procstat_threads(fd, tids, MAX_THREADS, &n) < 0)
		return true;
	for (size_t i = 0; i < n; i++) {
		if (tids[i] == pid)
			continue;
		if (!take_files(f, 1))
			return false;
		add_children_of(f, fd, tids[i]);
	}
	return true;
}

static bool is_rank_of_its_own(const struct cw_host_activity_process *process, pid_t pid)
{
	return process->is_rank && process->is_rank(pid, process->user);
}

/*
 * Reads all descendants: children first, then their children. Returns false if the limit of files
 * was reached.
 */
static bool read_family(struct cw_host_activity *h, const struct cw_host_activity_process *process,
			struct family *f)
{
	while (f->n_followed < f->n) {
		pid_t pid = f->pids[f->n_read < f->n ? f->n_read : f->n_followed];

		if (f->n_read < f->n) {
			if (!take_files(f, FILES_OF_DESCENDANT))
				return false;
			f->n_read++;
			if (!is_rank_of_its_own(process, pid))
				read_descendant(h, pid, f);
		} else {
			f->n_followed++;
			if (!is_rank_of_its_own(process, pid) && !follow_threads(h, pid, f))
				return false;
		}
	}
	return true;
}

static struct scan scan_family(struct cw_host_activity *h,
			       const struct cw_host_activity_process *process)
{
	struct family f = { .files_left = CW_HOST_ACTIVITY_MAX_FILES };

	if (cw_procstat_children(process->proc_fd, f.pids, MAX_FAMILY, &f.n) < 0)
		return f.scan;
	h->cut += !read_family(h, process, &f);
	table_end(&h->family);
	return f.scan;
}

/* ---- the decision ---- */

static void mark(struct cw_host_activity *h, int64_t now_ns, const char *by)
{
	h->host_activity_ns = now_ns;
	h->by = by;
}

/* Files that one step needs more than once, and that it reads only once. */
struct step {
	const struct cw_host_activity_process *process;
	bool is_sched_read, has_sched;
	struct cw_procsched sched;
	bool is_io_read, has_io, has_own_io;
	uint64_t io, own_io_begun, own_io_done;
};

static bool read_sched(struct step *s)
{
	if (!s->is_sched_read)
		s->has_sched = cw_procstat_main_sched(s->process->proc_fd, &s->sched) == 0;
	s->is_sched_read = true;
	return s->has_sched;
}

/*
 * Reads the kernel's count between the agent's two counts. For a window that begins here, it
 * includes all I/O that the agent has done. For a window that ends here, the agent has begun all
 * its I/O that it includes.
 */
static bool read_io(struct step *s)
{
	const struct cw_record *record = s->process->record;
	uint64_t begun, done;

	if (s->is_io_read)
		return s->has_io;
	s->is_io_read = true;
	s->has_own_io = !record || cw_record_own_io(record, &begun, &s->own_io_done);
	s->has_io = cw_procstat_io_bytes(s->process->proc_fd, &s->io) == 0;
	if (record)
		s->has_own_io = cw_record_own_io(record, &s->own_io_begun, &done) && s->has_own_io;
	return s->has_io;
}

static bool main_thread_works(const struct cw_host_activity *h, struct step *s, int64_t dt_ns)
{
	if (!h->has_base_sched || !read_sched(s))
		return false;
	return is_work((s->sched.cpu_ns - h->base_sched.cpu_ns) / (uint64_t)cw_procstat_tick_ns(),
		       dt_ns);
}

/*
 * True if the main thread waits for storage and has run since the start of the window. Each answer
 * of the storage wakes it. If it has not run, it waits for one answer, which may never come.
 */
static bool main_thread_waits_and_runs(const struct cw_host_activity *h, struct step *s)
{
	if (!h->is_d_state)
		return false;
	return !h->has_base_sched || !read_sched(s) || s->sched.runs != h->base_sched.runs;
}

/*
 * Returns the bytes that the program has read and written since the start of the window. These are
 * the bytes of the process without those of its agent. The agent counts its bytes before it moves
 * them, so we never count them as the program's.
 */
static uint64_t io_of_program(const struct cw_host_activity *h, struct step *s)
{
	uint64_t bytes, own;

	if (!h->has_base_io || !read_io(s) || !s->has_own_io)
		return 0;
	bytes = s->io - h->base_io;
	own = s->own_io_begun - h->base_own_io;
	return own <= s->own_io_begun && own < bytes ? bytes - own : 0;
}

/* Returns the kind of activity that cheap reads show, at every step. NULL = none. */
static const char *quick_look(struct cw_host_activity *h, struct step *s,
			      const struct cw_procstat *st, int64_t dt_ns)
{
	if (main_thread_waits_and_runs(h, s))
		return "storage";
	if (is_work(st->cpu_ticks - h->base_ticks, dt_ns) && !is_main_waiting(h, s->process) &&
	    main_thread_works(h, s, dt_ns))
		return "cpu";
	if (io_of_program(h, s) >= MIN_IO_BYTES)
		return "io";
	if (is_work(st->child_cpu_ticks - h->base_child_ticks, dt_ns)) {
		h->is_child_busy = true;
		return "child";
	}
	return NULL;
}

static bool has_used_cpu(const struct cw_host_activity *h, const struct cw_procstat *st)
{
	return st->cpu_ticks > h->quiet_ticks + QUIET_TICKS;
}

/* Notes that threads other than helpers have used CPU time until now. */
static void note_cpu_change(struct cw_host_activity *h, const struct cw_procstat *st,
			    int64_t now_ns)
{
	h->cpu_change_ns = now_ns;
	h->quiet_ticks = st->cpu_ticks;
	h->busy_ticks = 0;
}

/*
 * Notes a scan that shows who used the CPU time: threads other than helpers used `ticks`, and
 * helpers used the rest. We add up these ticks over several scans.
 */
static void note_cpu_of_others(struct cw_host_activity *h, const struct cw_procstat *st,
			       uint64_t ticks, int64_t now_ns)
{
	h->quiet_ticks = st->cpu_ticks;
	h->busy_ticks += ticks;
	if (h->busy_ticks > QUIET_TICKS)
		note_cpu_change(h, st, now_ns);
}

/*
 * Returns the kind of activity that costly reads show. We need these reads after a window without
 * activity in the cheap reads. NULL = none.
 */
static const char *close_look(struct cw_host_activity *h,
			      const struct cw_host_activity_process *process,
			      const struct cw_procstat *st, int64_t now_ns)
{
	int64_t dt_ns = now_ns - h->base_ns;
	bool had_family = h->family.is_valid;
	const char *by = NULL;
	struct scan scan;

	if (has_used_cpu(h, st) || is_work(st->cpu_ticks - h->base_ticks, dt_ns)) {
		bool had_threads = h->threads.is_valid;
		/*
		 * A scan shows which threads used ticks since the previous scan. If that scan is
		 * older than the window, some of these ticks may be older, too.
		 */
		bool was_of_base = had_threads && h->threads_ns == h->base_ns;

		scan = scan_threads(h, process);
		h->threads_ns = now_ns;
		if (was_of_base && is_work(scan.ticks, dt_ns))
			by = "cpu";
		if (had_threads)
			note_cpu_of_others(h, st, scan.ticks, now_ns);
		else
			/* Without an earlier scan, we do not know which threads used the CPU. */
			note_cpu_change(h, st, now_ns);
	}
	scan = scan_family(h, process);
	h->is_child_busy =
		scan.is_waiting ||
		(had_family && (is_work(scan.ticks, dt_ns) || scan.io_bytes >= MIN_IO_BYTES));
	if (h->is_child_busy && !by)
		by = "child";
	return by;
}

/* ---- deadlock of threads ---- */

/* What we know about all threads except helpers. */
struct runners {
	uint64_t runs;     /* hash of how often each thread got a CPU */
	unsigned n;        /* number of threads that do not wait for the interpreter's lock */
	bool owner_sleeps; /* the owner of the lock that the first thread waits for is asleep */
	bool may_be_woken; /* another process or a timeout may wake one of these threads */
};

/*
 * True if another process or a timeout may wake tid. False if tid waits for a private futex word
 * without a timeout: only threads of its process can wake it.
 */
static bool may_be_woken(const struct cw_host_activity_process *process, pid_t tid)
{
	struct cw_host_futex futex;

	return cw_host_wait_thread(process->proc_fd, tid, &futex) < 0 || !futex.address ||
	       !futex.is_private || futex.has_timeout;
}

static void look_at_runner(struct cw_host_activity *h,
			   const struct cw_host_activity_process *process, pid_t id, int64_t now_ns,
			   struct runners *runners)
{
	struct cw_procsched sched;
	struct cw_host_activity_cpu *e;
	struct cw_procstat st;
	struct scan used;
	size_t helper;
	bool wants;
	pid_t tid;

	if (cw_procstat_read_thread(process->proc_fd, id, &st) < 0)
		return;
	e = table_update(&h->runners, id, &st, 0, &used);
	if (!e) {
		/* Out of memory: assume that the thread has run. */
		runners->runs += (uint64_t)now_ns;
		return;
	}
	tid = id == process->pid ? own_first_tid(process) : own_tid(process, e);
	wants = wants_interpreter(process, e);
	if (tid > 0 && tid == h->lock.owner)
		runners->owner_sleeps = wants || st.state == 'S' || st.state == 'D';
	helper = find_helper(st.comm);
	if (helper < N_HELPERS)
		runners->may_be_woken = runners->may_be_woken || helper_threads[helper].wakes;
	if (helper < N_HELPERS || is_named_helper(process, tid) || wants)
		return;
	/*
	 * We do not count a thread before we have seen it asleep, because its next wait may be for
	 * the interpreter's lock. Once it sleeps in another wait, it counts as a new thread.
	 */
	if (process->interpreter.bytes && !e->has_slept)
		return;
	runners->n++;
	if (cw_procstat_thread_sched(process->proc_fd, id, &sched) == 0)
		runners->runs = cw_hash_step(cw_hash_step(runners->runs, (uint64_t)id), sched.runs);
	else
		runners->runs += (uint64_t)now_ns; /* unknown: assume that the thread has run */
	runners->may_be_woken = runners->may_be_woken || may_be_woken(process, id);
}

/*
 * Inspects all threads. If we cannot read a thread, it has ended. The hash then changes, as it does
 * when a thread runs. If the first thread waits for no mutex, a single thread that another process
 * may wake decides, and we stop there. Most processes have such a thread, so this saves most of the
 * work.
 */
static struct runners look_at_runners(struct cw_host_activity *h,
				      const struct cw_host_activity_process *process,
				      int64_t now_ns)
{
	struct runners runners = { 0 };
	pid_t tids[MAX_THREADS];
	size_t n;

	if (cw_procstat_threads(process->proc_fd, tids, MAX_THREADS, &n) < 0 || n == MAX_THREADS)
		return (struct runners){ .runs = (uint64_t)now_ns, .may_be_woken = true };
	for (size_t i = 0; i < n && (h->lock.on.address || !runners.may_be_woken); i++)
		look_at_runner(h, process, tids[i], now_ns, &runners);
	table_end(&h->runners);
	return runners;
}

/*
 * Finds out whether the threads of a process wait for each other, and none has run for long. There
 * are three cases. Case 1: the first thread waits for a mutex, and its owner sleeps. Case 2: the
 * first thread waits for the interpreter's lock. Its owner must be one of the threads that do not
 * wait for it. Case 3: no other process, no descriptor and no timeout can wake any of the threads.
 */
static unsigned look_at_wait(struct cw_host_activity *h,
			     const struct cw_host_activity_process *process, int64_t now_ns)
{
	struct cw_host_lock lock;
	unsigned wait =
		cw_host_wait_look(process->proc_fd, &process->interpreter, h->host_wait, &lock);
	bool has_lock;
	struct runners runners;

	if (lock.is_late)
		return wait; /* what we know stays until the next reading */
	if (cw_host_wait_is_closed(wait))
		/* Start again: the checks below must find the deadlock anew. */
		wait = CW_HOST_WAIT_UNKNOWN;
	cw_lock_wait_note(&h->lock, lock, now_ns);
	has_lock = h->lock.on.address;
	if (!has_lock && now_ns - h->host_activity_ns < CW_LOCK_WAIT_ASK_NS) {
		table_drop(&h->runners);
		return wait;
	}
	runners = look_at_runners(h, process, now_ns);
	cw_lock_wait_note_runs(&h->lock,
			       runners.may_be_woken && !has_lock ? (uint64_t)now_ns : runners.runs,
			       now_ns);
	if (h->lock.on.is_interpreter)
		return runners.n && cw_lock_wait_is_still(&h->lock, now_ns) ? CW_HOST_WAIT_GIL
									    : wait;
	if (runners.owner_sleeps ? cw_lock_wait_stands(&h->lock, now_ns)
				 : !runners.may_be_woken && cw_lock_wait_is_still(&h->lock, now_ns))
		return CW_HOST_WAIT_LOCK;
	return wait;
}

static void start_window(struct cw_host_activity *h, struct step *s, const struct cw_procstat *st,
			 int64_t now_ns)
{
	h->has_base = true;
	h->base_ns = now_ns;
	h->base_ticks = st->cpu_ticks;
	h->base_child_ticks = st->child_cpu_ticks;
	/* If there is no schedstat, we have to scan all threads. */
	h->has_base_sched = read_sched(s);
	h->base_sched = s->sched;
	h->has_base_io = read_io(s);
	h->base_io = s->io;
	h->base_own_io = s->own_io_done;
}

void cw_host_activity_step(struct cw_host_activity *h,
			   const struct cw_host_activity_process *process,
			   const struct cw_procstat *st, int64_t now_ns)
{
	struct step step = { .process = process };
	int64_t dt_ns = now_ns - h->base_ns;
	const char *by;

	h->is_d_state = st->state == 'D';
	if (!h->has_base) {
		note_cpu_change(h, st, now_ns);
		/* The process has just registered or reconnected, so it was active. */
		h->host_activity_ns = now_ns;
		start_window(h, &step, st, now_ns);
		return;
	}
	by = quick_look(h, &step, st, dt_ns);
	if (by) {
		if (has_used_cpu(h, st))
			note_cpu_change(h, st, now_ns);
		/*
		 * Drop the scans of an earlier quiet window, because the next window must not start
		 * from them.
		 */
		table_drop(&h->threads);
		table_drop(&h->family);
		if (strcmp(by, "child") != 0)
			h->is_child_busy = false;
	} else if (dt_ns >= WINDOW_NS) {
		by = close_look(h, process, st, now_ns);
	} else {
		return;
	}
	if (by)
		cw_lock_wait_note(&h->lock, (struct cw_host_lock){ 0 }, now_ns);
	h->host_wait = by ? CW_HOST_WAIT_UNKNOWN : look_at_wait(h, process, now_ns);
	h->is_frozen = !by && cw_cgroup_is_frozen(process->proc_fd);
	if (by)
		mark(h, now_ns, by);
	start_window(h, &step, st, now_ns);
}
