/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the windows before it reads them, and divides the reply's capacity among them. A window
 * that we cannot read stays in the reply, but empty. An empty window shows the leader that the
 * communicator exists.
 */
#include "digest/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "digest/window_stacks.h"
#include "proto/ages.h"
#include "proto/op_range.h"

/* Fewer ops per window would show too little. Rather than fewer ops, we then send fewer windows. */
#define MIN_WINDOW_OPS 8u

static bool is_wanted(const struct cw_msg_window_request *request, uint64_t comm_id)
{
	for (uint32_t i = 0; i < request->n_comm_ids; i++)
		if (request->comm_ids[i] == comm_id)
			return true;
	return false;
}

static uint32_t count_windows(const struct cw_digest_rank *ranks, uint32_t n_ranks,
			      const struct cw_msg_window_request *request)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_ranks; i++) {
		const struct cw_record_comm *comms;
		size_t n_comms;

		comms = cw_record_comms(ranks[i].record, &n_comms);
		for (size_t k = 0; k < n_comms; k++)
			n += is_wanted(request, comms[k].entry.comm_id);
	}
	return n;
}

struct collection {
	const struct cw_msg_window_request *request;
	const struct cw_window_time *time; /* NULL = no deadline */
	uint32_t max_windows, max_ops;
	struct cw_window_stacks stacks;
};

static int read_window(struct collection *c, const struct cw_digest_rank *p,
		       const struct cw_record_comm *comm, struct cw_msg_window *ret)
{
	const struct cw_msg_window_request *request = c->request;
	uint32_t max_ops = c->max_ops;
	uint32_t max_read = request->to_seq ? CW_MSG_MAX_WINDOW_OPS : max_ops;
	_cleanup_(freep) struct cw_record_op *read = calloc(max_read, sizeof(*read));
	_cleanup_(freep) struct cw_msg_op *ops = NULL;
	bool has_time = !c->time || !c->time->is_over(c->time->user);
	struct cw_msg_op *shrunk;
	uint64_t lost = 0;
	size_t n = 0;
	int r;

	if (!read)
		return -ENOMEM;
	/* An empty window tells the leader that we could not read the ops. */
	if (!has_time || cw_record_window(p->record, comm, read, max_read, &n, &lost) < 0) {
		n = 0;
		lost = comm->entry.op_index;
	}
	ops = calloc(n ? n : 1, sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		ops[i] = cw_ages_of_op(&read[i], p->now_ns);
	if (request->to_seq) {
		n = cw_op_range_select(ops, n, request->from_seq, request->to_seq, max_ops);
		lost = n ? ops[0].op_index - 1 : comm->entry.op_index;
		/* Return unused memory. If realloc() fails, the array is still valid. */
		shrunk = realloc(ops, (n ? n : 1) * sizeof(*ops));
		ops = shrunk ? shrunk : ops;
	}
	r = cw_window_stacks_of(&c->stacks, p->record, ops, n);
	if (r < 0)
		return r;
	*ret = (struct cw_msg_window){
		.comm_id = comm->entry.comm_id,
		.instance = comm->entry.instance,
		.pid = p->pid,
		.start_ticks = p->start_ticks,
		.comm_rank = comm->entry.comm_rank,
		.ops = steal_ptr(&ops),
		.n_ops = (uint32_t)n,
		.lost = lost,
	};
	return 0;
}

static int read_rank(struct collection *c, const struct cw_digest_rank *p,
		     struct cw_msg_window_reply *reply)
{
	const struct cw_record_comm *comms;
	size_t n_comms;

	comms = cw_record_comms(p->record, &n_comms);
	for (size_t i = 0; i < n_comms && reply->n_windows < c->max_windows; i++) {
		int r;

		if (!is_wanted(c->request, comms[i].entry.comm_id))
			continue;
		r = read_window(c, p, &comms[i], &reply->windows[reply->n_windows]);
		if (r < 0)
			return r;
		reply->n_windows++;
	}
	return 0;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

int cw_window_collect_within(const struct cw_digest_rank *ranks, uint32_t n_ranks,
			     const struct cw_msg_window_request *request,
			     const struct cw_window_time *time, struct cw_msg_window_reply *ret)
{
	struct cw_msg_window_reply reply = { .id = request->id, .job_hash = request->job_hash };
	uint32_t n = count_windows(ranks, n_ranks, request);
	uint32_t max_windows =
		min_u32(n, min_u32(CW_MSG_MAX_WINDOWS, CW_MSG_MAX_REPLY_OPS / MIN_WINDOW_OPS));
	uint32_t max_ops = min_u32(request->max_ops, CW_MSG_MAX_WINDOW_OPS);
	struct collection c = { .request = request, .time = time };
	int r = 0;

	if (max_windows > 0) {
		max_ops = min_u32(max_ops, CW_MSG_MAX_REPLY_OPS / max_windows);
		reply.windows = calloc(max_windows, sizeof(*reply.windows));
		if (!reply.windows)
			return -ENOMEM;
	}
	if (max_ops == 0)
		max_ops = 1;
	c.max_windows = max_windows;
	c.max_ops = max_ops;
	cw_window_stacks_init(&c.stacks);
	for (uint32_t i = 0; i < n_ranks && r == 0; i++)
		r = read_rank(&c, &ranks[i], &reply);
	reply.stacks = c.stacks.texts.texts;
	reply.n_stacks = c.stacks.texts.n;
	if (r < 0) {
		cw_window_fini(&reply);
		return r;
	}
	*ret = reply;
	return 0;
}

int cw_window_collect(const struct cw_digest_rank *ranks, uint32_t n_ranks,
		      const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret)
{
	return cw_window_collect_within(ranks, n_ranks, request, NULL, ret);
}

void cw_window_fini(struct cw_msg_window_reply *reply)
{
	for (uint32_t i = 0; i < reply->n_windows; i++)
		free(reply->windows[i].ops);
	free(reply->windows);
	for (uint32_t i = 0; i < reply->n_stacks; i++)
		free((char *)(uintptr_t)reply->stacks[i]);
	free(reply->stacks);
	*reply = (struct cw_msg_window_reply){ 0 };
}
