/* SPDX-License-Identifier: Apache-2.0 */
/* A graph of the simulated driver. A capture builds a graph, and executable graphs copy it. */
#pragma once

#include "lab/sim/cuda/cuda_sim.h"

struct CUgraph_st {
	struct CUgraph_st *next;
	struct sim_nodes *nodes; /* the graph owns the nodes and their items' references */
	size_t room;
	/*
	 * The following fields describe the graph's capture. is_given: the graph exists without the
	 * capture.
	 */
	bool is_capturing, is_spoilt, is_given;
	CUstreamCaptureMode mode;
	cuuint64_t id;
	struct CUstream_st *origin;
	pthread_t thread;
};

/* The list of all graphs. The list and all functions below need sim_lock. */
extern struct CUgraph_st *sim_graphs;

/* Makes an empty graph. NULL = out of memory. */
struct CUgraph_st *sim_graph_new(void);
void sim_graph_free(struct CUgraph_st *graph);
/* True if the handle belongs to a graph. */
bool sim_graph_exists(const struct CUgraph_st *graph);
/* Adds a copy of the item. Takes over the item's references if it succeeds. */
CUresult sim_graph_add(struct CUgraph_st *g, const struct sim_item *item);
