/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/baseline_making.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/run_agent.h"
#include "cli/run/run_child.h"
#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"
#include "numerics/cli/baseline_dir.h"
#include "numerics/cli/baseline_ranks.h"
#include "numerics/read/tensor_baseline.h"
#include "numerics/read/tensor_lines.h"

int baseline_making_dir(const char *dir, struct cw_err *err)
{
	if (mkdir(dir, 0777) < 0 && errno != EEXIST)
		return cw_err_set(err, errno, "%s: %s", dir, strerror(errno));
	if (baseline_dir_has(dir))
		return cw_err_set(err, EEXIST, "%s: the directory already has baselines", dir);
	return 0;
}

static void set_unless_set(const char *name, const char *value)
{
	(void)setenv(name, value, 0);
}

static void say_lost(const struct cw_baseline_collected *said, bool is_complete)
{
	const uint64_t *n = said->counters;

	fprintf(stderr, "collwatch: rank %d: ops %llu, tensors %llu", said->rank,
		(unsigned long long)said->n_ops, (unsigned long long)n[CW_BASELINE_N_TENSORS]);
	if (n[CW_BASELINE_N_LOST_OPS] || n[CW_BASELINE_N_LOST_TENSORS])
		fprintf(stderr, "; lost ops %llu, lost tensors at most %llu",
			(unsigned long long)n[CW_BASELINE_N_LOST_OPS],
			(unsigned long long)n[CW_BASELINE_N_LOST_TENSORS]);
	if (n[CW_BASELINE_N_NOT_COLLECTED])
		fprintf(stderr, "; tensors over the limit or not readable %llu",
			(unsigned long long)n[CW_BASELINE_N_NOT_COLLECTED]);
	if (n[CW_BASELINE_N_PARTIAL])
		fprintf(stderr, "; tensors examined in part %llu",
			(unsigned long long)n[CW_BASELINE_N_PARTIAL]);
	if (n[CW_BASELINE_N_UNSEEN])
		fprintf(stderr, "; launches of graphs and calls without a number %llu",
			(unsigned long long)n[CW_BASELINE_N_UNSEEN]);
	fputc('\n', stderr);
	if (is_complete && !said->waited)
		fprintf(stderr,
			"collwatch: rank %d did not wait for its reader, so tensors may be lost: "
			"its agent does not see this $TMPDIR (a container, for example)\n",
			said->rank);
}

static int say_end(const struct baseline_rank_end *end, bool is_complete)
{
	if (end->error == -EEXIST)
		fprintf(stderr,
			"collwatch: process %u is a second process of rank %d: it is not in the "
			"baseline\n",
			end->said.pid, end->said.rank);
	else if (end->error == -ENODATA)
		fprintf(stderr, "collwatch: process %u has no rank: it is not in the baseline\n",
			end->said.pid);
	else if (end->error < 0)
		fprintf(stderr, "collwatch: rank %d: %s\n", end->said.rank, strerror(-end->error));
	else
		say_lost(&end->said, is_complete && end->said.has_summaries);
	return end->error;
}

/*
 * Warns the user about missing ranks. A comparison with a complete run would otherwise find them
 * too late.
 */
static void say_missing(const struct baseline_rank_end *ends, uint32_t n, bool is_program,
			bool is_complete)
{
	uint32_t nranks = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (ends[i].error < 0 || ends[i].said.has_several)
			return; /* an error explains it, or the processes are not ranks */
		if (ends[i].said.nranks > nranks)
			nranks = ends[i].said.nranks;
	}
	if (n >= nranks)
		return;
	fprintf(stderr, "collwatch: ranks read: %u of %u%s%s\n", n, nranks,
		is_program ? "; the others are recorded on their nodes, or made no call" : "",
		is_program && !is_complete ? ", or ended before they were found (with --complete "
					     "they wait for that)"
					   : "");
}

/*
 * Prints a message per rank with a problem, and returns the exit status. A disk error is worse than
 * a run without sampled tensors.
 */
static int say_ends(const struct baseline_rank_end *ends, uint32_t n, bool is_complete,
		    bool is_program, uint64_t n_operators)
{
	uint64_t tensors = n_operators;
	int status = BASELINE_EXIT_EQUAL;

	for (uint32_t i = 0; i < n; i++) {
		if (say_end(&ends[i], is_complete) < 0)
			status = BASELINE_EXIT_USAGE;
		tensors += ends[i].said.counters[CW_BASELINE_N_TENSORS];
	}
	if (!n_operators)
		say_missing(ends, n, is_program, is_complete);
	if (status == BASELINE_EXIT_EQUAL && !tensors) {
		fprintf(stderr, n ? "collwatch: no tensor was examined\n"
				  : "collwatch: no rank with NCCL calls was seen\n");
		status = BASELINE_EXIT_INCOMPARABLE;
	}
	return status;
}

/* Makes a baseline of a rank's operators, from a file of collwatch.torch. */
static int read_lines(const char *path, const char *dir, uint64_t *n_operators)
{
	struct cw_tensor_baseline_said said;
	struct cw_err err = { "" };
	int r = cw_tensor_baseline_make(path, dir, &said, &err);

	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return r;
	}
	fprintf(stderr, "collwatch: rank %d: calls of operators %llu", said.rank,
		(unsigned long long)said.n_calls);
	if (said.n_lost)
		fprintf(stderr, "; lost calls %llu", (unsigned long long)said.n_lost);
	if (said.n_unread)
		fprintf(stderr, "; tensors that were not readable %llu",
			(unsigned long long)said.n_unread);
	fputc('\n', stderr);
	*n_operators += said.n_calls;
	return 0;
}

static int is_of_lines(const struct dirent *entry)
{
	return fnmatch("collwatch-tensors-rank*.jsonl", entry->d_name, 0) == 0;
}

/*
 * Makes baselines of the files that the program's ranks left in the directory. Baselines are faster
 * to read.
 */
static int read_left(const char *dir, uint64_t *n_operators)
{
	struct dirent **found = NULL;
	int n = scandir(dir, &found, is_of_lines, alphasort), r = 0;
	char path[PATH_MAX];

	for (int i = 0; i < n; i++) {
		if (r == 0 && snprintf(path, sizeof(path), "%s/%s", dir, found[i]->d_name) <
				      (int)sizeof(path)) {
			r = read_lines(path, dir, n_operators);
			if (r == 0)
				(void)unlink(path);
		}
		free(found[i]);
	}
	free(found);
	if (n < 0) {
		r = -errno;
		fprintf(stderr, "collwatch: %s: %m\n", dir);
	}
	return r;
}

/*
 * Runs the program and records its baseline. complete: the directory in which we tell ranks how far
 * we have read, or NULL. Returns the exit status. *ret_program is 0 if the program succeeded.
 */
static int run_program(const struct baseline_making *m, const char *dir, const char *complete,
		       int *ret_program)
{
	struct run_child child = { .command = m->program };
	_cleanup_(freep) struct baseline_rank_end *ends = NULL;
	struct baseline_ranks *ranks;
	char agent[PATH_MAX], lines[PATH_MAX];
	struct cw_err err = { "" };
	uint64_t n_operators = 0;
	uint32_t n = 0;
	int wait_status, status, r;

	/* The program may change its working directory, so we pass an absolute path. */
	if (!realpath(dir, lines)) {
		fprintf(stderr, "collwatch: %s: %m\n", dir);
		return BASELINE_EXIT_USAGE;
	}
	(void)setenv("COLLWATCH_TENSORS", lines, 1);
	(void)setenv("COLLWATCH_SUMMARY", m->summary ? m->summary : "full", 1);
	if (complete)
		(void)setenv("COLLWATCH_COMPLETE", complete, 1);
	else
		(void)unsetenv("COLLWATCH_COMPLETE");
	set_unless_set("COLLWATCH_CALL_STACKS", "on");
	r = cw_run_agent_load(m->agent, m->program[0], agent, &err);
	if (r == 0)
		r = baseline_ranks_start(dir, complete, &ranks);
	if (r < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text[0] ? err.text : strerror(-r));
		return BASELINE_EXIT_USAGE;
	}
	wait_status = cw_run_child(&child);
	r = baseline_ranks_stop(ranks, &ends, &n);
	if (wait_status < 0 || r < 0) {
		fprintf(stderr, "collwatch: %s\n", strerror(-(wait_status < 0 ? wait_status : r)));
		return BASELINE_EXIT_USAGE;
	}
	*ret_program = wait_status;
	if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status))
		fprintf(stderr, "collwatch: the program ended with exit status %d\n",
			WEXITSTATUS(wait_status));
	else if (WIFSIGNALED(wait_status))
		fprintf(stderr, "collwatch: the program was killed by signal %d\n",
			WTERMSIG(wait_status));
	r = read_left(dir, &n_operators);
	status = say_ends(ends, n, complete, true, n_operators);
	return r < 0 ? BASELINE_EXIT_USAGE : status;
}

static int run_complete(const struct baseline_making *m, const char *dir, int *ret_program)
{
	const char *tmp = getenv("TMPDIR");
	char complete[PATH_MAX];
	int status;

	(void)snprintf(complete, sizeof(complete), "%s/collwatch-complete-XXXXXX",
		       tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(complete)) {
		fprintf(stderr, "collwatch: %s: %m\n", complete);
		return BASELINE_EXIT_USAGE;
	}
	status = run_program(m, dir, complete, ret_program);
	baseline_dir_remove(complete);
	return status;
}

static int read_records(const struct baseline_making *m, const char *dir)
{
	_cleanup_(freep) struct baseline_rank_end *ends =
		cw_or_exit(calloc(m->n_paths, sizeof(*ends)));
	uint64_t n_operators = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_paths; i++) {
		struct cw_err err = { "" };

		if (cw_tensor_lines_is(m->paths[i])) {
			if (read_lines(m->paths[i], dir, &n_operators) < 0)
				return BASELINE_EXIT_USAGE;
			continue;
		}
		if (cw_baseline_collect_file(m->paths[i], dir, &ends[n++].said, &err) < 0) {
			fprintf(stderr, "collwatch: %s: %s\n", m->paths[i], err.text);
			return BASELINE_EXIT_USAGE;
		}
	}
	return say_ends(ends, n, false, false, n_operators);
}

int baseline_making_run(const struct baseline_making *m, const char *dir, int *ret_program)
{
	*ret_program = 0;
	if (!m->program)
		return read_records(m, dir);
	return m->complete ? run_complete(m, dir, ret_program)
			   : run_program(m, dir, NULL, ret_program);
}
