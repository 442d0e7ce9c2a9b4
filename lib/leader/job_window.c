/* SPDX-License-Identifier: Apache-2.0 */
/* The windows of a job: the last ops of suspects. We drop a window when it is no longer valid. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "leader/job.h"
#include "proto/ages.h"

static void drop(struct cw_job *job, struct cw_job_window *w)
{
	DL_DELETE(job->windows, w);
	job->n_window_ops -= w->n_ops;
	if (w->kind == CW_WINDOW_PAST)
		job->n_past_ops -= w->n_ops;
	free(w->node);
	free(w->ops);
	free(w);
}

/*
 * The member that a window belongs to. A process with several devices has several ranks in a comm,
 * so the comm rank is part of the identity.
 */
struct whose {
	const char *node;
	int32_t pid, comm_rank;
	uint64_t start_ticks, comm_id;
	uint32_t instance;
};

static bool is_of(const struct cw_job_window *w, uint32_t kind, const struct whose *whose)
{
	return w->kind == kind && w->pid == whose->pid && w->start_ticks == whose->start_ticks &&
	       w->comm_id == whose->comm_id && w->instance == whose->instance &&
	       w->comm_rank == whose->comm_rank && !strcmp(w->node, whose->node);
}

/* Adds one window. numbers: for each call stack of the reply, its number in the job. */
static int add(struct cw_job *job, const char *node, const struct cw_msg_window *from,
	       const uint32_t *numbers, uint32_t n_numbers, enum cw_window_kind kind,
	       int64_t now_ns)
{
	struct cw_job_window *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->kind = kind;
	w->comm_id = from->comm_id;
	w->instance = from->instance;
	w->comm_rank = from->comm_rank;
	w->pid = from->pid;
	w->start_ticks = from->start_ticks;
	w->lost = from->lost;
	w->read_ns = now_ns;
	w->node = strdup(node);
	w->ops = calloc(from->n_ops ? from->n_ops : 1, sizeof(*w->ops));
	if (!w->node || !w->ops) {
		free(w->node);
		free(w->ops);
		free(w);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < from->n_ops; i++) {
		uint32_t stack = from->ops[i].stack;

		w->ops[i] = cw_ages_to_op(&from->ops[i], now_ns);
		w->ops[i].stack = stack && stack <= n_numbers ? numbers[stack - 1] : 0;
	}
	w->n_ops = from->n_ops;
	job->n_window_ops += w->n_ops;
	if (w->kind == CW_WINDOW_PAST)
		job->n_past_ops += w->n_ops;
	DL_APPEND(job->windows, w);
	return 0;
}

int cw_job_window_add(struct cw_job *job, const char *node, const struct cw_msg_window_reply *reply,
		      enum cw_window_kind kind, int64_t now_ns)
{
	/* per call stack of the reply: its number in the job, while the job has a window */
	_cleanup_(freep) uint32_t *numbers = calloc(reply->n_stacks + 1, sizeof(*numbers));
	struct cw_job_window *w, *tmp;
	int r = numbers ? 0 : -ENOMEM;

	if (!job->windows)
		cw_text_set_clear(&job->stacks);
	for (uint32_t i = 0; i < reply->n_stacks && r == 0; i++)
		r = cw_text_set_add(&job->stacks, reply->stacks[i], &numbers[i]);
	for (uint32_t i = 0; i < reply->n_windows && r >= 0; i++) {
		const struct cw_msg_window *from = &reply->windows[i];
		const struct whose whose = { .node = node,
					     .pid = from->pid,
					     .comm_rank = from->comm_rank,
					     .start_ticks = from->start_ticks,
					     .comm_id = from->comm_id,
					     .instance = from->instance };

		DL_FOREACH_SAFE (job->windows, w, tmp)
			if (is_of(w, kind, &whose))
				drop(job, w);
		if (job->n_window_ops + from->n_ops <= CW_JOB_MAX_WINDOW_OPS &&
		    (kind != CW_WINDOW_PAST ||
		     job->n_past_ops + from->n_ops <= CW_JOB_MAX_PAST_OPS))
			r = add(job, node, from, numbers, reply->n_stacks, kind, now_ns);
		else if (job->windows_over_limit)
			++*job->windows_over_limit;
	}
	return r;
}

const struct cw_job_window *cw_job_window(struct cw_job *job, const char *node,
					  const struct cw_msg_rank *rank,
					  const struct cw_msg_member *member,
					  enum cw_window_kind kind, int64_t now_ns)
{
	const struct whose whose = { .node = node,
				     .pid = rank->pid,
				     .comm_rank = member->comm_rank,
				     .start_ticks = rank->start_ticks,
				     .comm_id = member->comm_id,
				     .instance = member->instance };
	struct cw_job_window *w;

	DL_FOREACH (job->windows, w) {
		if (!is_of(w, kind, &whose))
			continue;
		if (kind == CW_WINDOW_PAST)
			return w;
		if (!w->has_marks) {
			w->has_marks = true;
			w->op_index = member->op_index;
			w->returned = member->coll_returned;
			w->completed = member->coll_completed;
		}
		if ((w->op_index == member->op_index && w->returned == member->coll_returned &&
		     w->completed == member->coll_completed) ||
		    now_ns - w->read_ns < CW_JOB_WINDOW_FRESH_NS)
			return w;
		drop(job, w);
		return NULL;
	}
	return NULL;
}
