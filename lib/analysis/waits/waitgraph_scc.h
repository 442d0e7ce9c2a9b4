/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the strongly connected components of the wait-for graph. Call it after all gates have been
 * added. Pure.
 */
#pragma once

#include "analysis/waits/waitgraph.h"

/*
 * Fills component, n_components and ranks_in of *g. The arrays are allocated in `a`. Returns 0 or
 * -ENOMEM.
 */
int waitgraph_find_cycles(struct waitgraph *g, struct cw_arena *a);
