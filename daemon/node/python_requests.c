/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer has the id of its request. We find the request by this id, and then compare the
 * process, because an agent can guess ids. A timer ends a request that gets no answer.
 */
#include "daemon/node/python_requests.h"

#include <errno.h>
#include <stdlib.h>

#include <event2/event.h>
#include <utlist.h>

#include "daemon/agents/agents.h"
#include "loop/events.h"

struct request {
	struct cw_python_requests *reqs;
	/* Only for comparison, never dereferenced; NULL = its agent has disconnected. */
	const struct cw_process *process;
	uint64_t id;
	cw_node_python_fn fn;
	void *user;
	struct event *timer;
	struct request *prev, *next;
};

struct cw_python_requests {
	struct event_base *base;
	struct request *open;
	uint64_t last_id;
	unsigned n;
};

static void request_free(struct request *req)
{
	DL_DELETE(req->reqs->open, req);
	req->reqs->n--;
	event_freep(&req->timer);
	free(req);
}

static void finish(struct request *req, uint32_t status, const char *text)
{
	cw_node_python_fn fn = req->fn;
	void *user = req->user;

	request_free(req);
	fn(status, text, user);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	finish(arg, CW_PYTHON_FAILED, "");
}

static struct request *request_find(struct cw_python_requests *reqs, uint64_t id)
{
	struct request *req;

	DL_FOREACH (reqs->open, req)
		if (req->id == id)
			return req;
	return NULL;
}

int cw_python_requests_new(struct event_base *base, struct cw_python_requests **ret)
{
	struct cw_python_requests *reqs = calloc(1, sizeof(*reqs));

	if (!reqs)
		return -ENOMEM;
	reqs->base = base;
	*ret = reqs;
	return 0;
}

struct cw_python_requests *cw_python_requests_free(struct cw_python_requests *reqs)
{
	if (!reqs)
		return NULL;
	while (reqs->open)
		request_free(reqs->open);
	free(reqs);
	return NULL;
}

static int ask(const struct cw_process *p, uint64_t id, uint32_t deadline_ms)
{
	struct cw_message msg = { .type = CW_MSG_PYTHON_STACKS_REQUEST,
				  .python_stacks_request = { .id = id } };

	cw_agent_conn_expect_answer(p->conn, deadline_ms);
	return cw_agent_conn_send(p->conn, &msg);
}

int cw_python_requests_ask(struct cw_python_requests *reqs, struct cw_process *p,
			   uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			   uint64_t *ret_handle)
{
	struct timeval deadline = { .tv_sec = deadline_ms / 1000,
				    .tv_usec = deadline_ms % 1000 * 1000 };
	struct request *req;
	int r;

	if (!p->conn)
		return -ENOTCONN;
	if (reqs->n >= CW_PYTHON_MAX_REQUESTS)
		return -EAGAIN;
	req = calloc(1, sizeof(*req));
	if (!req)
		return -ENOMEM;
	req->reqs = reqs;
	req->process = p;
	req->id = ++reqs->last_id;
	req->fn = fn;
	req->user = user;
	DL_APPEND(reqs->open, req);
	reqs->n++;
	req->timer = evtimer_new(reqs->base, on_timer, req);
	r = req->timer && event_add(req->timer, &deadline) == 0 ? ask(p, req->id, deadline_ms)
								: -ENOMEM;
	if (r < 0) {
		request_free(req);
		return r;
	}
	*ret_handle = req->id;
	return 0;
}

void cw_python_requests_cancel(struct cw_python_requests *reqs, uint64_t handle)
{
	struct request *req = request_find(reqs, handle);

	if (req)
		request_free(req);
}

bool cw_python_requests_answer(struct cw_python_requests *reqs, const struct cw_process *p,
			       const struct cw_msg_python_stacks_reply *reply)
{
	struct request *req = request_find(reqs, reply->id);

	/* An agent may guess ids, so accept an answer only from the process that we asked. */
	if (!req || req->process != p)
		return false;
	finish(req, reply->status <= CW_PYTHON_FAILED ? reply->status : CW_PYTHON_FAILED,
	       reply->text);
	return true;
}

void cw_python_requests_agent_gone(struct cw_python_requests *reqs, const struct cw_process *p)
{
	struct request *req;

	DL_FOREACH (reqs->open, req) {
		if (req->process != p)
			continue;
		req->process = NULL;
		event_active(req->timer, EV_TIMEOUT, 0);
	}
}
