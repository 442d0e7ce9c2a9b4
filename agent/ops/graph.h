/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL ops in CUDA graphs (docs/design/agent.md#cuda-graphs). If a program issues an op while it
 * captures the op's stream, the op runs each time the program launches the graph. The op becomes
 * part of a template, and only launches advance the counters of its communicator.
 *
 * We store one template per graph and communicator, a "part", in the record's replay table. An
 * executable graph leads to its parts. Clones and child graphs have parts of their own. Sometimes
 * we cannot follow a graph: the tables are full, we miss a launch, or we do not know how the
 * program made the graph. We then mark the communicator as uncounted. Its numbers mean nothing from
 * then on, and the analysis draws no conclusion from them.
 *
 * A launch is lock-free and allocates nothing. The functions that make, change and end graphs take
 * one lock, and never hold it across a call into CUDA.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cuda_abi.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"

#define CW_GRAPH_COMMS 12   /* communicators in one executable graph */
#define CW_GRAPH_EXECS 1024 /* living executable graphs with NCCL ops, a power of two */

/* Finds the driver's functions when a communicator becomes ready. Takes the loader's lock. */
void cw_graph_comm_ready(int c);

/*
 * Notes that the agent sees a capture of the program. The agent then also sees the program's other
 * calls about graphs.
 */
void cw_graph_capture_seen(void);

/*
 * Notes that the program captures into a graph that exists already. We cannot know how ops of such
 * a graph will run.
 */
void cw_graph_capture_into(void *graph);

/* Returns the id of the stream's active capture; 0 = there is none. Keeps errno. */
uint64_t cw_graph_capture_id(cudaStream_t stream);

/*
 * Notes that the capture with this id has ended and produced the graph. A failed capture produces
 * no graph, and the driver may reuse its handle. We therefore keep the ops known under the handle
 * only if this capture added them.
 */
void cw_graph_captured(void *graph, uint64_t id);

typedef CUresult (*cw_is_capturing_fn)(cudaStream_t stream, CUstreamCaptureStatus *status);

/* The driver's function; NULL = the driver has none. */
extern cw_is_capturing_fn cw_graph_is_capturing;

/* Returns whether CUDA would capture an op on this stream. */
static inline bool cw_graph_is_captured(cudaStream_t stream)
{
	cw_is_capturing_fn ask = __atomic_load_n(&cw_graph_is_capturing, __ATOMIC_ACQUIRE);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return ask && ask(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * Moves a captured op into the template. The op has its numbers already, which the function takes
 * back. Outside a group it also enqueues the "reached" write.
 */
void cw_graph_op(struct cw_op_call *call, const struct cw_op_desc *desc, struct cw_group *group);

/*
 * Handles the return of a captured op's call. A failed op leaves the template. Outside a group, a
 * successful op enqueues its "completed" write.
 */
void cw_graph_op_done(const struct cw_op_call *call, struct cw_group_comm *gc, bool ok);

/*
 * Do the work of cw_graph_op() and cw_graph_op_done() for all ops that a group captured on one
 * communicator.
 */
void cw_graph_group_launch(const struct cw_group_comm *gc);
void cw_graph_group_done(struct cw_group_comm *gc, bool ok);

/* Note a successful call of the program that makes, changes or copies a graph. */
void cw_graph_instantiated(void *exec, void *graph, bool can_launch_on_device);
void cw_graph_updated(void *exec, void *graph);
/* `to` is a clone of `from`, or has `from` as a child */
void cw_graph_copied(void *to, void *from);
void cw_graph_destroyed(void *graph);
void cw_graph_exec_destroyed(void *exec);
/* The program changed exec in a way that we cannot follow. */
void cw_graph_exec_unknown(void *exec);
/*
 * Notes that the program uses a conditional graph node. The body of such a node runs without an
 * instantiation that we see.
 */
void cw_graph_has_condition(void);

/* One launch of a graph, for one of the graph's communicators. */
struct cw_graph_at {
	uint16_t part;
	uint16_t slot;
	uint16_t comm;
	uint64_t ring_ticket, comm_ticket, op_index;
};

struct cw_graph_launch {
	unsigned count;
	struct cw_graph_at at[CW_GRAPH_COMMS];
};

/*
 * Call cw_graph_launch_enter() before a launch and cw_graph_launch_leave() after it.
 * cw_graph_launch_enter() returns false if the graph holds no NCCL op. The caller must then not
 * call cw_graph_launch_leave().
 */
bool cw_graph_launch_enter(struct cw_graph_launch *launch, void *exec, cudaStream_t stream);
void cw_graph_launch_leave(struct cw_graph_launch *launch, cudaStream_t stream, bool ok);

/* Returns the parts of an executable graph; NULL = it has none. Lock-free. */
const uint16_t *cw_graph_parts_of(void *exec, unsigned *ret_count);

/*
 * Returns the number of entries that do not stop a search in the table of executable graphs. For
 * tests.
 */
unsigned cw_graph_execs_used(void);
