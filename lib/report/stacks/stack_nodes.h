/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes of merged stacks (report/stacks/stack_tree.h). A node is a frame, with the ranks that are
 * in it.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* The thread name that we use for the first thread of a process. */
#define CW_STACK_MAIN "main"
/* The module name that we use for a frame in the kernel. */
#define CW_STACK_KERNEL "[kernel]"

struct cw_stack_ranks {
	int32_t *list;     /* the numbers, in the order in which we added them */
	uint32_t n, n_all; /* n: length of list; n_all: also counts ranks without a number */
};

int cw_stack_ranks_add(struct cw_stack_ranks *r, int32_t rank);
void cw_stack_ranks_fini(struct cw_stack_ranks *r);
/* Returns the set as "0-2,7". New reference; NULL = out of memory. */
json_t *cw_stack_ranks_text(const struct cw_stack_ranks *r);

/*
 * Two frames are equal if all these properties are. Texts borrow from the document; "" = unknown.
 */
struct cw_stack_frame {
	const char *name, *file, *module;
	json_int_t line; /* 0 = unknown */
	bool is_folded;
};

/*
 * Reads a frame of kind "python" or "native". Accepts any document. Values of another type count
 * as unknown.
 */
struct cw_stack_frame cw_stack_frame_read(const json_t *frame, const char *kind);

struct cw_stack_node {
	char *name, *file, *module;
	json_int_t line;
	bool is_folded;
	uint32_t n_ends; /* number of stacks that end in this node */
	struct cw_stack_ranks ranks;
	struct cw_stack_node **calls;
	uint32_t n_calls;
};

/* Releases the node's contents and all nodes below it, but not the node itself. */
void cw_stack_node_fini(struct cw_stack_node *node);
int cw_stack_node_enter(struct cw_stack_node *node, int32_t rank);
/* Returns the child with this frame; NULL = there is none. */
struct cw_stack_node *cw_stack_node_find(const struct cw_stack_node *node,
					 const struct cw_stack_frame *frame);
/* Appends a child with this frame; NULL = out of memory. */
struct cw_stack_node *cw_stack_node_append(struct cw_stack_node *node,
					   const struct cw_stack_frame *frame);
/*
 * Returns the array of the node's children, in ascending order of their number of stacks. New
 * reference; NULL = out of memory.
 */
json_t *cw_stack_nodes_doc(const struct cw_stack_node *node);
