/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of many ranks merged into prefix trees, outermost frame first, each node with the set of
 * ranks that are in it: where 4,096 ranks sit becomes a few lines, and the odd one is a branch of
 * its own (STAT's idea). One tree per kind and thread: Python and native main thread, and native
 * threads by their name.
 *
 * Built from collwatch.evidence/1, written as collwatch.stacks/1 (docs/schemas.md). Documents may
 * be hostile; whatever has another shape than expected is left out. Pure: no clock, no I/O.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Threads have few names, and those of a program that invents them are of no interest. */
#define CW_STACK_TREE_MAX_TREES 24u
/* Of all trees together: 1,024 ranks in 3 groups have some 100; this is 4 MiB of JSON. */
#define CW_STACK_TREE_MAX_NODES 16384u
/* Stacks of one process beyond this are left out. */
#define CW_STACK_TREE_MAX_STACKS 64u
#define CW_STACK_TREE_MAX_FRAMES 128u

struct cw_stack_tree;

/* NULL = out of memory. */
struct cw_stack_tree *cw_stack_tree_new(void);
/* Takes NULL; returns NULL. */
struct cw_stack_tree *cw_stack_tree_free(struct cw_stack_tree *tree);

/*
 * Adds the stacks of one process, whose rank is the caller's word (-1 = unknown). A process without
 * any goes to those left out, with the reason its evidence gives. 0 or -ENOMEM.
 */
int cw_stack_tree_add(struct cw_stack_tree *tree, int32_t rank, const json_t *evidence);

/* A process that was not looked at, and why. 0 or -ENOMEM. */
int cw_stack_tree_leave_out(struct cw_stack_tree *tree, int32_t rank, const char *why);

/*
 * collwatch.stacks/1; awaited: how many processes may still be added. Nodes are ordered: of
 * several, the one with the fewest stacks first. New reference; NULL = out of memory.
 */
json_t *cw_stack_tree_doc(const struct cw_stack_tree *tree, uint32_t awaited);

/*
 * The nodes of roots ("roots" or "calls" of a collwatch.stacks/1) without those that are to be
 * folded: interpreter, libraries, the C library, the start of a thread. What a stack ends in always
 * stays. A tree that would take more work than any of ours comes back as it is. New reference; NULL
 * = out of memory.
 */
json_t *cw_stack_tree_fold(const json_t *roots);
