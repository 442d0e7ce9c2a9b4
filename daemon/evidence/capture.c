/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All captures wait in one queue. Captures that an alert may need start before the others (brief
 * captures). Users share the limited queue by quotas (identity/quota.h) and take turns. At its
 * deadline, a capture ends with the parts that it has, and we kill its child.
 *
 * The parts of a capture run one after the other: /proc, then Python, then native stacks. /proc
 * comes first because it shows whether the process is stopped. The agent of a stopped process would
 * not answer. A child then reads the Python stacks from the process's memory. If it cannot, and the
 * hang is confirmed, we ask the agent. The native stacks come last, because the agent's thread must
 * run to answer. Each part gets a share of the remaining time. If a part fails or is cut off, this
 * does not affect the other parts.
 *
 * A sweep reads many processes of one user with one child, because a child for each would cost more
 * than the reads. It counts as one capture. It needs no agent and stops no process.
 */
#include "daemon/evidence/capture.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/procfacts.h"
#include "daemon/evidence/python_part.h"
#include "daemon/evidence/stack.h"
#include "daemon/kernel/kernel_threads.h"
#include "daemon/kernel/procfs.h"
#include "daemon/node/node.h"
#include "identity/quota.h"
#include "leader/incident/evidence_brief.h"
#include "loop/children.h"
#include "loop/events.h"

#define MAX_JSON_BYTES (384u << 10) /* must fit into a message (CW_MSG_MAX_STRING) */
/* Time limit of a brief capture, which is one of many. It then ends with the parts that it has. */
#define BRIEF_RUN_MS 8000u
/* Maximum number of brief captures in the queue. A quarter of the queue is left for the others. */
#define BRIEF_QUEUE_SHARE(max) ((max) - (max) / 4)
/* Maximum size of the proc part: 256 threads of about 180 bytes, and some kernel stacks. */
#define MAX_PROC_OUTPUT (96u << 10)
/* The flags that request Python stacks. */
#define PYTHON_ANY (CW_EVIDENCE_PYTHON | CW_EVIDENCE_PYTHON_READ)
/* The flags that request native stacks, always or if there is no Python stack. */
#define NATIVE_ANY (CW_EVIDENCE_NATIVE | CW_EVIDENCE_NATIVE_ELSE)
/* Maximum size of the facts about one process of a sweep, which has one thread there. */
#define MAX_SWEPT_PROC (16u << 10)
/*
 * Time limits. Reading /proc and memory takes milliseconds, or hangs. faulthandler answers in
 * 50 ms, or never.
 */
#define PROC_LIMIT_MS 2000
#define PYTHON_LIMIT_MS 3000
/*
 * We ask the agent only if the process has used no CPU for this long. The interpreter's structures
 * must not change while faulthandler walks through them (cpython#116008).
 */
#define PYTHON_MIN_IDLE_NS (2 * CW_NS_PER_S)
/* If this many children survive SIGKILL, the node is broken, and we start no more. */
#define MAX_ABANDONED 8u
_Static_assert(MAX_ABANDONED > CW_CHILD_MAX_ABANDONED, "one user is not the node");

struct cw_capture_job {
	struct cw_capture *owner;
	struct cw_capture_job *next, **link;
	struct cw_msg_evidence_target target;
	cw_capture_fn fn;
	void *user;
	int64_t deadline_ns;
	struct event *timer;
	/* Index of the running part in steps[]; 0 also while the capture waits in the queue. */
	unsigned step;
	bool is_running, is_gone, is_stopped, is_reading_proc;
	/* True if another user's capture took the place of this one in the queue. */
	bool is_displaced;
	int32_t rank;
	int64_t read_ns; /* when we read the Python stacks; 0 = not yet */
	uid_t uid;       /* user that owns the process */
	struct cw_child *child;
	bool is_asking_python;
	uint64_t python_handle;
	json_t *proc, *native, *python;
	json_t *core; /* facts about the core file of a process that a signal killed */
	/* The processes of a sweep; NULL = this is a usual capture of `target`. */
	struct swept *swept;
	uint32_t n_swept;
};

/* One process of a sweep. */
struct swept {
	struct cw_msg_evidence_target target;
	int32_t rank;
	int64_t read_ns;
	json_t *proc, *python;
	bool is_done; /* we have delivered the evidence to fn */
};

struct cw_capture {
	struct cw_capture_config config;
	struct cw_children *children;
	struct event *pump;
	/* Running and waiting captures, in order of arrival. */
	struct cw_capture_job *first, **last;
	struct cw_capture_stats stats;
	uid_t started_uid;                /* user of the last capture that we started */
	struct cw_kernel_threads *kernel; /* NULL = not available on this machine */
	unsigned n_proc;                  /* number of children that read /proc */
};

static bool is_brief(const struct cw_capture_job *job)
{
	return job->target.what & CW_EVIDENCE_BRIEF;
}

static void set_deadline(struct cw_capture_job *job, uint32_t ms)
{
	struct timeval tv = { ms / 1000, (suseconds_t)(ms % 1000 * 1000) };

	job->deadline_ns = cw_clock_now_ns(job->owner->config.clock) + ms * CW_NS_PER_MS;
	if (evtimer_add(job->timer, &tv) < 0)
		log_err("capture: no timer for pid %d", (int)job->target.pid);
}

static void pump_soon(struct cw_capture *c)
{
	static const struct timeval at_once = { 0, 0 };

	if (evtimer_add(c->pump, &at_once) < 0)
		log_err("capture: no timer, captures wait for the next one");
}

static void job_free(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;

	if (job->child)
		cw_child_cancel(job->child);
	c->n_proc -= job->is_reading_proc;
	if (job->is_asking_python)
		cw_node_python_cancel(c->config.node, job->python_handle);
	event_freep(&job->timer);
	if (job->link) {
		*job->link = job->next;
		if (job->next)
			job->next->link = job->link;
		else
			c->last = job->link;
		if (job->is_running)
			c->stats.running--;
		else
			c->stats.queued--;
	}
	json_decref(job->proc);
	json_decref(job->native);
	json_decref(job->python);
	json_decref(job->core);
	for (uint32_t i = 0; i < job->n_swept; i++) {
		json_decref(job->swept[i].proc);
		json_decref(job->swept[i].python);
	}
	free(job->swept);
	free(job);
}

static const char *text_of(const json_t *part, const char *key)
{
	const char *text = json_string_value(json_object_get(part, key));

	return text ? text : "";
}

static bool has_threads(const json_t *part)
{
	return json_array_size(json_object_get(part, "threads")) > 0;
}

/* True if the capture needs native stacks, as far as the Python part is known. */
static bool wants_native(const struct cw_capture_job *job)
{
	return job->target.what & CW_EVIDENCE_NATIVE ||
	       (job->target.what & CW_EVIDENCE_NATIVE_ELSE && !has_threads(job->python));
}

/*
 * Returns the part. If we do not have it, returns a part with the reason "no time left". If it was
 * not requested, returns JSON null.
 */
static json_t *take_part(struct cw_capture_job *job, json_t **part, uint32_t what)
{
	if (*part)
		return steal_ptr(part);
	if (!(job->target.what & what))
		return json_null();
	if (job->is_displaced)
		return cw_evidence_part(
			"failed", "too many captures of this user's processes were requested");
	return cw_evidence_part("failed",
				job->is_running ? "no time left" : "no time left in the queue");
}

static json_t *make_document(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	int64_t age_ns = job->read_ns ? cw_clock_now_ns(c->config.clock) - job->read_ns : 0;
	char taken[32], ticks[24];
	json_t *doc;

	(void)cw_wall_format(cw_clock_wall_ns(c->config.clock), taken);
	(void)snprintf(ticks, sizeof(ticks), "%" PRIu64, job->target.start_ticks);
	if (!wants_native(job) && !job->native)
		job->native = json_null();
	doc = json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:f, s:o, s:o, s:o}", "schema",
			"collwatch.evidence/1", "host", c->config.node_name, "pid",
			(int)job->target.pid, "start_ticks", ticks, "rank", (int)job->rank, "taken",
			taken, "age_s", (double)age_ns / CW_NS_PER_S, "proc",
			take_part(job, &job->proc, CW_EVIDENCE_PROC), "native",
			take_part(job, &job->native, NATIVE_ANY), "python",
			take_part(job, &job->python, PYTHON_ANY));
	if (job->core) /* out of memory: the document still has the stacks */
		(void)json_object_set_new(doc, "core", steal_ptr(&job->core));
	return doc;
}

static bool has_failed(const json_t *doc)
{
	static const char *const parts[] = { "proc", "native", "python" };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const char *status = json_string_value(
			json_object_get(json_object_get(doc, parts[i]), "status"));

		if (status && strcmp(status, "failed") == 0)
			return true;
	}
	return false;
}

/* Makes the document and passes it on. */
static void deliver(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	_cleanup_(freep) char *text = NULL;
	json_t *doc = make_document(job);

	if (doc && is_brief(job))
		cw_evidence_brief(doc, job->target.what & CW_EVIDENCE_ALL_PYTHON);
	if (json_dumpb(doc, NULL, 0, JSON_COMPACT) > MAX_JSON_BYTES)
		(void)json_object_set_new(doc, "native",
					  cw_evidence_part("failed", "too large to send"));
	text = doc ? cw_json_write(doc, JSON_COMPACT) : NULL;
	if (!doc || has_failed(doc))
		c->stats.failed++;
	else
		c->stats.done++;
	json_decref(doc);
	/* Without memory, send at least an empty object. */
	job->fn(&job->target, text ? text : "{}", job->user);
}

static void finish(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;

	deliver(job);
	job_free(job);
	pump_soon(c);
}

/* Call this at the end of a part. Starts the next requested part, or finishes the capture. */
static void part_done(struct cw_capture_job *job);

/* ---- children ---- */

static int64_t left_ms(const struct cw_capture_job *job)
{
	int64_t left = job->deadline_ns - cw_clock_now_ns(job->owner->config.clock);

	return left > 0 ? left / CW_NS_PER_MS : 0;
}

static uint32_t share_ms(const struct cw_capture_job *job, int64_t limit_ms)
{
	int64_t ms = left_ms(job) / 2;

	if (ms > limit_ms)
		ms = limit_ms;
	return ms > 1 ? (uint32_t)ms : 1;
}

static int start_child(struct cw_capture_job *job, struct cw_child_config *config)
{
	struct cw_capture *c = job->owner;
	int r;

	if (cw_children_abandoned_of(c->children, job->uid) >= CW_CHILD_MAX_ABANDONED)
		return -EUSERS;
	if (cw_children_abandoned(c->children) >= MAX_ABANDONED)
		return -EBUSY;
	config->uid = job->uid;
	config->forks = c->config.forks;
	r = cw_child_start(c->children, config, &job->child);
	if (r < 0)
		log_warn("capture: no child for pid %d: %s", (int)job->target.pid, strerror(-r));
	return r;
}

static void count_end(struct cw_capture *c, enum cw_child_end end)
{
	c->stats.timed_out += end == CW_CHILD_TIMED_OUT;
	c->stats.abandoned += end == CW_CHILD_ABANDONED;
}

static const char *why_no_child(int r)
{
	if (r == -EUSERS)
		return "earlier captures of this user's processes hang in the kernel";
	return r == -EBUSY ? "too many earlier captures hang in the kernel"
			   : "cannot start a process";
}

/* ---- /proc ---- */

/* The argument of the child. */
struct proc_order {
	struct cw_stack_target target;
	bool has_kernel; /* the descriptor CW_CHILD_FD is the BPF program */
};

static int proc_main(int out_fd, const void *arg)
{
	const struct proc_order *order = arg;
	json_t *json = cw_procfacts(order->target.pid, order->target.start_ticks, order->target.uid,
				    order->has_kernel ? CW_CHILD_FD : -1, CW_PROCFS_MAX_THREADS);

	return json && json_dumpfd(json, out_fd, JSON_COMPACT) == 0 ? 0 : 1;
}

int cw_capture_proc_child(int fd)
{
	return cw_child_run(fd, proc_main);
}

static void on_proc_done(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;
	const char *state;

	job->owner->n_proc--;
	job->is_reading_proc = false;
	job->child = NULL;
	count_end(job->owner, end);
	if (end == CW_CHILD_EXITED)
		job->proc = cw_json_parse(output, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(job->proc)) {
		json_decref(job->proc);
		job->proc = cw_evidence_part("failed", "the process that reads /proc failed");
	}
	state = json_string_value(json_object_get(job->proc, "state"));
	job->is_stopped = state && (*state == 'T' || *state == 't');
	part_done(job);
}

static void step_proc(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	struct proc_order order = { .target = { .pid = job->target.pid,
						.start_ticks = job->target.start_ticks,
						.uid = job->uid } };
	struct cw_child_config config = {
		.main = proc_main,
		.job = cw_capture_proc_child,
		.arg = &order,
		.arg_len = sizeof(order),
		.deadline_ms = share_ms(job, PROC_LIMIT_MS),
		.max_output = MAX_PROC_OUTPUT,
		.fn = on_proc_done,
		.user = job,
	};
	int r;

	if (job->is_gone) {
		job->proc = cw_evidence_part("absent",
					     "the process is gone, or is not registered here");
		part_done(job);
		return;
	}
	if (c->n_proc == 0 || !cw_kernel_threads_is_exclusive(c->kernel)) {
		config.fds[0] = cw_kernel_threads_program(c->kernel, job->target.pid);
		config.n_fds = config.fds[0] >= 0;
		order.has_kernel = config.n_fds == 1;
	}
	r = start_child(job, &config);
	if (r < 0) {
		job->proc = cw_evidence_part("failed", why_no_child(r));
		part_done(job);
	} else {
		c->n_proc++;
		job->is_reading_proc = true;
	}
}

/* ---- Python ---- */

/*
 * Replaces the Python part by the agent's answer. If neither we nor the agent have a stack, we give
 * both reasons, because the user may be able to remove either of them. We omit our own reason if it
 * is "absent", which only says that there is no Python. Owns answer from now on.
 */
static void take_answer(struct cw_capture_job *job, json_t *answer)
{
	bool is_read_absent = strcmp(text_of(job->python, "status"), "absent") == 0;
	char reasons[512];

	if (!has_threads(answer) && !is_read_absent) {
		if (strcmp(text_of(answer, "status"), "absent") == 0) {
			json_decref(answer);
			return;
		}
		(void)snprintf(reasons, sizeof(reasons), "%s; the agent: %s",
			       text_of(job->python, "reason"), text_of(answer, "reason"));
		/* If memory runs out, only the agent's reason stays. */
		(void)json_object_set_new(answer, "reason", json_string(reasons));
	}
	json_decref(job->python);
	job->python = answer;
}

static void on_python(uint32_t status, const char *text, void *user)
{
	struct cw_capture_job *job = user;

	job->is_asking_python = false;
	take_answer(job, cw_python_text_part(status, text));
	part_done(job);
}

/*
 * Returns a part with the reason why we cannot ask the agent for Python stacks; NULL = we can. The
 * agent can answer only if the process runs and its interpreter is idle.
 */
static json_t *why_not_python(struct cw_capture_job *job)
{
	struct cw_node_process p;

	if (!cw_node_find(job->owner->config.node, job->target.pid, job->target.start_ticks, &p) ||
	    p.is_dead)
		return cw_evidence_part("absent", "the process is gone, or is not registered here");
	if (!p.has_python)
		return cw_evidence_part("absent", "no armed interpreter in the process");
	if (job->is_stopped)
		return cw_evidence_part("refused", "the process is stopped and cannot answer");
	if (p.idle_ns < 0)
		return cw_evidence_part("refused", "not known whether the interpreter is running");
	if (p.idle_ns < PYTHON_MIN_IDLE_NS)
		return cw_evidence_part("refused", "the interpreter is running");
	return NULL;
}

static void ask_agent(struct cw_capture_job *job)
{
	json_t *answer = why_not_python(job);
	int r;

	if (!answer) {
		r = cw_node_python_stacks(job->owner->config.node, job->target.pid,
					  job->target.start_ticks, share_ms(job, PYTHON_LIMIT_MS),
					  on_python, job, &job->python_handle);
		job->is_asking_python = r == 0;
		if (r == -ENOTCONN)
			answer = cw_evidence_part("failed", "the agent is not connected");
		else if (r < 0)
			answer = cw_evidence_part("failed", "the agent cannot be queried");
	}
	if (answer) {
		take_answer(job, answer);
		part_done(job);
	}
}

static int python_main(int out_fd, const void *arg)
{
	return cw_python_take_child(out_fd, arg);
}

int cw_capture_python_child(int fd)
{
	return cw_child_run(fd, python_main);
}

/* Ends the Python part. If we have no stack and may ask the agent, asks it first. */
static void python_read_done(struct cw_capture_job *job)
{
	if (!has_threads(job->python) && job->target.what & CW_EVIDENCE_PYTHON)
		ask_agent(job);
	else
		part_done(job);
}

static void on_python_read(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;

	job->child = NULL;
	count_end(job->owner, end);
	job->python = cw_python_take_read(output, len, end == CW_CHILD_EXITED);
	job->read_ns = cw_clock_now_ns(job->owner->config.clock);
	python_read_done(job);
}

/* Fills *ret, the target of a child. Returns false if the process is gone. */
static bool find_target(const struct cw_capture_job *job, struct cw_stack_target *ret)
{
	struct cw_node_process p;

	if (job->is_gone ||
	    !cw_node_find(job->owner->config.node, job->target.pid, job->target.start_ticks, &p) ||
	    p.is_dead)
		return false;
	*ret = (struct cw_stack_target){ .pid = job->target.pid,
					 .start_ticks = job->target.start_ticks,
					 .uid = p.uid,
					 .gid = p.gid };
	return true;
}

static void step_python(struct cw_capture_job *job)
{
	struct cw_stack_target target;
	struct cw_child_config config = {
		.main = python_main,
		.job = cw_capture_python_child,
		.arg = &target,
		.arg_len = sizeof(target),
		.deadline_ms = share_ms(job, PYTHON_LIMIT_MS),
		.max_output = CW_PYTHON_TAKE_MAX_OUTPUT,
		.fn = on_python_read,
		.user = job,
	};
	int r;

	if (!find_target(job, &target)) {
		job->python = cw_evidence_part("absent",
					       "the process is gone, or is not registered here");
		part_done(job);
		return;
	}
	r = start_child(job, &config);
	if (r < 0) {
		job->python = cw_evidence_part("failed", why_no_child(r));
		python_read_done(job);
	}
}

/* ---- native stacks ---- */

static int native_main(int out_fd, const void *arg)
{
	return cw_stack_child(out_fd, arg);
}

int cw_capture_native_child(int fd)
{
	return cw_child_run(fd, native_main);
}

static void on_native_done(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;

	job->child = NULL;
	count_end(job->owner, end);
	job->native = cw_stack_output_read(output, len, end == CW_CHILD_EXITED);
	part_done(job);
}

static void step_native(struct cw_capture_job *job)
{
	int64_t ms = left_ms(job) * 9 / 10; /* leave a tenth of the time for reporting the result */
	struct cw_stack_target target;
	struct cw_child_config config = {
		.main = native_main,
		.job = cw_capture_native_child,
		.arg = &target,
		.arg_len = sizeof(target),
		.deadline_ms = ms > 1 ? (uint32_t)ms : 1,
		.max_output = CW_STACK_MAX_OUTPUT,
		.fn = on_native_done,
		.user = job,
	};
	int r;

	if (!find_target(job, &target)) {
		job->native = cw_evidence_part("absent",
					       "the process is gone, or is not registered here");
		part_done(job);
		return;
	}
	r = start_child(job, &config);
	if (r < 0) {
		job->native = cw_evidence_part("failed", why_no_child(r));
		part_done(job);
	}
}

static const struct {
	uint32_t what;
	void (*run)(struct cw_capture_job *job);
} steps[] = {
	{ CW_EVIDENCE_PROC, step_proc },
	{ PYTHON_ANY, step_python },
	{ NATIVE_ANY, step_native },
};

/* True if the core file gave this part. */
static bool has_from_core(const struct cw_capture_job *job, uint32_t what)
{
	return (what == PYTHON_ANY && job->python && job->core) ||
	       (what == NATIVE_ANY && job->native && job->core);
}

static void part_done(struct cw_capture_job *job)
{
	while (job->step < sizeof(steps) / sizeof(steps[0])) {
		unsigned step = job->step++;

		if (!(job->target.what & steps[step].what) ||
		    has_from_core(job, steps[step].what) ||
		    (steps[step].what == NATIVE_ANY && !wants_native(job)))
			continue;
		steps[step].run(job);
		return;
	}
	finish(job);
}

/* ---- processes that have ended ---- */

static void on_core_read(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;
	struct cw_capture_ended_parts parts;

	job->child = NULL;
	count_end(job->owner, end);
	job->owner->config.core->read(output, len, end == CW_CHILD_EXITED, &parts);
	job->core = parts.core;
	job->native = parts.native;
	job->python = parts.python;
	part_done(job);
}

/*
 * Reads the core file of the process. Returns false if the process left none for us: it lives, or
 * its end was no crash.
 */
static bool start_core(struct cw_capture_job *job, const struct cw_node_process *p)
{
	struct cw_capture *c = job->owner;
	const struct cw_capture_core *core = c->config.core;
	struct cw_capture_ended ended = { .pid = p->pid,
					  .own_pid = p->own_pid ? p->own_pid : p->pid,
					  .uid = p->uid,
					  .gid = p->gid };
	struct cw_child_config config = {
		.arg = &ended,
		.arg_len = sizeof(ended),
		.deadline_ms = share_ms(job, PYTHON_LIMIT_MS),
		.fn = on_core_read,
		.user = job,
	};

	if (!core || !p->is_crashed || !(job->target.what & CW_EVIDENCE_NATIVE))
		return false;
	ended.ended_wall_ns = cw_clock_wall_ns(c->config.clock) -
			      (cw_clock_now_ns(c->config.clock) - p->ended_ns);
	(void)snprintf(ended.cwd, sizeof(ended.cwd), "%s", p->cwd);
	config.main = core->main;
	config.job = core->job;
	config.max_output = core->max_output;
	return start_child(job, &config) == 0;
}

/* ---- sweeps ---- */

/* Passes on the evidence about one process of a sweep. */
static void deliver_swept(struct cw_capture_job *job, struct swept *s)
{
	struct cw_capture_job one = {
		.owner = job->owner,
		.target = s->target,
		.fn = job->fn,
		.user = job->user,
		.is_running = job->is_running,
		.is_displaced = job->is_displaced,
		.rank = s->rank,
		.read_ns = s->read_ns,
		.proc = steal_ptr(&s->proc),
		.python = steal_ptr(&s->python),
	};

	s->is_done = true;
	deliver(&one);
	json_decref(one.proc);
	json_decref(one.native);
	json_decref(one.python);
}

/*
 * Ends a sweep. If the sweep got no Python stack of a process, we capture this process in the usual
 * way. If no time or no place in the queue is left, we pass on the evidence that we have.
 */
static void end_sweep(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;

	for (uint32_t i = 0; i < job->n_swept; i++) {
		struct swept *s = &job->swept[i];
		int64_t ms = left_ms(job);

		if (!s->is_done && job->is_running && ms > 0 &&
		    cw_capture_request(c, &s->target, (uint32_t)ms, job->fn, job->user) == 0)
			s->is_done = true;
		if (!s->is_done)
			deliver_swept(job, s);
	}
	job_free(job);
	pump_soon(c);
}

/*
 * Takes a line of the child. The child writes all lines of /proc first, and then parses memory of
 * processes. A hostile process may control the child from then on. We therefore accept no line of
 * /proc after the first other line.
 */
static void take_line(struct cw_capture_job *job, const char *text, size_t len, bool *is_parsing)
{
	json_t *line = cw_json_parse(text, len, JSON_REJECT_DUPLICATES, NULL);
	json_t *proc = json_object_get(line, "proc"), *python = json_object_get(line, "python");
	json_int_t index = json_is_integer(json_object_get(line, "index"))
				   ? json_integer_value(json_object_get(line, "index"))
				   : -1;
	struct swept *s = index >= 0 && index < job->n_swept ? &job->swept[index] : NULL;

	*is_parsing |= !json_is_object(proc);
	if (s && !*is_parsing && !s->proc)
		s->proc = json_incref(proc);
	if (s && *is_parsing && json_is_object(python) && !s->python)
		s->python = cw_python_take_clean(python);
	json_decref(line);
}

static void on_swept(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;
	bool is_parsing = false;

	job->child = NULL;
	count_end(job->owner, end);
	while (len > 0) {
		const char *line_end = memchr(output, '\n', len);

		if (!line_end)
			break; /* the child did not complete this line */
		take_line(job, output, (size_t)(line_end - output), &is_parsing);
		len -= (size_t)(line_end - output) + 1;
		output = line_end + 1;
	}
	for (uint32_t i = 0; i < job->n_swept; i++) {
		job->swept[i].read_ns = cw_clock_now_ns(job->owner->config.clock);
		if (has_threads(job->swept[i].python))
			deliver_swept(job, &job->swept[i]);
	}
	end_sweep(job);
}

/* The argument of the child. */
struct sweep_order {
	struct cw_stack_target targets[CW_CAPTURE_MAX_ALL];
	size_t n;
};

static int sweep_main(int out_fd, const void *arg)
{
	const struct sweep_order *order = arg;

	return cw_python_take_all_child(out_fd, order->targets, order->n);
}

int cw_capture_sweep_child(int fd)
{
	return cw_child_run(fd, sweep_main);
}

static void start_sweep(struct cw_capture_job *job)
{
	struct sweep_order order = { .n = 0 };
	struct cw_child_config config = {
		.main = sweep_main,
		.job = cw_capture_sweep_child,
		.arg = &order,
		.arg_len = sizeof(order),
		.deadline_ms = share_ms(job, PYTHON_LIMIT_MS),
		.fn = on_swept,
		.user = job,
	};

	/* The child reads processes of one user. We put these first, in the order of their index.
	 */
	for (uint32_t i = 0; i < job->n_swept; i++) {
		struct swept s = job->swept[i];
		struct cw_node_process p;

		if (!cw_node_find(job->owner->config.node, s.target.pid, s.target.start_ticks,
				  &p) ||
		    p.is_dead)
			continue;
		s.rank = p.rank;
		job->swept[i] = job->swept[order.n];
		job->swept[order.n] = s;
		if (order.n == 0)
			/* The uid so far may be that of a process that has ended. */
			job->uid = p.uid;
		if (p.uid != job->uid)
			continue;
		order.targets[order.n++] =
			(struct cw_stack_target){ .pid = s.target.pid,
						  .start_ticks = s.target.start_ticks,
						  .uid = p.uid,
						  .gid = p.gid };
	}
	config.max_output = order.n * (CW_PYTHON_TAKE_MAX_OUTPUT + MAX_SWEPT_PROC);
	if (order.n == 0 || start_child(job, &config) < 0)
		end_sweep(job);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct cw_capture_job *job = arg;

	job->owner->stats.timed_out++;
	if (job->swept) {
		end_sweep(job);
		return;
	}
	if (job->is_asking_python)
		take_answer(job, cw_evidence_part("failed", "no answer in time"));
	finish(job);
}

/* ---- the queue ---- */

static void start_job(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	struct cw_node_process p;
	bool is_known = cw_node_find(c->config.node, job->target.pid, job->target.start_ticks, &p);

	job->is_running = true;
	c->stats.queued--;
	c->stats.running++;
	if (is_brief(job) &&
	    job->deadline_ns - cw_clock_now_ns(c->config.clock) > BRIEF_RUN_MS * CW_NS_PER_MS)
		set_deadline(job, BRIEF_RUN_MS);
	if (is_known) {
		job->rank = p.rank;
		job->uid = p.uid;
		job->is_gone = p.is_dead;
	} else {
		job->is_gone = true;
	}
	if (is_known && job->is_gone && !job->swept && start_core(job, &p))
		return;
	if (job->swept)
		start_sweep(job);
	else
		part_done(job);
}

/*
 * True if a starts before b. Captures for alerts start first. Users take turns, so that a job of
 * many ranks does not delay the captures of other users.
 */
static bool comes_before(const struct cw_capture *c, const struct cw_capture_job *a,
			 const struct cw_capture_job *b)
{
	bool a_is_next = a->uid > c->started_uid, b_is_next = b->uid > c->started_uid;

	if (is_brief(a) != is_brief(b))
		return is_brief(b);
	if (a_is_next != b_is_next)
		return a_is_next;
	return a->uid < b->uid; /* for the same user, the older capture stays first */
}

/* Returns the capture that starts next; NULL = none waits. */
static struct cw_capture_job *next_job(struct cw_capture *c)
{
	struct cw_capture_job *best = NULL;

	for (struct cw_capture_job *job = c->first; job; job = job->next)
		if (!job->is_running && !job->is_displaced && (!best || comes_before(c, job, best)))
			best = job;
	if (best)
		c->started_uid = best->uid;
	return best;
}

/*
 * Starts captures up to the limit. A capture may end while we start it, so we search the list again
 * for each one.
 */
static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct cw_capture *c = arg;

	while (c->stats.running < c->config.max_running && c->stats.queued > 0) {
		struct cw_capture_job *job = next_job(c);

		if (!job)
			return;
		start_job(job);
	}
}

/*
 * Makes room in the queue for a capture of uid. Returns false if the queue is full, or if this
 * user's share of it is full.
 */
static bool make_room(struct cw_capture *c, uid_t uid, uint32_t max)
{
	_cleanup_(freep) struct cw_quota_charge *charges =
		calloc(c->stats.queued + 1, sizeof(*charges));
	struct cw_capture_job *displaced;
	void *holder = NULL;
	size_t n = 0;

	if (!charges)
		return false;
	for (struct cw_capture_job *job = c->first; job; job = job->next) {
		if (job->is_running || job->is_displaced)
			continue;
		/*
		 * The list is in order of arrival, so the index serves as the time. Never remove a
		 * capture that an alert may need.
		 */
		charges[n] = (struct cw_quota_charge){ .uid = job->uid,
						       .is_pinned = !is_brief(job),
						       .since_ns = (int64_t)n,
						       .holder = job };
		n++;
	}
	switch (cw_quota_charge_for(uid, charges, n, max, &holder)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		displaced = holder;
		displaced->is_displaced = true;
		set_deadline(displaced, 0);
		return true;
	default:
		return false;
	}
}

/* Queues a capture. swept: the n processes of a sweep, which we take on success; NULL = none. */
static int enqueue(struct cw_capture *c, const struct cw_msg_evidence_target *target,
		   struct swept *swept, uint32_t n, uint32_t deadline_ms, cw_capture_fn fn,
		   void *user)
{
	/* End the capture after 95 % of its time. The rest is for the steps up to the callback. */
	uint32_t ms = deadline_ms - deadline_ms / 20;
	bool is_one_of_many = target->what & CW_EVIDENCE_BRIEF;
	uid_t uid = (uid_t)-1; /* stays -1 if the process is gone */
	struct cw_capture_job *job;
	struct cw_node_process p;

	if (cw_node_find(c->config.node, target->pid, target->start_ticks, &p))
		uid = p.uid;
	if (!make_room(c, uid,
		       is_one_of_many ? BRIEF_QUEUE_SHARE(c->config.max_queued)
				      : c->config.max_queued)) {
		c->stats.refused++;
		return -EAGAIN;
	}
	job = calloc(1, sizeof(*job));
	if (!job)
		return -ENOMEM;
	job->owner = c;
	job->target = *target;
	job->fn = fn;
	job->user = user;
	job->rank = -1;
	job->uid = uid;
	job->timer = evtimer_new(c->config.base, on_deadline, job);
	if (!job->timer) {
		job_free(job);
		return -ENOMEM;
	}
	job->swept = swept;
	job->n_swept = n;
	set_deadline(job, ms);
	job->link = c->last;
	*c->last = job;
	c->last = &job->next;
	c->stats.queued++;
	pump_soon(c);
	return 0;
}

int cw_capture_request(struct cw_capture *c, const struct cw_msg_evidence_target *target,
		       uint32_t deadline_ms, cw_capture_fn fn, void *user)
{
	return enqueue(c, target, NULL, 0, deadline_ms, fn, user);
}

int cw_capture_request_all(struct cw_capture *c, const struct cw_msg_evidence_target *targets,
			   uint32_t n, uint32_t deadline_ms, cw_capture_fn fn, void *user)
{
	_cleanup_(freep) struct swept *swept = calloc(n, sizeof(*swept));
	int r;

	if (!swept)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		swept[i] = (struct swept){ .target = targets[i], .rank = -1 };
	r = enqueue(c, &targets[0], swept, n, deadline_ms, fn, user);
	if (r == 0)
		(void)steal_ptr(&swept);
	return r;
}

void cw_capture_stats(const struct cw_capture *capture, struct cw_capture_stats *ret)
{
	*ret = capture->stats;
}

int cw_capture_new(const struct cw_capture_config *config, struct cw_capture **ret)
{
	struct cw_capture *c = calloc(1, sizeof(*c));
	struct cw_err err = { "" };
	int r;

	if (!c)
		return -ENOMEM;
	c->config = *config;
	c->last = &c->first;
	c->pump = evtimer_new(config->base, on_pump, c);
	if (cw_kernel_threads_new(&c->kernel, &err) < 0)
		log_notice("no BPF facts about kernel stacks and times off the CPU: %s", err.text);
	r = c->pump ? cw_children_new(config->base, &c->children) : -ENOMEM;
	if (r < 0) {
		cw_capture_free(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct cw_capture *cw_capture_free(struct cw_capture *c)
{
	if (!c)
		return NULL;
	while (c->first)
		job_free(c->first);
	c->children = cw_children_free(c->children);
	(void)cw_kernel_threads_free(c->kernel); /* always NULL */
	event_freep(&c->pump);
	free(c);
	return NULL;
}
