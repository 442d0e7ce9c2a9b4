/* SPDX-License-Identifier: Apache-2.0 */
/* The strongly connected components of a graph whose gates are all known. Pure. */
#pragma once

#include "analysis/waits/waitgraph.h"

/* Fills component, n_components and ranks_in. Returns 0 or -ENOMEM. */
int waitgraph_find_cycles(struct waitgraph *g, struct cw_arena *a);
