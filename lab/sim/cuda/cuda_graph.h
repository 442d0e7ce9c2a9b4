/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of the simulated driver: capture builds it, and executable graphs copy it. */
#pragma once

#include "lab/sim/cuda/cuda_sim.h"

struct CUgraph_st {
	struct CUgraph_st *next;
	struct sim_nodes *nodes; /* owned, as are its items' references */
	size_t room;
	/* During its capture. */
	bool is_capturing, is_spoilt, is_given; /* given: exists without the capture */
	CUstreamCaptureMode mode;
	cuuint64_t id;
	struct CUstream_st *origin;
	pthread_t thread;
};

/* All graphs. Needs the lock, like everything below. */
extern struct CUgraph_st *sim_graphs;

/* NULL = out of memory. */
struct CUgraph_st *sim_graph_new(void);
void sim_graph_free(struct CUgraph_st *graph);
/* True if the handle is a graph's. */
bool sim_graph_exists(const struct CUgraph_st *graph);
/* Adds a copy of the item, and consumes its references unless it fails. */
CUresult sim_graph_add(struct CUgraph_st *g, const struct sim_item *item);
