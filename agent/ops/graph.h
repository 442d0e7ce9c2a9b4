/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL ops in CUDA graphs (docs/design/progress.md#cuda-graphs). An op that is issued while its
 * stream is being captured runs when the graph is launched, as often as it is launched: it becomes
 * part of a template, and only launches move the numbers of its communicator.
 *
 * A template is kept per graph and communicator, a "part", in the record's replay table. Executable
 * graphs lead to parts; clones and children of graphs have parts of their own. Whatever cannot be
 * followed (tables full, a launch nobody sees, a graph made in a way not known here) marks the
 * communicator as uncounted: its numbers say nothing from then on, and nobody concludes from them.
 *
 * Launching is lock-free and allocates nothing; what makes, changes and ends graphs takes one lock,
 * never across a call into CUDA.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/base/cuda_abi.h"
#include "agent/ops/group.h"
#include "agent/ops/ops.h"

#define CW_GRAPH_COMMS 12   /* communicators in one executable graph */
#define CW_GRAPH_EXECS 1024 /* living executable graphs with NCCL ops, a power of two */

/* A communicator became ready: finds the driver's functions. Takes the loader's lock. */
void cw_graph_comm_ready(int c);

/* The program's captures are seen by the agent: its other calls about graphs are, too. */
void cw_graph_capture_seen(void);

/* Ops captured into a graph that somebody else made may run in ways not known here. */
void cw_graph_capture_into(void *graph);

/* Of the capture that the stream is in; 0 = none that is under way. Keeps errno. */
uint64_t cw_graph_capture_id(cudaStream_t stream);

/*
 * The graph is what this capture came to. A capture that fails leaves no graph, and the driver
 * gives its handle again: ops known under it are of this graph only if this capture put them there.
 */
void cw_graph_captured(void *graph, uint64_t id);

typedef CUresult (*cw_is_capturing_fn)(cudaStream_t stream, CUstreamCaptureStatus *status);

extern cw_is_capturing_fn cw_graph_is_capturing; /* the driver's; NULL = there is none */

/* True when an op on this stream would be captured. */
static inline bool cw_graph_is_captured(cudaStream_t stream)
{
	cw_is_capturing_fn ask = __atomic_load_n(&cw_graph_is_capturing, __ATOMIC_ACQUIRE);
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return ask && ask(stream, &status) == CUDA_SUCCESS &&
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/*
 * The op, numbered already, is captured: takes its numbers back, adds it to the template, enqueues
 * "reached" for an op outside of groups.
 */
void cw_graph_op(struct cw_op_call *call, const struct cw_op_desc *desc, struct cw_group *group);

/* Its call came back. */
void cw_graph_op_done(const struct cw_op_call *call, struct cw_group_comm *gc, bool ok);

/* The same for what a group captured on one communicator. */
void cw_graph_group_launch(const struct cw_group_comm *gc);
void cw_graph_group_done(struct cw_group_comm *gc, bool ok);

/* What the program did with its graphs, successfully. */
void cw_graph_instantiated(void *exec, void *graph, bool can_launch_on_device);
void cw_graph_updated(void *exec, void *graph);
void cw_graph_copied(void *to, void *from); /* a clone, or a child became part of its parent */
void cw_graph_destroyed(void *graph);
void cw_graph_exec_destroyed(void *exec);
void cw_graph_exec_unknown(void *exec); /* changed in a way not known here */
void cw_graph_has_condition(void);      /* some graph has bodies that nobody instantiates */

/* A launch on one of the graph's communicators. */
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

/* Before and after the launch. False: nothing of NCCL in it, leave must not be called. */
bool cw_graph_launch_enter(struct cw_graph_launch *launch, void *exec, cudaStream_t stream);
void cw_graph_launch_leave(struct cw_graph_launch *launch, cudaStream_t stream, bool ok);

/* The parts of an executable graph; NULL = none. Lock-free. */
const uint16_t *cw_graph_parts_of(void *exec, unsigned *ret_count);

/* Entries of the table of executable graphs that a search does not stop at; for tests. */
unsigned cw_graph_execs_used(void);
