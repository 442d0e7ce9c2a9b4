/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the simulated driver. A graph is a list of the items that streams queued during its
 * capture. It runs them in that order, one after the other, and ignores branches. That is a legal
 * schedule, but the real driver might choose another. For the same reason, edges that a program
 * adds change nothing. We refuse conditional nodes and memory nodes.
 *
 * Events from outside the capture (CU_EVENT_WAIT_EXTERNAL, cuGraphAddEventRecordNode()) order the
 * whole launch, not a node. A launch waits for them before it begins. It reaches the events that it
 * records at its end.
 */
#include "lab/sim/cuda/cuda_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUgraphExec_st {
	struct CUgraphExec_st *next;
	struct sim_nodes *nodes;    /* holds a reference */
	struct CUstream_st *stream; /* stream of the last launch; holds a reference */
	uint64_t seq;
};

struct CUgraph_st *sim_graphs;
static struct CUgraphExec_st *execs;

/* ---- user objects, which a graph destroys at its end ---- */

struct CUuserObject_st {
	unsigned int refs;
	CUhostFn destroy;
	void *ptr;
};

static void *destroy_object(void *arg)
{
	struct CUuserObject_st *object = arg;

	sim_set_in_host_fn(true);
	object->destroy(object->ptr);
	free(object);
	return NULL;
}

/*
 * Drops a reference. The destructor runs in one of the driver's threads, and must not call the
 * driver. Lock held.
 */
static void object_unref(struct CUuserObject_st *object)
{
	pthread_t thread;

	if (--object->refs > 0)
		return;
	if (pthread_create(&thread, NULL, destroy_object, object) != 0) {
		fprintf(stderr,
			"simulated device: no thread for the destructor of a user object\n");
		abort();
	}
	pthread_detach(thread);
}

CUresult cuUserObjectCreate(CUuserObject *ret_object, void *ptr, CUhostFn destroy,
			    unsigned int refs, unsigned int flags)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!ret_object || !destroy || refs == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_object = malloc(sizeof(**ret_object));
	if (!*ret_object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	**ret_object = (struct CUuserObject_st){ .refs = refs, .destroy = destroy, .ptr = ptr };
	return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!object || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	if (count <= object->refs) {
		object->refs -= count - 1;
		object_unref(object);
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* ---- nodes ---- */

static void item_ref(struct sim_item *it)
{
	if (it->kind == SIM_ITEM_GRAPH)
		it->nodes->refs++;
	else if (it->kind == SIM_ITEM_KERNEL)
		sim_launch_ref(it->launch);
	else if (it->kind == SIM_ITEM_WAIT_EXTERNAL || it->kind == SIM_ITEM_RECORD_EXTERNAL)
		sim_event_ref(it->event);
	else if (it->kind == SIM_ITEM_USER_OBJECT)
		it->object->refs++;
}

static void item_unref(struct sim_item *it)
{
	if (it->kind == SIM_ITEM_GRAPH)
		sim_nodes_unref(it->nodes);
	else if (it->kind == SIM_ITEM_KERNEL)
		sim_launch_unref(it->launch);
	else if (it->kind == SIM_ITEM_WAIT_EXTERNAL || it->kind == SIM_ITEM_RECORD_EXTERNAL)
		sim_event_unref(it->event);
	else if (it->kind == SIM_ITEM_USER_OBJECT)
		object_unref(it->object);
}

void sim_nodes_unref(struct sim_nodes *nodes)
{
	if (!nodes || --nodes->refs > 0)
		return;
	for (size_t i = 0; i < nodes->count; i++)
		item_unref(&nodes->items[i]);
	free(nodes);
}

void sim_nodes_run(const struct sim_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		sim_item_run(&nodes->items[i]);
}

static struct sim_nodes *nodes_copy(const struct sim_nodes *from)
{
	size_t count = from ? from->count : 0;
	struct sim_nodes *to = malloc(sizeof(*to) + count * sizeof(to->items[0]));

	if (!to)
		return NULL;
	to->refs = 1;
	to->count = count;
	for (size_t i = 0; i < count; i++) {
		to->items[i] = from->items[i];
		item_ref(&to->items[i]);
	}
	return to;
}

CUresult sim_graph_add(struct CUgraph_st *g, const struct sim_item *item)
{
	size_t count = g->nodes ? g->nodes->count : 0;

	if (count == g->room) {
		size_t room = g->room ? 2 * g->room : 8;
		struct sim_nodes *v = realloc(g->nodes, sizeof(*v) + room * sizeof(v->items[0]));

		if (!v)
			return CUDA_ERROR_OUT_OF_MEMORY;
		v->refs = 1;
		v->count = count;
		g->nodes = v;
		g->room = room;
	}
	g->nodes->items[g->nodes->count++] = *item;
	return CUDA_SUCCESS;
}

/* Adds a child graph. Takes over the reference to nodes. */
static CUresult add_child(struct CUgraph_st *g, struct sim_nodes *nodes)
{
	const struct sim_item item = { .kind = SIM_ITEM_GRAPH, .nodes = nodes };
	CUresult r = nodes ? sim_graph_add(g, &item) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r != CUDA_SUCCESS)
		sim_nodes_unref(nodes);
	return r;
}

/* ---- graphs ---- */

struct CUgraph_st *sim_graph_new(void)
{
	struct CUgraph_st *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->next = sim_graphs;
	sim_graphs = g;
	return g;
}

bool sim_graph_exists(const struct CUgraph_st *graph)
{
	for (const struct CUgraph_st *g = sim_graphs; g; g = g->next) {
		if (g == graph)
			return true;
	}
	return false;
}

void sim_graph_free(struct CUgraph_st *graph)
{
	struct CUgraph_st **link = &sim_graphs;

	while (*link != graph)
		link = &(*link)->next;
	*link = graph->next;
	sim_nodes_unref(graph->nodes);
	free(graph);
}

static CUresult lock_graph(CUgraph graph)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	if (sim_graph_exists(graph))
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&sim_lock);
	return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&sim_lock);
	*graph = sim_graph_new();
	pthread_mutex_unlock(&sim_lock);
	return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuGraphDestroy(CUgraph graph)
{
	CUresult r = lock_graph(graph);

	if (r != CUDA_SUCCESS)
		return r;
	if (graph->is_capturing)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		sim_graph_free(graph);
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	CUresult r = clone ? lock_graph(graph) : CUDA_ERROR_INVALID_VALUE;
	struct CUgraph_st *g;

	if (r != CUDA_SUCCESS)
		return r;
	g = sim_graph_new();
	if (g) {
		g->nodes = nodes_copy(graph->nodes);
		g->room = g->nodes ? g->nodes->count : 0;
	}
	pthread_mutex_unlock(&sim_lock);
	*clone = g;
	return g && g->nodes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Counts the nodes. A user object is an item, but not a node. */
static size_t count_nodes(const struct sim_nodes *nodes)
{
	size_t count = 0;

	for (size_t i = 0; nodes && i < nodes->count; i++)
		count += nodes->items[i].kind != SIM_ITEM_USER_OBJECT;
	return count;
}

/* Returns only the number of nodes; we do not simulate handles of single nodes. */
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *num_nodes)
{
	CUresult r = num_nodes && !nodes ? lock_graph(graph) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	*num_nodes = count_nodes(graph->nodes);
	pthread_mutex_unlock(&sim_lock);
	return CUDA_SUCCESS;
}

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				  size_t num_deps, CUgraph child)
{
	CUresult r = lock_graph(graph);

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_graph_exists(child) ? add_child(graph, nodes_copy(child->nodes))
				    : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim_lock);
	if (r == CUDA_SUCCESS && node)
		*node = NULL;
	return r;
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
			const CUgraphEdgeData *edges, size_t num_deps, CUgraphNodeParams *params)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	if (params->type != CU_GRAPH_NODE_TYPE_GRAPH)
		return CUDA_ERROR_NOT_SUPPORTED;
	return cuGraphAddChildGraphNode(node, graph, deps, num_deps, params->graph.graph);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				   size_t num_deps, CUevent event)
{
	struct sim_item item = { .kind = SIM_ITEM_RECORD_EXTERNAL, .event = event };
	CUresult r = node ? lock_graph(graph) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	r = sim_event_exists(event) ? sim_graph_add(graph, &item) : CUDA_ERROR_INVALID_VALUE;
	if (r == CUDA_SUCCESS) {
		sim_event_ref(event);
		*node = NULL;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/*
 * An edge from an earlier node to a later one changes nothing, because nodes run in this order
 * anyway.
 */
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				const CUgraphEdgeData *edges, size_t num_deps)
{
	CUresult r = lock_graph(graph);

	if (r == CUDA_SUCCESS)
		pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
				 unsigned int flags)
{
	struct sim_item item = { .kind = SIM_ITEM_USER_OBJECT, .object = object };
	bool is_moved = flags & CU_GRAPH_USER_OBJECT_MOVE;
	CUresult r = object && count > 0 ? lock_graph(graph) : CUDA_ERROR_INVALID_VALUE;

	if (r != CUDA_SUCCESS)
		return r;
	if (is_moved && count > object->refs)
		r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count && r == CUDA_SUCCESS; i++) {
		r = sim_graph_add(graph, &item);
		if (r == CUDA_SUCCESS && !is_moved)
			object->refs++;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* ---- executable graphs ---- */

static bool is_exec(const struct CUgraphExec_st *exec)
{
	for (const struct CUgraphExec_st *e = execs; e; e = e->next) {
		if (e == exec)
			return true;
	}
	return false;
}

CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	CUresult r = exec ? lock_graph(graph) : CUDA_ERROR_INVALID_VALUE;
	struct CUgraphExec_st *e;

	if (r != CUDA_SUCCESS)
		return r;
	e = calloc(1, sizeof(*e));
	if (e)
		e->nodes = nodes_copy(graph->nodes);
	if (e && e->nodes) {
		e->next = execs;
		execs = e;
		*exec = e;
	} else {
		free(e);
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node, char *log,
			       size_t log_size)
{
	return (cuGraphInstantiate)(exec, graph, 0);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return params ? (cuGraphInstantiate)(exec, graph, params->flags) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult await_externals(const struct sim_nodes *nodes, struct CUstream_st *s)
{
	CUresult r = CUDA_SUCCESS;

	for (size_t i = 0; i < nodes->count && r == CUDA_SUCCESS; i++) {
		if (nodes->items[i].kind == SIM_ITEM_WAIT_EXTERNAL)
			r = sim_event_await(nodes->items[i].event, s);
		else if (nodes->items[i].kind == SIM_ITEM_GRAPH)
			r = await_externals(nodes->items[i].nodes, s);
	}
	return r;
}

static void place_externals(const struct sim_nodes *nodes, struct CUstream_st *s)
{
	for (size_t i = 0; i < nodes->count; i++) {
		if (nodes->items[i].kind == SIM_ITEM_RECORD_EXTERNAL)
			sim_event_place(nodes->items[i].event, s);
		else if (nodes->items[i].kind == SIM_ITEM_GRAPH)
			place_externals(nodes->items[i].nodes, s);
	}
}

/* Launches an executable graph. Its launches never overlap. Lock held. */
static CUresult launch(struct CUgraphExec_st *e, struct CUstream_st *s)
{
	struct sim_item wait = { .kind = SIM_ITEM_WAIT };
	struct sim_item item = { .kind = SIM_ITEM_GRAPH, .nodes = e->nodes };
	CUresult r = CUDA_SUCCESS;

	if (s->capture) {
		e->nodes->refs++;
		return add_child(s->capture, e->nodes);
	}
	if (e->stream && e->stream != s && e->stream->completed < e->seq) {
		wait.wait_stream = e->stream;
		wait.wait_seq = e->seq;
		r = sim_stream_submit(s, &wait);
		if (r == CUDA_SUCCESS)
			sim_stream_ref(e->stream);
	}
	if (r == CUDA_SUCCESS)
		r = await_externals(e->nodes, s);
	if (r == CUDA_SUCCESS)
		r = sim_stream_submit(s, &item);
	if (r != CUDA_SUCCESS)
		return r;
	place_externals(e->nodes, s);
	e->nodes->refs++;
	sim_stream_ref(s);
	if (e->stream)
		sim_stream_unref(e->stream);
	e->stream = s;
	e->seq = s->submitted;
	return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
	struct CUstream_st *s;
	CUresult r = sim_stream_lock(handle, &s);

	if (r != CUDA_SUCCESS)
		return r;
	r = is_exec(exec) ? launch(exec, s) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* In this variant stream 0 is the calling thread's own stream. */
CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream handle)
{
	return cuGraphLaunch(exec, handle ? handle : CU_STREAM_PER_THREAD);
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct CUgraphExec_st **link = &execs;
	CUresult r = sim_enter();

	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&sim_lock);
	while (*link && *link != exec)
		link = &(*link)->next;
	if (*link) {
		*link = exec->next;
		sim_nodes_unref(exec->nodes);
		if (exec->stream)
			sim_stream_unref(exec->stream);
		free(exec);
	} else {
		r = CUDA_ERROR_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

static bool has_same_shape(const struct sim_nodes *a, const struct sim_nodes *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		if (a->items[i].kind != b->items[i].kind)
			return false;
	}
	return true;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUresult r = lock_graph(graph);
	struct sim_nodes *nodes;

	if (r != CUDA_SUCCESS)
		return r;
	nodes = nodes_copy(graph->nodes);
	if (!is_exec(exec))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (!nodes)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else if (!has_same_shape(exec->nodes, nodes))
		r = CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	if (r == CUDA_SUCCESS) {
		sim_nodes_unref(exec->nodes);
		exec->nodes = nodes;
	} else {
		sim_nodes_unref(nodes);
	}
	pthread_mutex_unlock(&sim_lock);
	if (info)
		*info = (CUgraphExecUpdateResultInfo){ .result = r != CUDA_SUCCESS };
	return r;
}
