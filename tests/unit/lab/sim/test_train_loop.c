/* SPDX-License-Identifier: Apache-2.0 */
/* The example programs, as other tests and the demo use them. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lab/sim/sim_ranks.h"

#ifndef PYTHON_PRELOAD
#define PYTHON_PRELOAD ""
#endif

#define FAULT_RANK 2

struct run {
	char dir[64];
	bool is_python;
	bool uses_store; /* for the unique id, else a file */
	const char *tp;
	const char *steps;
	const char *fault;
	int err_fd; /* where standard error goes; -1: inherited */
};

static void add(char **argv, int *n, const char *a)
{
	argv[(*n)++] = (char *)a;
}

/* Becomes the program. */
static int exec_rank(struct sim_rank *self)
{
	const struct run *run = self->arg;
	char number[32], path[96], uid[96], fault_file[96];
	char *argv[32];
	int fd, n = 0;

	snprintf(number, sizeof(number), "%d", self->rank);
	setenv("RANK", number, 1);
	setenv("LOCAL_RANK", number, 1);
	snprintf(number, sizeof(number), "%d", self->n);
	setenv("WORLD_SIZE", number, 1);
	setenv("LD_LIBRARY_PATH", SIM_LIB_DIR, 1);
	if (run->is_python && *PYTHON_PRELOAD) {
		setenv("LD_PRELOAD", PYTHON_PRELOAD, 1);
		setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	}
	snprintf(path, sizeof(path), "%s/out.%d", run->dir, self->rank);
	snprintf(uid, sizeof(uid), "%s/uid", run->dir);
	snprintf(fault_file, sizeof(fault_file), "%s/fault", run->dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || dup2(fd, 1) < 0 || (run->err_fd >= 0 && dup2(run->err_fd, 2) < 0))
		return 1;
	if (run->is_python)
		add(argv, &n, PYTHON_EXE);
	add(argv, &n, run->is_python ? TRAIN_LOOP_PY : TRAIN_LOOP_EXE);
	if (run->uses_store) {
		/* A loopback address of the test's own, so that the port cannot be taken. */
		pid_t pid = getppid();

		snprintf(number, sizeof(number), "127.%d.%d.%d", (pid >> 16 & 63) + 64,
			 pid >> 8 & 255, pid & 255);
		setenv("MASTER_ADDR", number, 1);
	} else {
		add(argv, &n, "--uid-file");
		add(argv, &n, uid);
	}
	add(argv, &n, "--steps");
	add(argv, &n, run->steps);
	add(argv, &n, "--tp");
	add(argv, &n, run->tp);
	if (run->fault) {
		add(argv, &n, "--fault");
		add(argv, &n, run->fault);
		add(argv, &n, "--fault-rank=2");
		add(argv, &n, "--fault-step=3");
		add(argv, &n, "--fault-file");
		add(argv, &n, fault_file);
	}
	argv[n] = NULL;
	execv(argv[0], argv);
	return 1;
}

static void run_init(struct run *run)
{
	snprintf(run->dir, sizeof(run->dir), "/tmp/train-loop-XXXXXX");
	cr_assert(mkdtemp(run->dir));
}

static void run_fini(const struct run *run, int n)
{
	char path[96];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/out.%d", run->dir, i);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/uid", run->dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/fault", run->dir);
	unlink(path);
	rmdir(run->dir);
}

static void last_line(const struct run *run, int rank, char *ret_line, size_t size)
{
	char path[96], line[256];
	FILE *f;

	ret_line[0] = '\0';
	snprintf(path, sizeof(path), "%s/out.%d", run->dir, rank);
	f = fopen(path, "re");
	cr_assert(f);
	while (fgets(line, sizeof(line), f))
		snprintf(ret_line, size, "%s", line);
	fclose(f);
}

/* Runs all ranks to the end; the last line, which all must print. */
static void run_healthy(bool is_python, int n, const char *tp, char *ret_line, size_t size)
{
	struct run run = { .is_python = is_python,
			   .uses_store = is_python == (n == 8),
			   .tp = tp,
			   .steps = "50",
			   .err_fd = -1 };
	unsigned int all = (1u << n) - 1;
	struct sim_ranks ranks;
	char line[256];

	run_init(&run);
	cr_assert_eq(sim_ranks_start(&ranks, n, exec_rank, &run), 0);
	cr_expect_eq(sim_ranks_wait(&ranks, all, SIM_RANKS_DEADLINE_MS), all);
	for (int r = 0; r < n; r++)
		cr_expect_eq(sim_ranks_exit_status(&ranks, r), 0, "rank %d", r);
	sim_ranks_stop(&ranks);
	last_line(&run, 0, ret_line, size);
	for (int r = 1; r < n; r++) {
		last_line(&run, r, line, sizeof(line));
		cr_expect_str_eq(line, ret_line, "rank %d", r);
	}
	run_fini(&run, n);
}

struct shape {
	int n;
	char tp[4];
};

ParameterizedTestParameters(train_loop, agrees_on_all_ranks_and_in_both_languages)
{
	static struct shape shapes[] = { { 4, "1" }, { 4, "2" }, { 8, "2" }, { 8, "4" } };

	return cr_make_param_array(struct shape, shapes, sizeof(shapes) / sizeof(shapes[0]));
}

ParameterizedTest(struct shape *s, train_loop, agrees_on_all_ranks_and_in_both_languages)
{
	char in_c[256], in_python[256];

	run_healthy(false, s->n, s->tp, in_c, sizeof(in_c));
	run_healthy(true, s->n, s->tp, in_python, sizeof(in_python));
	cr_expect(strncmp(in_c, "done steps=50 checksum=", 23) == 0, "%d/%s: %s", s->n, s->tp,
		  in_c);
	cr_expect_str_eq(in_c, in_python, "%d ranks in groups of %s", s->n, s->tp);
}

struct fault_case {
	char fault[32];
	bool is_python;
};

/* Reads one line from the pipe; the ranks that do not fail write nothing. */
static void read_line(int fd, char *ret_line, size_t size)
{
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, SIM_RANKS_DEADLINE_MS) <= 0 || read(fd, ret_line + n, 1) != 1 ||
		    ret_line[n] == '\n')
			break;
		n++;
	}
	ret_line[n] = '\0';
}

static void check_fault_file(const struct run *run)
{
	struct timespec now;
	long long ns = 0;
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/fault", run->dir);
	f = fopen(path, "re");
	cr_assert(f, "no fault file");
	cr_expect_eq(fscanf(f, "%lld", &ns), 1);
	fclose(f);
	clock_gettime(CLOCK_MONOTONIC, &now);
	cr_expect(ns > 0 && ns <= now.tv_sec * 1000000000LL + now.tv_nsec);
}

ParameterizedTestParameters(train_loop, fails_as_told)
{
	static struct fault_case faults[] = {
		{ "block-in-data-loader", false },
		{ "block-in-data-loader", true },
		{ "wrong-count", false },
		{ "wrong-count", true },
		{ "kill-self", false },
		{ "kill-self", true },
	};

	return cr_make_param_array(struct fault_case, faults, sizeof(faults) / sizeof(faults[0]));
}

ParameterizedTest(struct fault_case *c, train_loop, fails_as_told)
{
	struct run run = { .is_python = c->is_python, .tp = "2", .steps = "0", .fault = c->fault };
	bool is_kill = strcmp(c->fault, "kill-self") == 0;
	unsigned int killed = is_kill ? 1u << FAULT_RANK : 0;
	struct sim_ranks ranks;
	char line[256], want[64];
	int fds[2];

	run_init(&run);
	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	run.err_fd = fds[1];
	cr_assert_eq(sim_ranks_start(&ranks, 4, exec_rank, &run), 0);
	close(fds[1]);
	read_line(fds[0], line, sizeof(line));
	snprintf(want, sizeof(want), "fault: rank %d step 3 %s", FAULT_RANK, c->fault);
	cr_expect_str_eq(line, want);
	check_fault_file(&run);
	cr_expect_eq(sim_ranks_wait(&ranks, killed, SIM_RANKS_DEADLINE_MS), killed);
	cr_expect_eq(sim_ranks_wait(&ranks, 0xfu & ~killed, SIM_RANKS_HANG_MS), 0, "%s %d",
		     c->fault, c->is_python);
	if (is_kill)
		cr_expect(WIFSIGNALED(ranks.statuses[FAULT_RANK]));
	/* A job manager ends the rest the usual way. */
	kill(ranks.pids[0], SIGTERM);
	cr_expect_eq(sim_ranks_wait(&ranks, 1, SIM_RANKS_DEADLINE_MS), 1);
	cr_expect(WIFSIGNALED(ranks.statuses[0]) && WTERMSIG(ranks.statuses[0]) == SIGTERM);
	sim_ranks_stop(&ranks);
	close(fds[0]);
	run_fini(&run, 4);
}
