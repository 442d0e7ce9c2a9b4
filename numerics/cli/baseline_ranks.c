/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"
#include "record/record_process.h"

#define PIDS (4u << 20) /* every kernel's pid_max is at most this */
/*
 * Intervals between two scans for processes. A record that we find late has already overwritten its
 * oldest entries. So the interval is short while ranks may be starting.
 */
#define SCAN_EAGER_NS (10 * CW_NS_PER_MS)
#define SCAN_CALM_NS (250 * CW_NS_PER_MS)
#define EAGER_FOR_NS (10000 * CW_NS_PER_MS)
/* After this time we inspect all processes again, because the kernel reuses pids. */
#define FORGET_NS (5000 * CW_NS_PER_MS)
#define DEPTH_MAX 64

struct watched {
	struct cw_baseline_collector *collector;
	dev_t dev;
	ino_t ino;
	int64_t next_ns;
	int error;
};

struct baseline_ranks {
	pthread_t thread;
	bool stop;
	int error;
	char *dir, *complete; /* complete: NULL = ranks do not wait */
	unsigned char
		/* one bit per pid: the process is not part of the program, or we have read it */
		*foreign;
	int64_t next_scan_ns, eager_until_ns, forget_ns;
	struct watched watched[BASELINE_RANKS_MAX];
	uint32_t n;
};

static int64_t now(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

static bool is_foreign(const struct baseline_ranks *r, uint64_t pid)
{
	return pid >= PIDS || r->foreign[pid / 8] >> pid % 8 & 1;
}

static void set_foreign(struct baseline_ranks *r, uint64_t pid)
{
	r->foreign[pid / 8] |= (unsigned char)(1u << pid % 8);
}

/* ---- finding records ---- */

/* Returns the pid of the process's parent, or 0 if the process is gone. */
static uint64_t parent_of(uint64_t pid)
{
	char path[64], text[512], *at;
	_cleanup_(closep) int fd = -1;
	uint64_t parent = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* The text is "PID (any name at all) S PARENT …". */
	at = strrchr(text, ')');
	if (!at || strlen(at) < 4)
		return 0;
	at += 4;
	at[strspn(at, "0123456789")] = '\0';
	return cw_parse_u64(at, 0, PIDS, &parent) < 0 ? 0 : parent;
}

static bool is_descendant(uint64_t pid)
{
	uint64_t own = (uint64_t)getpid();

	for (int depth = 0; pid > 1 && depth < DEPTH_MAX; depth++) {
		pid = parent_of(pid);
		if (pid == own)
			return true;
	}
	return false;
}

/* Starts to watch a record that a process has open. Takes ownership of fd. */
static int on_record(pid_t pid, int fd, void *user)
{
	struct baseline_ranks *r = user;
	_cleanup_(closep) int own = fd;
	struct watched *w = &r->watched[r->n];
	struct cw_record *record;
	struct stat st;

	if (r->n == BASELINE_RANKS_MAX || fstat(own, &st) < 0)
		return 0;
	/* A forked process shares its parent's record. */
	for (uint32_t i = 0; i < r->n; i++)
		if (r->watched[i].dev == st.st_dev && r->watched[i].ino == st.st_ino)
			return 0;
	/* The record may not be complete yet. We try again at the next scan. */
	if (cw_record_open(steal_fd(&own), true, &record, NULL) < 0)
		return 0;
	*w = (struct watched){ .dev = st.st_dev, .ino = st.st_ino };
	if (cw_baseline_collector_new(record, r->dir, &w->collector) < 0) {
		r->error = -ENOMEM;
		return 0;
	}
	if (r->complete && !r->error)
		r->error = cw_baseline_collector_keep_all(w->collector, r->complete);
	r->n++;
	r->eager_until_ns = now() + EAGER_FOR_NS;
	return 0;
}

static void scan(struct baseline_ranks *r, int64_t at_ns)
{
	struct dirent *entry;
	DIR *dir;

	if (at_ns >= r->forget_ns) {
		memset(r->foreign, 0, PIDS / 8);
		r->forget_ns = at_ns + FORGET_NS;
	}
	r->next_scan_ns = at_ns + (at_ns < r->eager_until_ns ? SCAN_EAGER_NS : SCAN_CALM_NS);
	dir = opendir("/proc");
	while (dir && (entry = readdir(dir))) {
		uint64_t pid;

		if (cw_parse_u64(entry->d_name, 1, PIDS, &pid) < 0 || is_foreign(r, pid))
			continue;
		if (is_descendant(pid))
			/* This does nothing if the process has ended meanwhile. */
			(void)cw_record_process_each_of((pid_t)pid, on_record, r);
		else
			set_foreign(r, pid);
	}
	if (dir)
		(void)closedir(dir);
}

/* ---- reading ---- */

static void poll_one(struct watched *w, int64_t at_ns)
{
	if (w->error)
		return;
	w->error = cw_baseline_collector_poll(w->collector, at_ns);
	w->next_ns = now() + cw_baseline_collector_pause_ns(w->collector);
}

static void *watch(void *user)
{
	struct baseline_ranks *r = user;

	while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE)) {
		int64_t at_ns = now(), next_ns = r->next_scan_ns;
		struct timespec pause = { 0 };

		if (at_ns >= r->next_scan_ns)
			scan(r, at_ns);
		for (uint32_t i = 0; i < r->n; i++) {
			struct watched *w = &r->watched[i];

			if (now() >= w->next_ns)
				poll_one(w, now());
			if (!w->error && w->next_ns < next_ns)
				next_ns = w->next_ns;
		}
		if (r->next_scan_ns < next_ns)
			next_ns = r->next_scan_ns;
		at_ns = now();
		if (next_ns > at_ns)
			pause.tv_nsec =
				next_ns - at_ns < SCAN_CALM_NS ? next_ns - at_ns : SCAN_CALM_NS;
		(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

static void free_ranks(struct baseline_ranks *r)
{
	free(r->dir);
	free(r->complete);
	free(r->foreign);
	free(r);
}

int baseline_ranks_start(const char *dir, const char *complete, struct baseline_ranks **ret)
{
	struct baseline_ranks *r = calloc(1, sizeof(*r));
	sigset_t all, old;
	int error;

	if (!r)
		return -ENOMEM;
	r->dir = strdup(dir);
	r->complete = complete ? strdup(complete) : NULL;
	r->foreign = calloc(1, PIDS / 8);
	r->eager_until_ns = now() + EAGER_FOR_NS;
	error = r->dir && r->foreign && !complete == !r->complete ? 0 : ENOMEM;
	/* otherwise init adopts orphans, and we miss them */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	/*
	 * The main thread handles signals. So we block all signals here, and the new thread
	 * inherits this mask.
	 */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	if (!error)
		error = pthread_create(&r->thread, NULL, watch, r);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error) {
		free_ranks(r);
		return -error;
	}
	*ret = r;
	return 0;
}

int baseline_ranks_stop(struct baseline_ranks *r, struct baseline_rank_end **ret_ends,
			uint32_t *ret_n)
{
	struct baseline_rank_end *ends;
	int error;

	__atomic_store_n(&r->stop, true, __ATOMIC_RELEASE);
	(void)pthread_join(r->thread, NULL);
	scan(r, now());
	ends = calloc(r->n + 1, sizeof(*ends));
	*ret_n = 0;
	for (uint32_t i = 0; i < r->n; i++) {
		struct baseline_rank_end end = { .error = 0 };

		poll_one(&r->watched[i], now());
		end.error = cw_baseline_collector_free(r->watched[i].collector, &end.said);
		if (ends && (end.said.n_ops || end.error))
			ends[(*ret_n)++] = end;
	}
	error = ends ? r->error : -ENOMEM;
	free_ranks(r);
	*ret_ends = ends;
	return error;
}
