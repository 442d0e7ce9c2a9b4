/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of the BPF programs to a machine that starts processes all the time: the CPU time of
 * starting, ending and reaping one, with and without the programs, turn about, so that other load
 * on the machine meets both. "With" has all programs: some note the ends of processes, and, once a
 * round, another visits the threads of a process; a daemon runs that one for ranks when it takes
 * their evidence. Then the programs' own time, as the kernel counts it. Needs root.
 *
 *	kernel-events-bench [--smoke]
 *
 * Ends with 1 when the programs did not run for the processes started here, or cost an absurd time;
 * 77 without BPF. --smoke: a few processes, to see that.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "daemon/kernel/kernel_events.h"
#include "daemon/kernel/kernel_threads.h"

#define ROUNDS 41
#define PROCESSES 250 /* a round: a quarter of a second's worth */
#define WATCHED 16    /* ranks of a node; none of them ends */
#define THREADS 128   /* of the process that is looked at: PyTorch's, with its data loader's */

#define ABSURD_US 1000 /* for one run of a program */

static int rounds = ROUNDS, processes = PROCESSES;

extern char **environ;

struct program_time {
	uint64_t ns, runs;
};

static void fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static void start_and_reap(void)
{
	static char name[] = "true";
	char *const argv[] = { name, NULL };
	pid_t pid;

	errno = posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ);
	if (errno || waitpid(pid, NULL, 0) != pid)
		fail("/bin/true");
}

static double used_us(int who)
{
	struct rusage u;

	if (getrusage(who, &u) < 0)
		fail("getrusage");
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* CPU time, ours and theirs: on a busy machine, wall time measures the neighbours. */
static double round_us(void)
{
	double start = used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN);

	for (int i = 0; i < processes; i++)
		start_and_reap();
	return (used_us(RUSAGE_SELF) + used_us(RUSAGE_CHILDREN) - start) / processes;
}

/* ---- the programs ---- */

struct programs {
	struct cw_kernel_events *events;
	struct cw_kernel_threads *threads;
};

static struct programs attach(void)
{
	struct programs p;
	struct cw_err err;

	if (cw_kernel_events_new(&p.events, &err) < 0 ||
	    cw_kernel_threads_new(&p.threads, &err) < 0) {
		fprintf(stderr, "no BPF here: %s\n", err.text);
		exit(77);
	}
	for (pid_t pid = 1; pid <= WATCHED; pid++)
		cw_kernel_events_watch(p.events, pid); /* other entries to search among */
	return p;
}

static void detach(struct programs p)
{
	(void)cw_kernel_events_free(p.events);   /* always NULL */
	(void)cw_kernel_threads_free(p.threads); /* always NULL */
}

/* ---- a process with threads ---- */

static pid_t rank = -1;

static void *sleep_for_ever(void *arg)
{
	for (;;)
		(void)pause();
	return NULL;
}

static void run_rank(int ready)
{
	pthread_t thread;
	char c = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0)
			_exit(1);
	(void)!write(ready, &c, 1);
	(void)sleep_for_ever(NULL);
}

static void end_rank(void)
{
	(void)kill(rank, SIGKILL);
	(void)waitpid(rank, NULL, 0);
}

static void start_rank(void)
{
	int ready[2];
	char c;

	if (pipe(ready) < 0)
		fail("pipe");
	rank = fork();
	if (rank == 0)
		run_rank(ready[1]);
	(void)close(ready[1]);
	if (rank < 0 || read(ready[0], &c, 1) != 1)
		fail("a process with threads");
	(void)close(ready[0]);
	(void)atexit(end_rank);
}

static void look_at_rank(const struct programs *p)
{
	static char text[CW_KERNEL_THREADS_MAX_BYTES];

	if (cw_kernel_threads_read(cw_kernel_threads_program(p->threads, rank), rank, text,
				   sizeof(text)) <= 0)
		fail("the threads of a process");
}

/* ---- rounds ---- */

static double round_with_us(void)
{
	struct programs p = attach();
	double start = used_us(RUSAGE_SELF), us;

	look_at_rank(&p);
	us = (used_us(RUSAGE_SELF) - start) / processes + round_us();
	detach(p);
	return us;
}

/* Loading disturbs, too, and is not what is measured: so it is done here as well. */
static double round_without_us(void)
{
	detach(attach());
	return round_us();
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

static uint32_t newest_program(void)
{
	uint32_t id = 0;

	while (bpf_prog_get_next_id(id, &id) == 0)
		;
	return id;
}

/* Of the programs that are newer than the one with this id: other daemons have their own. */
static struct program_time time_of(const char *name, uint32_t id)
{
	struct program_time t = { 0 };

	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
		    strcmp(info.name, name) == 0) {
			t.ns += info.run_time_ns;
			t.runs += info.run_cnt;
		}
		if (fd >= 0)
			close(fd);
	}
	return t;
}

static bool is_real(const char *name, uint64_t runs, uint64_t wanted, double each_us)
{
	bool ok = runs >= wanted && each_us > 0 && each_us < ABSURD_US;

	if (!ok)
		fprintf(stderr, "kernel-events-bench: %s ran %llu times of %llu, %.2f us each\n",
			name, (unsigned long long)runs, (unsigned long long)wanted, each_us);
	return ok;
}

/* In a round of its own: the counting costs, too. */
static bool print_program_times(void)
{
	static const char *const names[] = { "on_signal", "on_exit", "dump_thread" };
	/* Each process sends its parent a signal and ends. */
	const uint64_t wanted[] = { (uint64_t)processes, (uint64_t)processes, THREADS };
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	uint32_t before = newest_program();
	struct programs p = attach();
	double sum_us = 0;
	bool ok = true;

	if (stats < 0)
		fail("bpf_enable_stats");
	look_at_rank(&p);
	(void)round_us();
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct program_time t = time_of(names[i], before);
		double each_us = t.runs ? (double)t.ns / (double)t.runs / 1e3 : 0.0;

		/* Others' processes run the first two, too: one of each is ours. */
		sum_us += i < 2 ? each_us : each_us * THREADS / processes;
		printf("%-11s  %5.2f us each\n", names[i], each_us);
		ok = is_real(names[i], t.runs, wanted[i], each_us) && ok;
	}
	printf("all          %5.2f us a process: %.2f %% of a core at 1,000 a second with %d looks "
	       "at %d threads\n",
	       sum_us, sum_us / 10, 1000 / processes, THREADS);
	detach(p);
	close(stats);
	return ok;
}

int main(int argc, char **argv)
{
	static double without[ROUNDS], with[ROUNDS], ratio[ROUNDS];
	double base;

	if (argc == 2 && strcmp(argv[1], "--smoke") == 0) {
		rounds = 3;
		processes = 20;
	} else if (argc > 1) {
		fprintf(stderr, "usage: kernel-events-bench [--smoke]\n");
		return 2;
	}
	start_rank();
	(void)round_us(); /* the first fills caches */
	for (int i = 0; i < rounds; i++) {
		/* Each comes first as often as the other. */
		if (i % 2) {
			without[i] = round_without_us();
			with[i] = round_with_us();
		} else {
			with[i] = round_with_us();
			without[i] = round_without_us();
		}
		ratio[i] = with[i] / without[i];
	}
	base = median(without, (size_t)rounds);
	printf("without    %6.1f us of CPU a process\n", base);
	printf("with       %6.1f us of CPU a process\n", median(with, (size_t)rounds));
	printf("ratio      %6.4f, median of %d pairs of %d processes\n",
	       median(ratio, (size_t)rounds), rounds, processes);
	return print_program_times() ? 0 : 1;
}
