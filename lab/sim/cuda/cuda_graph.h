/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of the simulated driver, as capture builds it and executable graphs copy it. */
#pragma once

#include "lab/sim/cuda/cuda_sim.h"

struct CUgraph_st {
	struct CUgraph_st *next;
	struct sim_nodes *nodes; /* owned; its items' references, too */
	size_t room;
	/* While it is captured. */
	bool is_capturing, is_spoilt, is_given; /* given: not made by the capture */
	CUstreamCaptureMode mode;
	cuuint64_t id;
	struct CUstream_st *origin;
	pthread_t thread;
};

/* All there are. Under the lock, as all that follows. */
extern struct CUgraph_st *sim_graphs;

/* NULL = out of memory. */
struct CUgraph_st *sim_graph_new(void);
void sim_graph_free(struct CUgraph_st *graph);
/* Whether the handle is that of a graph. */
bool sim_graph_exists(const struct CUgraph_st *graph);
/* Adds a copy of the item, and takes its references unless it fails. */
CUresult sim_graph_add(struct CUgraph_st *g, const struct sim_item *item);
