/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stack_nodes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "report/frames.h"
#include "report/json_util.h"
#include "report/stacks/stack_tree.h"

/* ---- ranks ---- */

int cw_stack_ranks_add(struct cw_stack_ranks *r, int32_t rank)
{
	/* The array grows by doubling from 4, because most nodes have few ranks. */
	if (r->n >= 4 ? (r->n & (r->n - 1)) == 0 : r->n == 0) {
		int32_t *list = realloc(r->list, (r->n ? 2 * r->n : 4) * sizeof(*list));

		if (!list)
			return -ENOMEM;
		r->list = list;
	}
	r->n_all++;
	/*
	 * Threads of one process follow each other, so a comparison with the last rank finds
	 * duplicates.
	 */
	if (rank >= 0 && (r->n == 0 || r->list[r->n - 1] != rank))
		r->list[r->n++] = rank;
	return 0;
}

void cw_stack_ranks_fini(struct cw_stack_ranks *r)
{
	free(r->list);
	*r = (struct cw_stack_ranks){ 0 };
}

json_t *cw_stack_ranks_text(const struct cw_stack_ranks *r)
{
	_cleanup_(freep) char *text = cw_rankset_format_alloc(r->list, r->n);

	return text ? json_string(text) : NULL;
}

/* ---- nodes ---- */

struct cw_stack_frame cw_stack_frame_read(const json_t *frame, const char *kind)
{
	bool is_python = strcmp(kind, "python") == 0;
	struct cw_stack_frame f = {
		.name = cw_json_str(frame, is_python ? "function" : "symbol", ""),
		.file = cw_json_str(frame, "file", ""),
		.module = cw_json_str(frame, "module", ""),
		.line = cw_json_int(frame, "line", 0),
	};

	f.is_folded = is_python ? frame_is_library_python(frame) : frame_is_folded_native(frame);
	return f;
}

void cw_stack_node_fini(struct cw_stack_node *node)
{
	for (uint32_t i = 0; i < node->n_calls; i++) {
		cw_stack_node_fini(node->calls[i]);
		free(node->calls[i]);
	}
	free(node->calls);
	free(node->name);
	free(node->file);
	free(node->module);
	cw_stack_ranks_fini(&node->ranks);
}

int cw_stack_node_enter(struct cw_stack_node *node, int32_t rank)
{
	return cw_stack_ranks_add(&node->ranks, rank);
}

struct cw_stack_node *cw_stack_node_find(const struct cw_stack_node *node,
					 const struct cw_stack_frame *f)
{
	for (uint32_t i = 0; i < node->n_calls; i++) {
		struct cw_stack_node *n = node->calls[i];

		if (n->line == f->line && strcmp(n->name, f->name) == 0 &&
		    strcmp(n->file, f->file) == 0 && strcmp(n->module, f->module) == 0)
			return n;
	}
	return NULL;
}

struct cw_stack_node *cw_stack_node_append(struct cw_stack_node *node,
					   const struct cw_stack_frame *f)
{
	uint32_t n = node->n_calls;
	struct cw_stack_node *new;

	if ((n & (n - 1)) == 0) { /* the array is full at 0, 1, 2, 4, … */
		struct cw_stack_node **calls =
			realloc(node->calls, (n ? 2 * n : 1) * sizeof(*calls));

		if (!calls)
			return NULL;
		node->calls = calls;
	}
	new = calloc(1, sizeof(*new));
	if (!new)
		return NULL;
	new->name = strdup(f->name);
	new->file = strdup(f->file);
	new->module = strdup(f->module);
	new->line = f->line;
	new->is_folded = f->is_folded;
	if (!new->name || !new->file || !new->module) {
		cw_stack_node_fini(new);
		free(new);
		return NULL;
	}
	node->calls[node->n_calls++] = new;
	return new;
}

/* ---- documents ---- */

static json_t *text_or_null(const char *text)
{
	return *text ? cw_json_text(text) : json_null();
}

static json_t *node_doc(const struct cw_stack_node *node)
{
	return cw_json_object((struct cw_json_member[]){
		{ "name", text_or_null(node->name) },
		{ "file", text_or_null(node->file) },
		{ "line", node->line > 0 ? json_integer(node->line) : json_null() },
		{ "module", text_or_null(node->module) },
		{ "fold", json_boolean(node->is_folded) },
		{ "n", json_integer(node->ranks.n_all) },
		{ "ranks", cw_stack_ranks_text(&node->ranks) },
		{ "ends", json_integer(node->n_ends) },
		{ "calls", cw_stack_nodes_doc(node) },
		{ NULL },
	});
}

static int by_stacks(const void *a, const void *b)
{
	const struct cw_stack_node *x = *(struct cw_stack_node *const *)a;
	const struct cw_stack_node *y = *(struct cw_stack_node *const *)b;

	if (x->ranks.n_all != y->ranks.n_all)
		return x->ranks.n_all < y->ranks.n_all ? -1 : 1;
	return strcmp(x->name, y->name);
}

json_t *cw_stack_nodes_doc(const struct cw_stack_node *node)
{
	json_t *list = json_array();
	int bad = 0;

	if (node->n_calls)
		qsort(node->calls, node->n_calls, sizeof(*node->calls), by_stacks);
	for (uint32_t i = 0; i < node->n_calls; i++)
		bad |= json_array_append_new(list, node_doc(node->calls[i]));
	return cw_json_finish(list, bad);
}
