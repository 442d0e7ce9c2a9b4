/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/cli/suite_processes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "lab/demo/demo.h"
#include "lab/suite/score.h"
#include "lab/suite/watch.h"
#include "lab/vjob/comm_slot.h"
#include "report/json_util.h"

/* A machine with two processors can run this many besides other jobs. */
#define MAX_RANKS 16u
#define MAX_NODES 4u
#define MAX_BYTES (UINT64_C(64) << 20)
/* Later or longer faults run in virtual time only. */
#define MAX_WAIT_NS (20 * CW_NS_PER_S)
/* From the fault to the alert; a communicator in creation gets 30 s before it is late. */
#define ALERT_WITHIN_S 75
/* How long we wait for an alert that must not come. */
#define SILENCE_S 40

/* The child's result: plain data, because it goes through a pipe. */
struct result {
	bool has_run, agrees, is_right, is_alert;
	double after_s;
	char engine[96], processes[96], why[512];
};

struct job {
	pid_t pid;
	int fd;
	char name[SUITE_TITLE];
};

struct suite_processes {
	unsigned at_once, n_running;
	struct job *jobs; /* at_once; pid 0 = free */
	uint32_t n, n_agree, n_right, n_failed, n_skipped;
	json_t *misses;
};

/* ---- selection ---- */

static const char *obstacle_of_fault(const struct suite_fault *f)
{
	switch (f->action) {
	case SUITE_BLOCK:
	case SUITE_SPIN:
	case SUITE_EXIT_NOW:
	case SUITE_KILL:
	case SUITE_STOP:
	case SUITE_SKIP:
	case SUITE_ADD:
	case SUITE_CHANGE:
	case SUITE_SWAP:
	case SUITE_SLOW:
	case SUITE_STUCK:
		break;
	default:
		return "a fault that one machine cannot have";
	}
	if (f->action == SUITE_STOP && f->for_ns != SUITE_FOREVER)
		return "a stop that passes";
	if (f->at_ns > MAX_WAIT_NS || (f->for_ns != SUITE_FOREVER && f->for_ns > MAX_WAIT_NS))
		return "a fault that comes or passes too late";
	return NULL;
}

static const char *obstacle_of_call(const struct suite_scenario *s, const struct suite_call *call)
{
	bool is_made = call->kind == CW_OP_COMM_INIT || call->kind == CW_OP_COMM_SPLIT ||
		       call->kind == CW_OP_COMM_FINALIZE;

	if (!is_made && !cw_op_is_collective(call->kind) && !cw_op_is_p2p(call->kind))
		return "a call the program of the ranks does not know";
	if (call->redop > CW_REDOP_AVG && call->redop != CW_REDOP_NONE)
		return "an operator of the program's own";
	if (call->count > MAX_BYTES / 8 / s->n_ranks)
		return "calls that are too large";
	return NULL;
}

static const char *obstacle_of_insn(const struct suite_scenario *s, const struct suite_insn *insn)
{
	switch (insn->kind) {
	case SUITE_CALL:
		return obstacle_of_call(s, &insn->call);
	case SUITE_IO:
	case SUITE_CHILD:
	case SUITE_SIGTERM:
		return "a statement the program of the ranks does not know";
	default:
		return NULL;
	}
}

/*
 * The simulated NCCL keeps the order between a captured call and other calls of its comm only if
 * both are on one stream.
 */
static const char *obstacle_of_graphs(const struct suite_program *p)
{
	uint32_t streams[SUITE_MAX_FAMILIES] = { 0 }, in_graph = 0, end = 0;

	for (uint32_t i = 0; i < p->n_insns; i++) {
		const struct suite_insn *insn = &p->insns[i];
		uint32_t family = insn->call.family;

		if (insn->kind == SUITE_GRAPH)
			end = insn->other;
		if (insn->kind != SUITE_CALL || cw_op_blocks_host(insn->call.kind))
			continue;
		streams[family] |= 1u << insn->call.stream % 32;
		in_graph |= i < end ? 1u << family : 0;
	}
	for (uint32_t f = 0; f < SUITE_MAX_FAMILIES; f++)
		if ((in_graph & 1u << f) && (streams[f] & (streams[f] - 1)))
			return "a comm of a graph that is called on other streams, too";
	return NULL;
}

const char *suite_processes_obstacle(const struct suite_scenario *s)
{
	const char *obstacle = NULL;

	if (s->n_ranks > MAX_RANKS || s->per_node * MAX_NODES < s->n_ranks)
		return "too many ranks or nodes";
	if (s->per_process > 1)
		return "several devices in a process";
	if (s->policy != CW_POLICY_TRAINING || s->has_no_progress)
		return "another policy, or no progress";
	if (s->n_traits)
		return "another NCCL, or what ranks are told";
	if (suite_expects_notice(s) || s->may_be_silent || s->job_timeout_ns)
		return "a notice, or a watchdog of its own";
	if (suite_expects_postmortem(s) || s->n_watchdogs || s->launcher.is_there)
		return "a job that ends itself";
	if (suite_n_incidents(s) > 1 || s->is_alone)
		return "more than one alert to wait for";
	for (uint32_t f = 0; f < s->n_families; f++) {
		if (!cw_suite_family_comms(s, f))
			return "ranks that cannot be cut like that";
		if (s->families[f].is_lazy)
			return "connections that the first call makes";
	}
	for (uint32_t i = 0; i < s->n_faults && !obstacle; i++)
		obstacle = obstacle_of_fault(&s->faults[i]);
	for (uint32_t p = 0; p < s->n_programs && !obstacle; p++)
		obstacle = obstacle_of_graphs(&s->programs[p]);
	for (uint32_t p = 0; p < s->n_programs; p++)
		for (uint32_t i = 0; i < s->programs[p].n_insns && !obstacle; i++)
			obstacle = obstacle_of_insn(s, &s->programs[p].insns[i]);
	return obstacle;
}

/* ---- one scenario, in the child ---- */

/* "never_entered 2,5", "silence" */
static void say(const struct outcome *o, char *buf, size_t len)
{
	size_t used;

	(void)snprintf(buf, len, "%s", o->is_alert ? cw_class_name(o->verdict_class) : "silence");
	for (uint32_t i = 0; i < o->n_culprits; i++) {
		used = strlen(buf);
		(void)snprintf(buf + used, len - used, "%s%" PRId32, i ? "," : " ", o->culprits[i]);
	}
}

static int compare_labels(const void *a, const void *b)
{
	const int32_t *la = a, *lb = b;

	return (*la > *lb) - (*la < *lb);
}

static int outcome_of(const struct demo *demo, struct outcome *ret)
{
	const json_t *culprits = json_object_get(demo->incident, "culprits");
	int64_t fault_ns = demo->fault_ns ? demo->fault_ns : demo->watching_ns;
	struct outcome o = { .is_alert = demo->outcome == DEMO_ALERT };
	size_t n = json_array_size(culprits);
	int detail = cw_detail_from_name(cw_json_str(demo->incident, "detail", ""));

	*ret = o;
	if (!o.is_alert)
		return 0;
	o.culprits = calloc(n + 1, sizeof(*o.culprits));
	if (!o.culprits)
		return -ENOMEM;
	o.verdict_class = (uint32_t)cw_class_from_name(cw_json_str(demo->incident, "class", ""));
	o.confidence =
		(uint32_t)cw_confidence_from_name(cw_json_str(demo->incident, "confidence", ""));
	o.after_ns = demo->alert_ns - fault_ns;
	o.detail = detail < 0 ? CW_DETAIL_NONE : (enum cw_detail)detail;
	(void)snprintf(o.summary, sizeof(o.summary), "%s%s",
		       demo->opts.scenario->fault && !demo->fault_ns ? "before its fault: " : "",
		       cw_json_str(demo->incident, "summary", ""));
	for (size_t i = 0; i < n; i++)
		o.culprits[o.n_culprits++] =
			(int32_t)cw_json_int(json_array_get(culprits, i), "rank", -1);
	qsort(o.culprits, n, sizeof(*o.culprits), compare_labels);
	*ret = o;
	return 0;
}

static int first_culprit(const struct suite_scenario *s)
{
	for (uint32_t i = 0; s->n_faults && i < s->n_ranks; i++)
		if (cw_suite_set_has(&s->faults[0].set, i))
			return (int)i;
	return 0;
}

/* Runs the scenario as one of the demo's, on the demo's site. */
static int run_processes(const struct suite_scenario *s, uint64_t nth, struct outcome *ret,
			 char *why, size_t len)
{
	char number[24];
	struct demo_scenario scenario = {
		.name = s->name,
		.fault = s->n_faults ? "scenario" : NULL,
		.happens = "goes wrong",
		.expected_class = s->n_answers ? s->answers[0].verdict_class : CW_CLASS_HEALTHY,
		.program = DEMO_SUITE,
		.options = { s->file, number },
	};
	struct demo *demo = calloc(1, sizeof(*demo));
	int r = -ECHILD;

	if (!demo)
		return -ENOMEM;
	(void)snprintf(number, sizeof(number), "%" PRIu64, nth);
	demo->opts = (struct demo_options){
		.scenario = &scenario,
		.run = { .ranks = (int)s->n_ranks,
			 .nodes = (int)((s->n_ranks + s->per_node - 1) / s->per_node),
			 .culprit = first_culprit(s) },
		.seconds = SILENCE_S,
		.timeout_s = ALERT_WITHIN_S,
		.is_quiet = true,
		.no_namespaces = true, /* many run, several at once: choose the cheap way */
	};
	demo_run(demo);
	if (demo->outcome == DEMO_FAILED || demo->outcome == DEMO_INTERRUPTED)
		(void)snprintf(why, len, "%s", demo->err.text);
	else
		r = outcome_of(demo, ret);
	demo_stop(demo);
	free(demo);
	return r;
}

static void compare(const struct suite_scenario *s, const struct outcome *engine,
		    const struct outcome *processes, struct result *ret)
{
	struct score score = { 0 };

	say(engine, ret->engine, sizeof(ret->engine));
	say(processes, ret->processes, sizeof(ret->processes));
	ret->has_run = true;
	ret->agrees = strcmp(ret->engine, ret->processes) == 0;
	ret->is_alert = processes->is_alert;
	ret->after_s = (double)processes->after_ns / CW_NS_PER_S;
	if (cw_score_add(&score, s, processes) == 0)
		ret->is_right = cw_score_is_perfect(&score);
	if (!ret->agrees)
		(void)snprintf(ret->why, sizeof(ret->why), "%s", processes->summary);
	cw_score_fini(&score);
}

__attribute__((noreturn)) static void be_child(const struct suite_scenario *s, uint64_t nth, int fd)
{
	struct outcome engine = { 0 }, processes = { 0 };
	struct result result = { 0 };
	struct cw_err err = { "out of memory" };
	ssize_t n;

	(void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* on failure it ends by itself, later */
	if (cw_watch(s, &err, &engine) < 0)
		(void)snprintf(result.why, sizeof(result.why), "%s", err.text);
	else if (run_processes(s, nth, &processes, result.why, sizeof(result.why)) == 0)
		compare(s, &engine, &processes, &result);
	cw_outcome_fini(&engine);
	cw_outcome_fini(&processes);
	n = write(fd, &result, sizeof(result));
	_exit(n == sizeof(result) ? 0 : 1);
}

/* ---- all scenarios ---- */

struct suite_processes *suite_processes_new(unsigned at_once)
{
	struct suite_processes *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->at_once = at_once;
	p->jobs = calloc(at_once, sizeof(*p->jobs));
	p->misses = json_array();
	return p->jobs && p->misses ? p : suite_processes_free(p);
}

struct suite_processes *suite_processes_free(struct suite_processes *p)
{
	if (!p)
		return NULL;
	for (unsigned i = 0; p->jobs && i < p->at_once; i++) {
		if (!p->jobs[i].pid)
			continue;
		(void)kill(p->jobs[i].pid, SIGTERM);
		(void)waitpid(p->jobs[i].pid, NULL, 0);
		closep(&p->jobs[i].fd);
	}
	json_decref(p->misses);
	free(p->jobs);
	free(p);
	return NULL;
}

static void note_result(struct suite_processes *p, const struct job *job, const struct result *r)
{
	char after[32] = "";

	p->n++;
	p->n_failed += !r->has_run;
	p->n_agree += r->agrees;
	p->n_right += r->is_right;
	if (r->is_alert)
		(void)snprintf(after, sizeof(after), ", %.1f s after the fault", r->after_s);
	if (!r->has_run)
		fprintf(stderr, "FAILED  %s: %s\n", job->name,
			*r->why ? r->why : "the process that ran it has ended");
	else
		fprintf(stderr, "%s  %s: %s%s%s%s%s%s\n", r->agrees ? "same   " : "DIFFERS",
			job->name, r->processes, after, r->agrees ? "" : "; the engine says ",
			r->agrees ? "" : r->engine, *r->why ? "\n         " : "", r->why);
	if (r->agrees)
		return;
	/* Without memory the document lacks a miss, but still has their number. */
	(void)json_array_append_new(
		p->misses, json_pack("{s:s, s:s, s:s, s:b, s:s}", "scenario", job->name, "engine",
				     r->engine, "processes", r->has_run ? r->processes : "failed",
				     "right", r->is_right, "reason", r->why));
}

static void collect(struct suite_processes *p, struct job *job)
{
	struct result result = { 0 };
	size_t have = 0;
	ssize_t n;

	while (have < sizeof(result) &&
	       ((n = read(job->fd, (char *)&result + have, sizeof(result) - have)) > 0 ||
		(n < 0 && errno == EINTR)))
		have += n > 0 ? (size_t)n : 0;
	if (have < sizeof(result))
		result = (struct result){ 0 };
	(void)waitpid(job->pid, NULL, 0);
	closep(&job->fd);
	note_result(p, job, &result);
	job->pid = 0;
	p->n_running--;
}

/* Blocks until a scenario ends, and collects all ended ones. */
static void wait_for_one(struct suite_processes *p)
{
	struct pollfd fds[64];
	struct job *of[64];
	unsigned n = 0;

	for (unsigned i = 0; i < p->at_once && n < 64; i++)
		if (p->jobs[i].pid) {
			of[n] = &p->jobs[i];
			fds[n++] = (struct pollfd){ .fd = p->jobs[i].fd, .events = POLLIN };
		}
	if (poll(fds, n, -1) < 0)
		return;
	for (unsigned i = 0; i < n; i++)
		if (fds[i].revents)
			collect(p, of[i]);
}

int suite_processes_add(struct suite_processes *p, const struct suite_scenario *s, uint64_t nth,
			struct cw_err *err)
{
	struct job *job = p->jobs;
	int fds[2];

	while (p->n_running == p->at_once)
		wait_for_one(p);
	while (job->pid)
		job++;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return cw_err_set(err, errno, "no pipe: %s", strerror(errno));
	job->pid = fork();
	if (job->pid == 0) {
		(void)close(fds[0]);
		be_child(s, nth, fds[1]);
	}
	(void)close(fds[1]);
	if (job->pid < 0) {
		int error = errno;

		(void)close(fds[0]);
		job->pid = 0;
		return cw_err_set(err, error, "no process: %s", strerror(error));
	}
	job->fd = fds[0];
	(void)snprintf(job->name, sizeof(job->name), "%s", s->name);
	p->n_running++;
	return 0;
}

void suite_processes_skip(struct suite_processes *p)
{
	p->n_skipped++;
}

void suite_processes_wait(struct suite_processes *p)
{
	while (p->n_running)
		wait_for_one(p);
}

bool suite_processes_differ(const struct suite_processes *p)
{
	return p->n_agree < p->n;
}

void suite_processes_print(const struct suite_processes *p, FILE *out)
{
	fprintf(out,
		"as processes: %" PRIu32 " scenario%s, %" PRIu32 " as the engine says, %" PRIu32
		" right by their labels, %" PRIu32 " could not be run; %" PRIu32 " left out\n",
		p->n, p->n == 1 ? "" : "s", p->n_agree, p->n_right, p->n_failed, p->n_skipped);
}

json_t *suite_processes_doc(const struct suite_processes *p)
{
	return json_pack("{s:i, s:i, s:i, s:i, s:i, s:O}", "n", (int)p->n, "agree", (int)p->n_agree,
			 "right", (int)p->n_right, "failed", (int)p->n_failed, "omitted",
			 (int)p->n_skipped, "misses", p->misses);
}
