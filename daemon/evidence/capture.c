/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures wait in one queue; of those that wait, the ones an alert may wait for go before those of
 * all the other ranks. Users share its places (identity/shares.h) and take turns. At its deadline a
 * capture ends with what there is, and children that still run are killed behind it.
 */
#include "daemon/evidence/capture.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/evidence/capture_private.h"
#include "daemon/evidence/evidence_text.h"
#include "daemon/kernel/kernel_threads.h"
#include "daemon/node/node.h"
#include "identity/shares.h"
#include "leader/incident/evidence_brief.h"

#define MAX_JSON_BYTES (384u << 10) /* a message carries CW_MSG_MAX_STRING */
/* One of many ranks: whoever takes longer than this is left with what there is. */
#define BRIEF_RUN_MS 8000u
/* They leave this share of the queue, a quarter, to those that matter more. */
#define BRIEF_QUEUE_SHARE(max) ((max) - (max) / 4)

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
	if (job->is_asking_python)
		cw_node_python_cancel(c->config.node, job->python_handle);
	if (job->timer)
		event_free(job->timer);
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
	free(job);
}

/* The part as it is, "no time left" when it was asked for and is missing, null when not asked for.
 */
static json_t *take_part(struct cw_capture_job *job, json_t **part, uint32_t what)
{
	if (*part)
		return steal_ptr(part);
	if (!(job->target.what & what))
		return json_null();
	if (job->is_displaced)
		return cw_evidence_part("failed",
					"too much was asked for of this user's processes");
	return cw_evidence_part("failed",
				job->is_running ? "no time left" : "no time left in the queue");
}

static json_t *make_document(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	char taken[32], ticks[24];

	(void)cw_wall_format(cw_clock_wall_ns(c->config.clock), taken);
	(void)snprintf(ticks, sizeof(ticks), "%" PRIu64, job->target.start_ticks);
	return json_pack("{s:s, s:s, s:i, s:s, s:i, s:s, s:o, s:o, s:o}", "schema",
			 "collwatch.evidence/1", "host", c->config.node_name, "pid",
			 (int)job->target.pid, "start_ticks", ticks, "rank", (int)job->rank,
			 "taken", taken, "proc", take_part(job, &job->proc, CW_EVIDENCE_PROC),
			 "native", take_part(job, &job->native, CW_EVIDENCE_NATIVE), "python",
			 take_part(job, &job->python, CW_EVIDENCE_PYTHON));
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

static void finish(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	_cleanup_(freep) char *text = NULL;
	json_t *doc = make_document(job);

	if (doc && is_brief(job))
		cw_evidence_shorten(doc);
	if (json_dumpb(doc, NULL, 0, JSON_COMPACT) > MAX_JSON_BYTES)
		(void)json_object_set_new(doc, "native",
					  cw_evidence_part("failed", "too large to send"));
	text = doc ? json_dumps(doc, JSON_COMPACT) : NULL;
	if (!doc || has_failed(doc))
		c->stats.failed++;
	else
		c->stats.done++;
	json_decref(doc);
	/* Out of memory: an empty object is the least that can be said. */
	job->fn(&job->target, text ? text : "{}", job->user);
	job_free(job);
	pump_soon(c);
}

void cw_capture_step_done(struct cw_capture_job *job)
{
	if (!cw_capture_step(job))
		finish(job);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct cw_capture_job *job = arg;

	job->owner->stats.timed_out++;
	finish(job);
}

static void start_job(struct cw_capture_job *job)
{
	struct cw_capture *c = job->owner;
	struct cw_node_process p;

	job->is_running = true;
	c->stats.queued--;
	c->stats.running++;
	if (is_brief(job) &&
	    job->deadline_ns - cw_clock_now_ns(c->config.clock) > BRIEF_RUN_MS * CW_NS_PER_MS)
		set_deadline(job, BRIEF_RUN_MS);
	if (cw_node_find(c->config.node, job->target.pid, job->target.start_ticks, &p)) {
		job->rank = p.rank;
		job->uid = p.uid;
		job->is_gone = p.is_dead;
	} else {
		job->is_gone = true;
	}
	cw_capture_step_done(job);
}

/* Users take turns, so that a job of many ranks does not keep the others' waiting. */
static bool comes_before(const struct cw_capture *c, const struct cw_capture_job *a,
			 const struct cw_capture_job *b)
{
	bool a_is_next = a->uid > c->started_uid, b_is_next = b->uid > c->started_uid;

	if (is_brief(a) != is_brief(b))
		return is_brief(b);
	if (a_is_next != b_is_next)
		return a_is_next;
	return a->uid < b->uid; /* of one user, in order of arrival */
}

/* One that is not of many, else one that is. */
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

/* Starts what may start. A job may end within its start, so the list is looked at anew each time.
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

/* False: the queue is full, or this user's share of it. */
static bool make_room(struct cw_capture *c, uid_t uid, uint32_t max)
{
	_cleanup_(freep) struct cw_share_place *places =
		calloc(c->stats.queued + 1, sizeof(*places));
	struct cw_capture_job *displaced;
	void *holder = NULL;
	size_t n = 0;

	if (!places)
		return false;
	for (struct cw_capture_job *job = c->first; job; job = job->next) {
		if (job->is_running || job->is_displaced)
			continue;
		/* In order of arrival; those that an alert may wait for stay. */
		places[n] = (struct cw_share_place){ .uid = job->uid,
						     .is_pinned = !is_brief(job),
						     .since_ns = (int64_t)n,
						     .holder = job };
		n++;
	}
	switch (cw_share_place_for(uid, places, n, max, &holder)) {
	case CW_SHARE_ADMIT:
		return true;
	case CW_SHARE_DISPLACE:
		displaced = holder;
		displaced->is_displaced = true;
		set_deadline(displaced, 0);
		return true;
	default:
		return false;
	}
}

int cw_capture_request(struct cw_capture *c, const struct cw_msg_evidence_target *target,
		       uint32_t deadline_ms, cw_capture_fn fn, void *user)
{
	/* A twentieth early, for what comes after it on the way to the callback. */
	uint32_t ms = deadline_ms - deadline_ms / 20;
	bool is_one_of_many = target->what & CW_EVIDENCE_BRIEF;
	uid_t uid = (uid_t)-1; /* of a process that is not there any more */
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
	set_deadline(job, ms);
	job->link = c->last;
	*c->last = job;
	c->last = &job->next;
	c->stats.queued++;
	pump_soon(c);
	return 0;
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
		log_notice("kernel stacks and times without processor are not seen by BPF: %s",
			   err.text);
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
	free(c->kernel_text);
	if (c->pump)
		event_free(c->pump);
	free(c);
	return NULL;
}
