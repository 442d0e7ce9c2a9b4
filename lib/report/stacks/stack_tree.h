/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the stacks of many ranks into prefix trees, outermost frame first. Each node has its set
 * of ranks. The positions of 4,096 ranks become a few lines, and an odd rank forms its own branch
 * (STAT's idea). There is one tree per kind and thread: Python main thread, native main thread, and
 * native threads by name.
 *
 * The input is collwatch.evidence/1, the output collwatch.stacks/1 (docs/schemas.md). Documents may
 * be hostile, so we skip parts of an unexpected type. Pure: no clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Limit on the trees. There is one per thread name, and real programs have few names. A program
 * that invents many gets no tree for each.
 */
#define CW_STACK_TREE_MAX_TREES 24u
/*
 * Limit on the nodes of all trees together. 1,024 ranks in 3 groups have some 100 nodes; this many
 * nodes are 4 MiB of JSON.
 */
#define CW_STACK_TREE_MAX_NODES 16384u
/* We omit the stacks of one process beyond this number. */
#define CW_STACK_TREE_MAX_STACKS 64u
#define CW_STACK_TREE_MAX_FRAMES 128u

struct cw_stack_tree;

/*
 * Returns an empty tree. NULL = out of memory. all_python: merge all Python threads of a process,
 * and not only the most informative one.
 */
struct cw_stack_tree *cw_stack_tree_new(bool all_python);
/* Accepts NULL and returns NULL. */
struct cw_stack_tree *cw_stack_tree_free(struct cw_stack_tree *tree);

/*
 * Adds the stacks of one process. rank: its number, -1 = unknown. If the evidence has no stacks,
 * the rank goes to the list of omitted ranks, with the reason that the evidence states. Returns 0
 * or -ENOMEM.
 */
int cw_stack_tree_add(struct cw_stack_tree *tree, int32_t rank, const json_t *evidence);

/*
 * Adds a process that we did not inspect to the list of omitted ranks, with the reason. Returns 0
 * or -ENOMEM.
 */
int cw_stack_tree_not_collected(struct cw_stack_tree *tree, int32_t rank, const char *why);

/*
 * Returns a collwatch.stacks/1. awaited: the number of processes that may still follow. Siblings
 * with the fewest stacks come first. New reference; NULL = out of memory.
 */
json_t *cw_stack_tree_doc(const struct cw_stack_tree *tree, uint32_t awaited);

/*
 * Returns a copy of `roots` ("roots" or "calls" of a collwatch.stacks/1) without the foldable
 * frames: interpreter, libraries, the C library, the start of a thread. The last frame of a stack
 * always stays. If the tree needs more work than any of our own, we return it unchanged. New
 * reference; NULL = out of memory.
 */
json_t *cw_stack_tree_fold(const json_t *roots);
