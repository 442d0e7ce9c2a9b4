/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of a capture, one after the other: /proc, then Python, then native stacks.
 *
 * Python comes before the native stacks because the agent's thread has to run to answer; /proc
 * comes first because it tells that a process is stopped, and then nobody would answer. Each part
 * has a share of the time left; a part that fails, or is cut off, leaves the others as they are.
 */
#include <errno.h>
#include <string.h>

#include "common/log.h"
#include "daemon/evidence/capture_private.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/evidence/procfacts.h"
#include "daemon/evidence/stack.h"
#include "daemon/evidence/stack_python.h"
#include "daemon/kernel/kernel_threads.h"
#include "daemon/node/node.h"

/* The proc part: 256 threads of about 180 bytes, and some kernel stacks. */
#define MAX_PROC_OUTPUT (96u << 10)
/* /proc answers in milliseconds or hangs; faulthandler in 50 ms or never. */
#define PROC_LIMIT_MS 2000
#define PYTHON_LIMIT_MS 3000
/* The interpreter's structures must hold still while faulthandler walks them (cpython#116008). */
#define PYTHON_MIN_IDLE_NS (2 * CW_NS_PER_S)
/* So many children that do not even die mean the node is sick: no more of them. */
#define MAX_ABANDONED 8u

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

static int start_child(struct cw_capture_job *job, const struct cw_child_config *config)
{
	struct cw_capture *c = job->owner;
	int r;

	if (cw_children_abandoned(c->children) >= MAX_ABANDONED)
		return -EBUSY;
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
	return r == -EBUSY ? "too many earlier captures hang in the kernel"
			   : "no process could be started";
}

/* ---- /proc ---- */

static int proc_main(int out_fd, const void *arg)
{
	const struct cw_capture_job *job = arg;
	json_t *json = cw_procfacts(job->target.pid, job->target.start_ticks, job->uid,
				    job->owner->kernel_text);

	return json && json_dumpfd(json, out_fd, JSON_COMPACT) == 0 ? 0 : 1;
}

static void on_proc_done(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;
	const char *state;

	job->child = NULL;
	count_end(job->owner, end);
	if (end == CW_CHILD_EXITED)
		job->proc = json_loadb(output, len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(job->proc)) {
		json_decref(job->proc);
		job->proc = cw_evidence_part("failed", "reading /proc did not end well");
	}
	state = json_string_value(json_object_get(job->proc, "state"));
	job->is_stopped = state && (*state == 'T' || *state == 't');
	cw_capture_step_done(job);
}

/* Microseconds, and nothing in it can hang: here, where the programs' descriptors are. */
static void read_kernel_side(struct cw_capture *c, pid_t pid)
{
	c->kernel_text = c->kernel ? malloc(CW_KERNEL_THREADS_MAX_BYTES) : NULL;
	if (c->kernel_text &&
	    cw_kernel_threads_read(c->kernel, pid, c->kernel_text, CW_KERNEL_THREADS_MAX_BYTES) < 0)
		c->kernel_text[0] = '\0';
}

static void step_proc(struct cw_capture_job *job)
{
	struct cw_child_config config = {
		.main = proc_main,
		.arg = job,
		.deadline_ms = share_ms(job, PROC_LIMIT_MS),
		.max_output = MAX_PROC_OUTPUT,
		.fn = on_proc_done,
		.user = job,
	};
	int r;

	if (job->is_gone) {
		job->proc = cw_evidence_part("absent",
					     "the process is gone, or is not registered here");
		cw_capture_step_done(job);
		return;
	}
	read_kernel_side(job->owner, job->target.pid);
	r = start_child(job, &config);
	free(job->owner->kernel_text); /* the child has its own */
	job->owner->kernel_text = NULL;
	if (r < 0) {
		job->proc = cw_evidence_part("failed", why_no_child(r));
		cw_capture_step_done(job);
	}
}

/* ---- Python ---- */

static void on_python(uint32_t status, const char *text, void *user)
{
	struct cw_capture_job *job = user;

	job->is_asking_python = false;
	job->python = cw_python_part(status, text);
	cw_capture_step_done(job);
}

/* NULL: may be asked. The agent's answer needs a process that runs and an interpreter that rests.
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
		return cw_evidence_part("refused",
					"the process is stopped: nobody there can answer");
	if (p.idle_ns < 0)
		return cw_evidence_part("refused", "not known whether the interpreter is running");
	if (p.idle_ns < PYTHON_MIN_IDLE_NS)
		return cw_evidence_part("refused", "the interpreter is running");
	return NULL;
}

static void step_python(struct cw_capture_job *job)
{
	int r;

	job->python = why_not_python(job);
	if (!job->python) {
		r = cw_node_python_stacks(job->owner->config.node, job->target.pid,
					  job->target.start_ticks, share_ms(job, PYTHON_LIMIT_MS),
					  on_python, job, &job->python_handle);
		job->is_asking_python = r == 0;
		if (r == -ENOTCONN)
			job->python = cw_evidence_part("failed", "the agent is not connected");
		else if (r < 0)
			job->python = cw_evidence_part("failed", "the agent cannot be asked");
	}
	if (job->python)
		cw_capture_step_done(job);
}

/* ---- native stacks ---- */

static int native_main(int out_fd, const void *arg)
{
	return cw_stack_child(out_fd, arg);
}

static void on_native_done(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct cw_capture_job *job = user;

	job->child = NULL;
	count_end(job->owner, end);
	job->native = cw_stack_read_output(output, len, end == CW_CHILD_EXITED);
	cw_capture_step_done(job);
}

static void step_native(struct cw_capture_job *job)
{
	int64_t ms = left_ms(job) * 9 / 10; /* leaves time to say what there is */
	struct cw_stack_target target = { .pid = job->target.pid,
					  .start_ticks = job->target.start_ticks };
	struct cw_child_config config = {
		.main = native_main,
		.arg = &target,
		.deadline_ms = ms > 1 ? (uint32_t)ms : 1,
		.max_output = CW_STACK_MAX_OUTPUT,
		.fn = on_native_done,
		.user = job,
	};
	struct cw_node_process p;
	int r;

	if (job->is_gone ||
	    !cw_node_find(job->owner->config.node, target.pid, target.start_ticks, &p) ||
	    p.is_dead) {
		job->native = cw_evidence_part("absent",
					       "the process is gone, or is not registered here");
		cw_capture_step_done(job);
		return;
	}
	target.uid = p.uid;
	target.gid = p.gid;
	r = start_child(job, &config);
	if (r < 0) {
		job->native = cw_evidence_part("failed", why_no_child(r));
		cw_capture_step_done(job);
	}
}

static const struct {
	uint32_t what;
	void (*run)(struct cw_capture_job *job);
} steps[] = {
	{ CW_EVIDENCE_PROC, step_proc },
	{ CW_EVIDENCE_PYTHON, step_python },
	{ CW_EVIDENCE_NATIVE, step_native },
};

bool cw_capture_step(struct cw_capture_job *job)
{
	while (job->step < sizeof(steps) / sizeof(steps[0])) {
		unsigned step = job->step++;

		if (!(job->target.what & steps[step].what))
			continue;
		steps[step].run(job);
		return true;
	}
	return false;
}
