/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/clock.h"
#include "common/parse.h"

/* A loaded machine needs a while to start 64 interpreters. */
#define RUNNING_WITHIN_S 120
#define STEP_MS 100
/* The fault comes when the rhythm is known, not among the first calls. */
#define FAULT_STEP 30

struct job_paths {
	char agent[PATH_MAX], sim[PATH_MAX], program[PATH_MAX];
	bool is_python;
};

static int find_parts(struct demo *demo, struct job_paths *paths, struct cw_err *err)
{
	char python[PATH_MAX];
	int r;

	paths->is_python = demo->opts.scenario->program != DEMO_C;
	if (paths->is_python && cw_paths_find_program("python3", python) < 0) {
		if (demo->opts.scenario->program == DEMO_PYTHON)
			return cw_err_set(err, ENOENT, "%s needs python3, which is not in PATH",
					  demo->opts.scenario->name);
		demo_say(demo, "there is no python3 here: the C program runs instead");
		paths->is_python = false;
	}
	r = cw_paths_find(CW_PART_AGENT, paths->agent, err);
	if (r == 0)
		r = cw_paths_find(CW_PART_SIM, paths->sim, err);
	if (r == 0)
		r = cw_paths_find(paths->is_python ? CW_PART_TRAIN_PY : CW_PART_TRAIN_C,
				  paths->program, err);
	return r;
}

static void fault_happened(struct demo *demo)
{
	const struct demo_rank *rank = &demo->ranks[demo->opts.culprit];

	if (demo->fault_ns)
		return;
	demo->fault_ns = cw_clock_now_ns(&cw_clock_system);
	demo_say(demo, "fault: rank %d (%s, pid %d) %s", rank->rank, demo->nodes[rank->node].name,
		 (int)rank->proc.pid, demo->opts.scenario->happens);
	demo_expect(demo, demo->opts.timeout_s, "no alert came");
}

/* Called for every step some rank tells of. */
static void step_told(struct demo *demo)
{
	long slowest = demo->ranks[0].step;

	for (int i = 1; i < demo->opts.ranks; i++)
		if (demo->ranks[i].step < slowest)
			slowest = demo->ranks[i].step;
	if (demo->job_is_running || slowest < 1)
		return;
	demo->job_is_running = true;
	demo->watching_ns = cw_clock_now_ns(&cw_clock_system);
	demo_say(demo, "%d ranks running, step %ld", demo->opts.ranks, slowest);
	if (demo->opts.scenario->fault)
		demo_expect(demo, RUNNING_WITHIN_S, "the fault did not happen");
	else
		demo_expect(demo, demo->opts.seconds, "nothing happened");
}

static void on_line(struct demo_proc *proc, const char *line, void *user)
{
	struct demo_rank *rank = user;
	long step;

	if (sscanf(line, "rank %*d step %ld", &step) == 1 && step > rank->step) {
		rank->step = step;
		step_told(rank->demo);
	} else if (strncmp(line, "fault: ", 7) == 0 && rank->rank == rank->demo->opts.culprit) {
		fault_happened(rank->demo);
	}
}

static int local_rank(const struct demo *demo, int rank)
{
	int local = 0;

	while (rank > 0 && demo->ranks[rank - 1].node == demo->ranks[rank].node) {
		rank--;
		local++;
	}
	return local;
}

static int start_rank(struct demo *demo, struct demo_rank *rank, struct job_paths *paths,
		      struct cw_err *err)
{
	const char *fault = demo->opts.scenario->fault;
	char env[9][PATH_MAX + 32], name[32], log[PATH_MAX], step_ms[16], fault_rank[16],
		fault_step[16];
	const char *env_list[10] = { NULL };
	char *argv[24] = { NULL };
	int n = 0;

	snprintf(env[0], sizeof(env[0]), "RANK=%d", rank->rank);
	snprintf(env[1], sizeof(env[1]), "WORLD_SIZE=%d", demo->opts.ranks);
	snprintf(env[2], sizeof(env[2]), "LOCAL_RANK=%d", local_rank(demo, rank->rank));
	snprintf(env[3], sizeof(env[3]), "MASTER_ADDR=127.0.0.1");
	snprintf(env[4], sizeof(env[4]), "MASTER_PORT=%d", demo->master_port);
	snprintf(env[5], sizeof(env[5]), "COLLWATCH_JOB=" DEMO_JOB);
	snprintf(env[6], sizeof(env[6]), "COLLWATCH_SOCKET=%s/agent.sock",
		 demo->nodes[rank->node].dir);
	snprintf(env[7], sizeof(env[7]), "LD_LIBRARY_PATH=%s", paths->sim);
	snprintf(env[8], sizeof(env[8]), "LD_PRELOAD=%s", paths->agent);
	for (int i = 0; i < 9; i++)
		env_list[i] = env[i];
	snprintf(name, sizeof(name), "rank %d", rank->rank);
	snprintf(log, sizeof(log), "%s/rank-%d.log", demo->dir, rank->rank);
	snprintf(step_ms, sizeof(step_ms), "%d", STEP_MS);
	snprintf(fault_rank, sizeof(fault_rank), "%d", demo->opts.culprit);
	snprintf(fault_step, sizeof(fault_step), "%d", FAULT_STEP);
	if (paths->is_python) {
		argv[n++] = (char *)"python3";
		argv[n++] = (char *)"-u";
	}
	argv[n++] = paths->program;
	argv[n++] = (char *)"--steps";
	argv[n++] = (char *)"0"; /* for ever */
	argv[n++] = (char *)"--log-every";
	argv[n++] = (char *)"5";
	/* Tensor-parallel pairs give the job communicators that overlap, as real ones have. */
	argv[n++] = (char *)"--tp";
	argv[n++] = (char *)(demo->opts.ranks >= 4 && demo->opts.ranks % 2 == 0 ? "2" : "1");
	argv[n++] = (char *)"--step-ms";
	argv[n++] = step_ms;
	if (demo->opts.scenario->option)
		argv[n++] = (char *)demo->opts.scenario->option;
	if (fault) {
		argv[n++] = (char *)"--fault";
		argv[n++] = (char *)fault;
		argv[n++] = (char *)"--fault-rank";
		argv[n++] = fault_rank;
		argv[n++] = (char *)"--fault-step";
		argv[n++] = fault_step;
	}
	return demo_proc_start(&rank->proc, demo->base,
			       &(struct demo_proc_spec){
				       .name = name,
				       .argv = argv,
				       .env = env_list,
				       .log_path = log,
				       .on_line = on_line,
				       .user = rank,
			       },
			       err);
}

int demo_job_start(struct demo *demo, struct cw_err *err)
{
	struct job_paths paths;
	int r;

	r = find_parts(demo, &paths, err);
	if (r < 0)
		return r;
	r = demo_free_port(&demo->master_port, &demo->master_port_fd);
	if (r < 0)
		return cw_err_set(err, -r, "no free port: %s", strerror(-r));
	for (int i = 0; r == 0 && i < demo->opts.ranks; i++) {
		struct demo_rank *rank = &demo->ranks[i];

		rank->demo = demo;
		rank->rank = i;
		/* blocks, as launchers place them */
		rank->node = (int)((long)i * demo->opts.nodes / demo->opts.ranks);
		r = start_rank(demo, rank, &paths, err);
	}
	if (r == 0)
		demo_expect(demo, RUNNING_WITHIN_S, "the ranks did not get going");
	return r;
}

void demo_job_on_ended(struct demo *demo)
{
	char how[128];

	for (int i = 0; i < demo->opts.ranks; i++) {
		const struct demo_proc *proc = &demo->ranks[i].proc;
		bool is_fault = i == demo->opts.culprit && demo->opts.scenario->expected_class &&
				strcmp(demo->opts.scenario->expected_class, "process_dead") == 0 &&
				WIFSIGNALED(proc->wait_status);

		if (!proc->has_ended)
			continue;
		if (is_fault) {
			fault_happened(demo);
			continue;
		}
		(void)cw_err_set(&demo->err, ECHILD, "rank %d %s", i,
				 demo_proc_describe_end(proc, how, sizeof(how)));
		demo_end(demo, DEMO_FAILED);
		return;
	}
}
