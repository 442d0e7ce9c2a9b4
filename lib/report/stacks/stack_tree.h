/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of many ranks merged into prefix trees, outermost frame first, each node with its set of
 * ranks. The positions of 4,096 ranks become a few lines, and the odd rank is a branch of its own
 * (STAT's idea). One tree per kind and thread: Python and native main thread, and native threads by
 * their name.
 *
 * Built from collwatch.evidence/1, written as collwatch.stacks/1 (docs/schemas.md). Documents may
 * be hostile; we skip parts of an unexpected shape. Pure: no clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads have few names; a program that invents many does not need a tree for each. */
#define CW_STACK_TREE_MAX_TREES 24u
/* In all trees together: 1,024 ranks in 3 groups have some 100; this is 4 MiB of JSON. */
#define CW_STACK_TREE_MAX_NODES 16384u
/* Further stacks of one process are omitted. */
#define CW_STACK_TREE_MAX_STACKS 64u
#define CW_STACK_TREE_MAX_FRAMES 128u

struct cw_stack_tree;

/* NULL = out of memory. */
struct cw_stack_tree *cw_stack_tree_new(void);
/* Takes NULL; returns NULL. */
struct cw_stack_tree *cw_stack_tree_free(struct cw_stack_tree *tree);

/*
 * Adds the stacks of one process; the caller states its rank (-1 = unknown). A process without
 * stacks is omitted, with the reason in its evidence. 0 or -ENOMEM.
 */
int cw_stack_tree_add(struct cw_stack_tree *tree, int32_t rank, const json_t *evidence);

/* Adds a process that we did not inspect, and the reason. 0 or -ENOMEM. */
int cw_stack_tree_not_collected(struct cw_stack_tree *tree, int32_t rank, const char *why);

/*
 * collwatch.stacks/1; awaited: number of processes that may still follow. Among sibling nodes, the
 * node with the fewest stacks comes first. New reference; NULL = out of memory.
 */
json_t *cw_stack_tree_doc(const struct cw_stack_tree *tree, uint32_t awaited);

/*
 * The nodes of roots ("roots" or "calls" of a collwatch.stacks/1) without the foldable frames:
 * interpreter, libraries, the C library, the start of a thread. The last frame of a stack always
 * stays. A tree that takes more work than any of ours comes back unchanged. New reference; NULL =
 * out of memory.
 */
json_t *cw_stack_tree_fold(const json_t *roots);
