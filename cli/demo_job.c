/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"

/* A loaded machine needs a while to start 64 interpreters. */
#define RUNNING_WITHIN_S 120
#define STEP_MS 100
/* The fault comes when the rhythm is known, not among the first calls. */
#define FAULT_STEP 30
/* What comes from outside comes after a while of work. */
#define BLOW_AFTER_S 3
/* A job manager ends each rank some time after the one before. */
#define CANCEL_EVERY_US 400000

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

static int max_int(int a, int b)
{
	return a > b ? a : b;
}

static void fault_happened(struct demo *demo)
{
	const struct demo_rank *rank = &demo->ranks[demo->opts.culprit];

	if (demo->fault_ns)
		return;
	demo->fault_ns = cw_clock_now_ns(&cw_clock_system);
	demo_say(demo, "fault: rank %d (%s, pid %d) %s", rank->rank, demo->nodes[rank->node].name,
		 (int)rank->proc.pid, demo->opts.scenario->happens);
	if (demo->opts.scenario->expected_class)
		demo_expect(demo, demo->opts.timeout_s, "no alert came");
	else
		demo_expect(demo, max_int(demo->opts.seconds, demo->opts.scenario->watch_s),
			    "nothing was to happen");
}

bool demo_job_ends(const struct demo *demo)
{
	return demo->opts.scenario->steps || demo->opts.scenario->is_cancelled;
}

/* Ends the next rank, as a job manager does. */
static void on_cancel(evutil_socket_t fd, short what, void *user)
{
	struct demo *demo = user;
	struct timeval tv = { .tv_usec = CANCEL_EVERY_US };

	if (demo->n_cancelled == 0)
		demo_say(demo, "ending the ranks, one by one");
	demo_proc_signal(&demo->ranks[demo->n_cancelled++].proc, SIGTERM);
	if (demo->n_cancelled < demo->opts.ranks && event_add(demo->blow, &tv) < 0)
		demo_end(demo, DEMO_FAILED);
}

static void stall_file(const struct demo *demo, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/network-stall", demo->dir);
}

/* The simulated network looks for that file. */
static void on_network_stall(evutil_socket_t fd, short what, void *user)
{
	_cleanup_(closep) int file = -1;
	struct demo *demo = user;
	char path[PATH_MAX];

	stall_file(demo, path);
	file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (file < 0) {
		(void)cw_err_set(&demo->err, errno, "%s: %s", path, strerror(errno));
		demo_end(demo, DEMO_FAILED);
		return;
	}
	fault_happened(demo);
}

static void plan_blow(struct demo *demo)
{
	struct timeval tv = { .tv_sec = BLOW_AFTER_S };

	demo->blow = evtimer_new(demo->base,
				 demo->opts.scenario->stalls_network ? on_network_stall : on_cancel,
				 demo);
	if (!demo->blow || event_add(demo->blow, &tv) < 0)
		demo_end(demo, DEMO_FAILED);
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
	if (demo->opts.scenario->fault || demo->opts.scenario->stalls_network)
		demo_expect(demo, RUNNING_WITHIN_S, "the fault did not happen");
	else
		demo_expect(demo, max_int(demo->opts.seconds, demo->opts.scenario->watch_s),
			    "nothing was to happen");
	if (demo->opts.scenario->is_cancelled || demo->opts.scenario->stalls_network)
		plan_blow(demo);
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

struct rank_strings {
	char env[10][PATH_MAX + 32];
	char steps[16], step_ms[16], fault_rank[16], fault_step[16];
};

static void fill_environment(const struct demo *demo, const struct demo_rank *rank,
			     const struct job_paths *paths, struct rank_strings *text,
			     const char **env)
{
	char(*to)[PATH_MAX + 32] = text->env;
	const size_t size = sizeof(*to);
	char path[PATH_MAX];

	snprintf(to[0], size, "RANK=%d", rank->rank);
	snprintf(to[1], size, "WORLD_SIZE=%d", demo->opts.ranks);
	snprintf(to[2], size, "LOCAL_RANK=%d", local_rank(demo, rank->rank));
	snprintf(to[3], size, "MASTER_ADDR=127.0.0.1");
	snprintf(to[4], size, "MASTER_PORT=%d", demo->master_port);
	snprintf(to[5], size, "COLLWATCH_JOB=" DEMO_JOB);
	snprintf(to[6], size, "COLLWATCH_SOCKET=%s/agent.sock", demo->nodes[rank->node].dir);
	snprintf(to[7], size, "LD_LIBRARY_PATH=%s", paths->sim);
	snprintf(to[8], size, "LD_PRELOAD=%s", paths->agent);
	for (int i = 0; i < 9; i++)
		env[i] = to[i];
	if (demo->opts.scenario->stalls_network && rank->rank == demo->opts.culprit) {
		stall_file(demo, path);
		snprintf(to[9], size, "SIM_NCCL_STALL_FILE=%s", path);
		env[9] = to[9];
	}
}

static void fill_arguments(const struct demo *demo, struct job_paths *paths,
			   struct rank_strings *text, char **argv)
{
	const struct demo_scenario *s = demo->opts.scenario;
	int n = 0;

	snprintf(text->steps, sizeof(text->steps), "%d", s->steps);
	snprintf(text->step_ms, sizeof(text->step_ms), "%d", STEP_MS);
	snprintf(text->fault_rank, sizeof(text->fault_rank), "%d", demo->opts.culprit);
	snprintf(text->fault_step, sizeof(text->fault_step), "%d", FAULT_STEP);
	if (paths->is_python) {
		argv[n++] = (char *)"python3";
		argv[n++] = (char *)"-u";
	}
	argv[n++] = paths->program;
	argv[n++] = (char *)"--steps";
	argv[n++] = text->steps; /* 0 = for ever */
	argv[n++] = (char *)"--log-every";
	argv[n++] = (char *)"5";
	/* Tensor-parallel pairs give the job communicators that overlap, as real ones have. */
	argv[n++] = (char *)"--tp";
	argv[n++] = (char *)(demo->opts.ranks >= 4 && demo->opts.ranks % 2 == 0 ? "2" : "1");
	argv[n++] = (char *)"--step-ms";
	argv[n++] = text->step_ms;
	for (int i = 0; i < 2 && s->options[i]; i++)
		argv[n++] = (char *)s->options[i];
	if (s->fault) {
		argv[n++] = (char *)"--fault";
		argv[n++] = (char *)s->fault;
		argv[n++] = (char *)"--fault-rank";
		argv[n++] = text->fault_rank;
		argv[n++] = (char *)"--fault-step";
		argv[n++] = text->fault_step;
	}
}

static int start_rank(struct demo *demo, struct demo_rank *rank, struct job_paths *paths,
		      struct cw_err *err)
{
	char name[32], log[PATH_MAX], cgroup[PATH_MAX];
	bool is_limited = demo->cgroup[0] && rank->rank == demo->opts.culprit;
	const char *env[11] = { NULL };
	char *argv[24] = { NULL };
	struct rank_strings text;

	fill_environment(demo, rank, paths, &text, env);
	fill_arguments(demo, paths, &text, argv);
	snprintf(name, sizeof(name), "rank %d", rank->rank);
	snprintf(log, sizeof(log), "%s/rank-%d.log", demo->dir, rank->rank);
	snprintf(cgroup, sizeof(cgroup), "%s/cgroup.procs", demo->cgroup);
	return demo_proc_start(&rank->proc, demo->base,
			       &(struct demo_proc_spec){
				       .name = name,
				       .argv = argv,
				       .env = env,
				       .log_path = log,
				       .cgroup_procs = is_limited ? cgroup : NULL,
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
	if (demo->opts.scenario->memory_mb)
		r = demo_cgroup_make(demo, demo->opts.scenario->memory_mb, err);
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

/* Whether a rank that has ended had to end, and like that. */
static bool had_to_end(const struct demo *demo, int rank)
{
	const struct demo_scenario *s = demo->opts.scenario;
	int status = demo->ranks[rank].proc.wait_status;

	if (s->is_cancelled)
		return rank < demo->n_cancelled && WIFSIGNALED(status) &&
		       WTERMSIG(status) == SIGTERM;
	return s->steps && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void demo_job_on_ended(struct demo *demo)
{
	const struct demo_scenario *s = demo->opts.scenario;
	char how[128];

	for (int i = 0; i < demo->opts.ranks; i++) {
		const struct demo_proc *proc = &demo->ranks[i].proc;
		bool is_fault = i == demo->opts.culprit && s->expected_class &&
				strcmp(s->expected_class, "process_dead") == 0 &&
				WIFSIGNALED(proc->wait_status);

		if (!proc->has_ended || had_to_end(demo, i))
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
