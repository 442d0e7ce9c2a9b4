/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's proxy events: the steps of each network connection (agent/record/connections.h), and the
 * handles that lead from a connection to the recorded call.
 *
 * The handle of a call is a number that no pointer equals. NCCL passes this handle from the user's
 * call to the launch, and from the launch to the proxy.
 *
 * NCCL calls these functions in its proxy threads, and in other threads if the comment says "any
 * thread". The functions take no lock, do not allocate, make no system call and keep errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/hooks/profiler_abi.h"

/*
 * Returns the handle of a recorded call of communicator c. op_index: 0 = not recorded, or unknown.
 * Any thread.
 */
void *cw_profiler_call(int c, uint64_t op_index, bool is_p2p, bool is_captured);

/*
 * Returns the handle of a call's launch. It is the handle of the call; for a captured call it also
 * has the number of the replay. Returns NULL if `call` is not the handle of a call. Any thread.
 */
void *cw_profiler_launch(void *call);

/*
 * Finds the recorded call of communicator c that NCCL is launching in a wrapper, by its kind and
 * buffers. Returns the call's handle. For versions before 5, which report no calls.
 */
void *cw_profiler_find_call(int c, unsigned kind, const void *send, const void *recv);

/* Handles the start of a ProxyOp. Returns its handle; NULL if we do not record it. */
void *cw_profiler_proxy_op(const void *context, void *parent, int rank,
			   const struct cw_nccl_proxy_op *op, bool is_detailed);

/* Handles the start of a ProxyStep. Returns its handle; NULL if we do not record it. */
void *cw_profiler_proxy_step(void *parent, const struct cw_nccl_proxy_step *step);

/*
 * Handle a state or the stop of an event. Return false if the handle belongs to no proxy event.
 * args: NULL before version 4.
 */
bool cw_profiler_proxy_state(void *handle, int state, const struct cw_nccl_step_args *args);
bool cw_profiler_proxy_stop(void *handle);

/* Handles the end of communicator c; c < 0: of the last communicator. */
void cw_profiler_proxy_forget(int c);
