/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests for Python stacks that are waiting for an agent. Each request ends exactly once: by the
 * agent's answer, at its deadline, or when the agent disconnects. It never ends inside the call
 * that made it.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "daemon/node/node.h"
#include "daemon/process/process.h"

struct event_base;
struct cw_python_requests;

/*
 * Maximum number of open requests of all processes together. Only two captures run at a time, so
 * this is ample.
 */
#define CW_PYTHON_MAX_REQUESTS 64

/* Returns 0 or -ENOMEM. */
int cw_python_requests_new(struct event_base *base, struct cw_python_requests **ret);
/* Ends open requests without a callback. Takes NULL; returns NULL. */
struct cw_python_requests *cw_python_requests_free(struct cw_python_requests *reqs);

/* Like cw_node_python_stacks(), but also returns -EAGAIN if CW_PYTHON_MAX_REQUESTS are open. */
int cw_python_requests_ask(struct cw_python_requests *reqs, struct cw_process *p,
			   uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			   uint64_t *ret_handle);
void cw_python_requests_cancel(struct cw_python_requests *reqs, uint64_t handle);

/* Handles an answer of p's agent. Returns false if no request waits for it. */
bool cw_python_requests_answer(struct cw_python_requests *reqs, const struct cw_process *p,
			       const struct cw_msg_python_stacks_reply *reply);
/*
 * Call this when p's agent has disconnected. Its requests then fail in the next iteration of the
 * loop.
 */
void cw_python_requests_agent_gone(struct cw_python_requests *reqs, const struct cw_process *p);
