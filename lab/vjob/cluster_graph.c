/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA graphs. In each pass through the program we collect the block's contents, and launch them
 * together at its end, as one call of the host. An agent counts and numbers the calls in a graph
 * like direct calls. So a replayed graph and a newly captured one look the same to it.
 */
#include <errno.h>
#include <stdlib.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"

void graph_begin(struct rank *r)
{
	if (!r->graph)
		r->graph = cw_or_exit(calloc(GRAPH_MAX, sizeof(*r->graph)));
	r->in_graph = true;
	r->n_graph = r->n_graph_groups = 0;
}

static void add(struct rank *r, const struct graph_step *step)
{
	if (r->graph && r->n_graph < GRAPH_MAX)
		r->graph[r->n_graph++] = *step;
	else if (!r->c->error)
		r->c->error = -EINVAL;
}

void graph_add_calls(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group)
{
	uint32_t group = is_group ? ++r->n_graph_groups : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct graph_step step = { .call = calls[i],
					   .group = group,
					   .is_wedged = r->is_wedging,
					   .wedge_ns = r->wedge_ns };

		r->is_wedging = false;
		r->wedge_ns = 0;
		add(r, &step);
	}
}

void graph_add_kernel(struct rank *r, int64_t ns)
{
	struct graph_step step = { .is_kernel = true, .kernel_ns = ns };

	add(r, &step);
}

/* Launches the call at `first`, and those of its group. Returns their number. */
static uint32_t launch_calls(struct rank *r, uint32_t first)
{
	const struct graph_step *step = &r->graph[first];
	uint32_t n = 0;

	do {
		r->group[n] = r->graph[first + n].call;
		n++;
	} while (step->group && first + n < r->n_graph && r->graph[first + n].group == step->group);
	r->is_wedging = step->is_wedged;
	r->wedge_ns = step->wedge_ns;
	call_make(r, r->group, n, step->group != 0);
	return n;
}

bool graph_launch(struct rank *r, uint32_t stream)
{
	if (r->n_items >= OPEN_MAX)
		return false;
	r->launch = ++r->n_launches;
	for (uint32_t i = 0; i < r->n_graph;) {
		if (r->graph[i].is_kernel)
			device_kernel(r, stream, r->graph[i++].kernel_ns);
		else
			i += launch_calls(r, i);
	}
	r->launch = 0;
	r->in_graph = false;
	return true;
}
