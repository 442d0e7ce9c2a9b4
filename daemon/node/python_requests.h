/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pending requests for Python stacks. Each request ends exactly once: by the agent's answer, at its
 * deadline, or because the agent disconnected. It never ends inside the call that made it.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <stdint.h>

#include "daemon/node/node.h"
#include "daemon/process/process.h"

struct event_base;
struct cw_python_requests;

/* The limit of open requests of all processes together. Captures run two at a time. */
#define CW_PYTHON_MAX_REQUESTS 64

/* 0 or -ENOMEM. */
int cw_python_requests_new(struct event_base *base, struct cw_python_requests **ret);
/* Takes NULL; returns NULL. Open requests end without a callback. */
struct cw_python_requests *cw_python_requests_free(struct cw_python_requests *reqs);

/* Like cw_node_python_stacks(). Also returns -EAGAIN if CW_PYTHON_MAX_REQUESTS are open. */
int cw_python_requests_ask(struct cw_python_requests *reqs, struct cw_process *p,
			   uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			   uint64_t *ret_handle);
void cw_python_requests_cancel(struct cw_python_requests *reqs, uint64_t handle);

/* Handles the answer of p's agent. False if no request waits for it. */
bool cw_python_requests_answer(struct cw_python_requests *reqs, const struct cw_process *p,
			       const struct cw_msg_python_stacks_reply *reply);
/* Call it when p's agent has disconnected. Its requests fail at the next iteration of the loop. */
void cw_python_requests_agent_gone(struct cw_python_requests *reqs, const struct cw_process *p);
