/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's proxy events: the steps of each network connection (agent/record/connections.h), and the
 * handles that lead from a connection to the recorded call.
 *
 * The handle of a call is a number that no pointer equals. NCCL passes it from the user's call to
 * the launch, and from the launch to the proxy.
 *
 * NCCL calls these functions in its proxy threads, and where noted in others. They take no lock, do
 * not allocate, make no system call and keep errno.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/hooks/profiler_abi.h"

/*
 * The handle of a recorded call of communicator c. op_index: 0 = not recorded, or unknown. Any
 * thread.
 */
void *cw_profiler_call(int c, uint64_t op_index, bool is_p2p, bool is_captured);

/*
 * The handle of a call's launch: the call's, but a launch of a captured call also has the number of
 * the replay. Returns NULL if call is no handle of a call. Any thread.
 */
void *cw_profiler_launch(void *call);

/*
 * Finds the recorded call of communicator c that NCCL launches now in a wrapper, by its kind and
 * buffers, and returns its handle. The versions before 5 report no calls.
 */
void *cw_profiler_find_call(int c, unsigned kind, const void *send, const void *recv);

/* The start of a ProxyOp. Returns its handle; NULL if we do not record it. */
void *cw_profiler_proxy_op(const void *context, void *parent, int rank,
			   const struct cw_nccl_proxy_op *op, bool is_detailed);

/* The start of a ProxyStep. Returns its handle; NULL if we do not record it. */
void *cw_profiler_proxy_step(void *parent, const struct cw_nccl_proxy_step *step);

/*
 * A state or the stop of an event. They return false if the handle belongs to no proxy event. args:
 * NULL before version 4.
 */
bool cw_profiler_proxy_state(void *handle, int state, const struct cw_nccl_step_args *args);
bool cw_profiler_proxy_stop(void *handle);

/* A communicator ends; c < 0: the last one. */
void cw_profiler_proxy_forget(int c);
