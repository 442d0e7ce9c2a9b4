/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the ranks as a launcher would. Each process prints its current step on standard output. We
 * pass the fault to the program as options. The fault has happened when the culprit prints it or
 * dies of it. From that moment on we measure the time to the alert.
 */
#include "lab/demo/demo.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"

/*
 * All ranks must run within this many seconds. A loaded machine takes long to start 64
 * interpreters.
 */
#define RUNNING_WITHIN_S 120
#define STEP_MS 100
/* The step of the fault. Many regular steps precede it. */
#define FAULT_STEP 30

struct job_paths {
	char agent[PATH_MAX], sim[PATH_MAX], program[PATH_MAX];
	bool is_python;
};

static int find_parts(struct demo *demo, struct job_paths *paths, struct cw_err *err)
{
	char python[PATH_MAX];
	enum demo_program program = demo->opts.scenario->program;
	int r;

	paths->is_python = program == DEMO_EITHER || program == DEMO_PYTHON;
	if (paths->is_python && cw_paths_find_program("python3", python) < 0) {
		if (program == DEMO_PYTHON)
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

void demo_job_fault_happened(struct demo *demo)
{
	const struct demo_rank *rank = &demo->ranks[demo->opts.run.culprit];

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
	demo_event_on_fault(demo);
}

bool demo_job_ends(const struct demo *demo)
{
	return demo->opts.scenario->steps || demo->opts.scenario->event == DEMO_EVENT_CANCEL;
}

/* Called for every step that a rank prints. */
static void on_step(struct demo *demo)
{
	long slowest = demo->ranks[0].step;

	for (int i = 1; i < demo->opts.run.ranks; i++)
		if (demo->ranks[i].step < slowest)
			slowest = demo->ranks[i].step;
	if (demo->job_is_running || slowest < 1)
		return;
	demo->job_is_running = true;
	demo->watching_ns = cw_clock_now_ns(&cw_clock_system);
	demo_say(demo, "%d ranks running, step %ld", demo->opts.run.ranks, slowest);
	if (demo->opts.scenario->fault || demo->opts.scenario->expected_class)
		demo_expect(demo, RUNNING_WITHIN_S, "the fault did not happen");
	else
		demo_expect(demo, max_int(demo->opts.seconds, demo->opts.scenario->watch_s),
			    "nothing was to happen");
	demo_event_on_running(demo);
}

static void on_line(struct demo_proc *proc, const char *line, void *user)
{
	struct demo_rank *rank = user;
	long step;

	if (sscanf(line, "rank %*d step %ld", &step) == 1 && step > rank->step) {
		rank->step = step;
		on_step(rank->demo);
	} else if (strncmp(line, "fault: ", 7) == 0 && rank->rank == rank->demo->opts.run.culprit) {
		/*
		 * In this scenario the rank fills its memory, and the kernel kills it some time
		 * later.
		 */
		if (!rank->demo->opts.scenario->memory_mb)
			demo_job_fault_happened(rank->demo);
	}
}

static int local_rank(const struct demo *demo, int rank)
{
	int local = 0;

	/* cppcheck-suppress arrayIndexOutOfBoundsCond ; rank is one of them */
	while (rank > 0 && demo->ranks[rank - 1].node == demo->ranks[rank].node) {
		rank--;
		local++;
	}
	return local;
}

#define MAX_ENV 16

struct rank_strings {
	char env[MAX_ENV][PATH_MAX + 32];
	char steps[16], step_ms[16], fault_rank[16], fault_step[16], lasts_s[16];
	char fault_path[PATH_MAX];
};

__attribute__((format(printf, 3, 4))) static void
add_variable(struct rank_strings *text, const char **env, const char *fmt, ...)
{
	va_list args;
	int n = 0;

	while (env[n])
		n++;
	va_start(args, fmt);
	vsnprintf(text->env[n], sizeof(text->env[n]), fmt, args);
	va_end(args);
	env[n] = text->env[n];
}

static bool has_fault(const struct demo *demo, const char *fault)
{
	const char *has = demo->opts.scenario->fault;

	return has && strcmp(has, fault) == 0;
}

/* Returns the address at which the first rank to use NCCL publishes the unique id. */
static const char *master_address(const struct demo *demo)
{
	bool is_absent = has_fault(demo, "never-init") && demo->opts.run.culprit == 0;

	return demo->nodes[demo_case_node(&demo->opts.run, is_absent)].address;
}

static void fill_environment(const struct demo *demo, const struct demo_rank *rank,
			     const struct job_paths *paths, struct rank_strings *text,
			     const char **env)
{
	char path[PATH_MAX];

	add_variable(text, env, "RANK=%d", rank->rank);
	add_variable(text, env, "WORLD_SIZE=%d", demo->opts.run.ranks);
	add_variable(text, env, "LOCAL_RANK=%d", local_rank(demo, rank->rank));
	add_variable(text, env, "MASTER_ADDR=%s", master_address(demo));
	add_variable(text, env, "MASTER_PORT=%d", demo->master_port);
	if (demo->net)
		add_variable(text, env, "NCCL_SOCKET_IFNAME=" DEMO_NET_DEVICE);
	add_variable(text, env, "COLLWATCH_SOCKET=%s/agent.sock", demo->nodes[rank->node].dir);
	add_variable(text, env, "LD_LIBRARY_PATH=%s", paths->sim);
	add_variable(text, env, "LD_PRELOAD=%s", paths->agent);
	if (demo->opts.scenario->event == DEMO_EVENT_JOB_RESTART) {
		add_variable(text, env, "TORCHELASTIC_RUN_ID=" DEMO_JOB);
		add_variable(text, env, "TORCHELASTIC_RESTART_COUNT=%d", demo->n_restarts);
	} else {
		add_variable(text, env, "COLLWATCH_JOB=" DEMO_JOB);
	}
	if (demo->opts.has_call_stacks)
		add_variable(text, env, "COLLWATCH_CALL_STACKS=on");
	if (demo->opts.scenario->event == DEMO_EVENT_LAUNCHER)
		add_variable(text, env, "SIM_NCCL_REMOTE_ERRORS=1");
	if (demo->opts.scenario->event == DEMO_EVENT_NETWORK_STALL) {
		add_variable(text, env, "SIM_NCCL_PROXY=1");
		/* The agent is also the plugin, and NCCL tells it of each network connection. */
		add_variable(text, env, "SIM_NCCL_STEPS=1");
		add_variable(text, env, "NCCL_PROFILER_PLUGIN=%s", paths->agent);
	}
	if (rank->rank != demo->opts.run.culprit)
		return;
	demo_event_break_file(demo, path);
	if (demo->opts.scenario->event == DEMO_EVENT_NETWORK_STALL)
		add_variable(text, env, "SIM_NCCL_STALL_FILE=%s", path);
	if (has_fault(demo, "gpu-dies"))
		add_variable(text, env, "SIM_NCCL_GPU_DEATH_FILE=%s", path);
}

static void fill_arguments(const struct demo *demo, struct job_paths *paths,
			   struct rank_strings *text, char **argv)
{
	const struct demo_scenario *s = demo->opts.scenario;
	int n = 0;

	snprintf(text->steps, sizeof(text->steps), "%d", s->steps);
	snprintf(text->step_ms, sizeof(text->step_ms), "%d", STEP_MS);
	snprintf(text->fault_rank, sizeof(text->fault_rank), "%d", demo->opts.run.culprit);
	snprintf(text->fault_step, sizeof(text->fault_step), "%d", FAULT_STEP);
	if (paths->is_python) {
		argv[n++] = (char *)"python3";
		argv[n++] = (char *)"-u";
	}
	argv[n++] = paths->program;
	argv[n++] = (char *)"--steps";
	argv[n++] = text->steps; /* 0 = endless */
	argv[n++] = (char *)"--log-every";
	argv[n++] = (char *)"5";
	/* Tensor-parallel pairs give the job overlapping communicators, like real jobs. */
	argv[n++] = (char *)"--tp";
	argv[n++] =
		(char *)(demo->opts.run.ranks >= 4 && demo->opts.run.ranks % 2 == 0 ? "2" : "1");
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
	if (s->lasts_s) {
		snprintf(text->lasts_s, sizeof(text->lasts_s), "%d", s->lasts_s);
		snprintf(text->fault_path, sizeof(text->fault_path), "%s/checkpoint%s", demo->dir,
			 demo->freeze ? "/file" : "");
		argv[n++] = (char *)"--fault-seconds";
		argv[n++] = text->lasts_s;
		argv[n++] = (char *)"--fault-path";
		argv[n++] = text->fault_path;
	} else if (has_fault(demo, "gpu-dies")) {
		demo_event_break_file(demo, text->fault_path);
		argv[n++] = (char *)"--fault-path";
		argv[n++] = text->fault_path;
	} else if (s->event == DEMO_EVENT_LAUNCHER) {
		/*
		 * The job's own watchdog counts from the moment when this file appears, also on a
		 * slow machine.
		 */
		snprintf(text->fault_path, sizeof(text->fault_path), "%s/fault", demo->dir);
		argv[n++] = (char *)"--fault-file";
		argv[n++] = text->fault_path;
	}
}

static int start_rank(struct demo *demo, struct demo_rank *rank, struct job_paths *paths,
		      struct cw_err *err)
{
	char name[32], log[PATH_MAX], cgroup[PATH_MAX];
	bool is_limited = demo->cgroup[0] && rank->rank == demo->opts.run.culprit;
	const char *env[MAX_ENV + 1] = { NULL };
	char *argv[28] = { NULL };
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
				       .net = demo->net,
				       .node = rank->node,
				       .on_line = on_line,
				       .user = rank,
			       },
			       err);
}

static int start_ranks(struct demo *demo, struct cw_err *err)
{
	struct job_paths paths;
	int r;

	r = find_parts(demo, &paths, err);
	for (int i = 0; r == 0 && i < demo->opts.run.ranks; i++) {
		struct demo_rank *rank = &demo->ranks[i];

		rank->demo = demo;
		rank->rank = i;
		rank->step = 0;
		rank->node = demo_case_node(&demo->opts.run, i);
		r = start_rank(demo, rank, &paths, err);
	}
	if (r == 0)
		demo_expect(demo, RUNNING_WITHIN_S, "the ranks did not get going");
	return r;
}

int demo_job_start(struct demo *demo, struct cw_err *err)
{
	char path[PATH_MAX / 2];
	int r = 0;

	demo->master_port = DEMO_NET_MASTER_PORT;
	if (!demo->net)
		r = demo_free_port(&demo->master_port, &demo->master_port_fd);
	if (r < 0)
		return cw_err_set(err, -r, "no free port: %s", strerror(-r));
	if (demo->opts.scenario->needs_host_wait && !demo_proc_may_look())
		return cw_err_set(err, EPERM,
				  "%s needs daemons that may see in what a rank sleeps: run it as "
				  "root",
				  demo->opts.scenario->name);
	if (demo->opts.scenario->memory_mb)
		r = demo_cgroup_make(demo, demo->opts.scenario->memory_mb, err);
	if (demo->opts.scenario->event == DEMO_EVENT_THAW) {
		snprintf(path, sizeof(path), "%s/checkpoint", demo->dir);
		r = demo_freeze_make(path, &demo->freeze, err);
	}
	return r < 0 ? r : start_ranks(demo, err);
}

/* Starts the same ranks once more, after the last of them has ended. */
static void restart_ranks(struct demo *demo)
{
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (!demo->ranks[i].proc.has_ended)
			return;
	for (int i = 0; i < demo->opts.run.ranks; i++)
		demo_proc_fini(&demo->ranks[i].proc);
	demo->is_restarting = false;
	demo->job_is_running = false;
	demo->n_restarts++;
	if (start_ranks(demo, &demo->err) < 0)
		demo_end(demo, DEMO_FAILED);
}

/* True if the scenario makes the rank end, and end in this way. */
static bool had_to_end(const struct demo *demo, int rank)
{
	const struct demo_scenario *s = demo->opts.scenario;
	int status = demo->ranks[rank].proc.wait_status;

	if (demo->nodes[demo->ranks[rank].node].is_lost)
		return true;
	/* In a failing job, the post-mortem reports how each rank ends. */
	if (s->has_postmortem && (demo->fault_ns || rank == demo->opts.run.culprit))
		return true;
	if (demo->is_restarting || rank < demo->n_cancelled)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
	return s->steps && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/*
 * Records the fault if the culprit has ended. We may not have read the culprit's last output yet.
 */
static void note_failure(struct demo *demo)
{
	if (demo->ranks[demo->opts.run.culprit].proc.has_ended)
		demo_job_fault_happened(demo);
	for (int i = 0; i < demo->opts.run.ranks; i++)
		if (demo->ranks[i].proc.has_ended)
			demo_event_on_failure(demo);
}

void demo_job_on_ended(struct demo *demo)
{
	const struct demo_scenario *s = demo->opts.scenario;
	char how[128];

	for (int i = 0; i < demo->opts.run.ranks; i++) {
		const struct demo_proc *proc = &demo->ranks[i].proc;
		bool is_fault = i == demo->opts.run.culprit &&
				s->expected_class == CW_CLASS_PROCESS_DEAD &&
				WIFSIGNALED(proc->wait_status);

		if (!proc->has_ended || had_to_end(demo, i))
			continue;
		if (is_fault) {
			demo_job_fault_happened(demo);
			continue;
		}
		(void)cw_err_set(&demo->err, ECHILD, "rank %d %s", i,
				 demo_proc_describe_end(proc, how, sizeof(how)));
		demo_end(demo, DEMO_FAILED);
		return;
	}
	if (demo->is_restarting)
		restart_ranks(demo);
	if (s->has_postmortem)
		note_failure(demo);
}
