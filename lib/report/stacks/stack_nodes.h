/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of merged stacks (report/stacks/stack_tree.h): frames, and the ranks in each frame. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Stands for the name of the thread that the process began with. */
#define CW_STACK_MAIN "main"
/* Stands for the module of a frame in the kernel. */
#define CW_STACK_KERNEL "[kernel]"

struct cw_stack_ranks {
	int32_t *list;     /* in order of arrival */
	uint32_t n, n_all; /* n_all: includes ranks without number */
};

int cw_stack_ranks_add(struct cw_stack_ranks *r, int32_t rank);
void cw_stack_ranks_fini(struct cw_stack_ranks *r);
/* "0-2,7"; new reference, NULL = out of memory. */
json_t *cw_stack_ranks_text(const struct cw_stack_ranks *r);

/* The properties that make two frames equal. Texts borrow from the document, "" = unknown. */
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
	uint32_t n_ends; /* stacks that end here */
	struct cw_stack_ranks ranks;
	struct cw_stack_node **calls;
	uint32_t n_calls;
};

/* Releases the node's contents and all nodes below; not the node itself. */
void cw_stack_node_fini(struct cw_stack_node *node);
int cw_stack_node_enter(struct cw_stack_node *node, int32_t rank);
/* Returns the child with this frame; NULL = there is none. */
struct cw_stack_node *cw_stack_node_find(const struct cw_stack_node *node,
					 const struct cw_stack_frame *frame);
/* Appends a child with this frame; NULL = out of memory. */
struct cw_stack_node *cw_stack_node_append(struct cw_stack_node *node,
					   const struct cw_stack_frame *frame);
/*
 * Returns the array of the node's calls, those with the fewest stacks first. New reference;
 * NULL = out of memory.
 */
json_t *cw_stack_nodes_doc(const struct cw_stack_node *node);
