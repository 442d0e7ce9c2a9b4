/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real NCCL functions behind the wrappers. A process may contain several copies of NCCL, such
 * as a linked copy and one that Python opened. Each copy gets a set of functions and its own
 * wrappers, so that a call never reaches another copy. Set 0 belongs to the exported symbols. The
 * other sets belong to copies that the program uses through dlsym.
 *
 * We fill a set once and never change it. A member is NULL if the loaded NCCL lacks the function.
 */
#pragma once

#include <stdatomic.h>

#include "agent/base/nccl_set.h"

#define CW_NCCL_SETS 4

extern struct cw_real cw_real_sets[CW_NCCL_SETS];

#define CW_ABSENT ((void *)-1) /* our dlsym must make the symbol look absent */

/* Fills set 0 if it is empty and the process contains NCCL. Takes the loader's lock. */
void cw_real_resolve_linked(void);

/*
 * Returns the functions behind the exported wrappers, never NULL. Any thread. Takes the loader's
 * lock until we have found NCCL, and never afterwards.
 */
static inline const struct cw_real *cw_real_linked(void)
{
	struct cw_real *real = &cw_real_sets[0];

	if (__builtin_expect(
		    atomic_load_explicit(&real->state, memory_order_acquire) != CW_REAL_READY, 0))
		cw_real_resolve_linked();
	return real;
}

/*
 * Finds the set for a copy of NCCL. `found` is the address that dlsym returned in handle for the
 * function at `index`. Returns the set that contains this address, or else a free set, which we
 * fill from handle. Returns -1 if all sets are taken; we then do not record that copy.
 */
int cw_real_set_of(void *handle, unsigned index, void *found);

/* Returns the position of name in the table of functions; -1 = the table lacks it. */
int cw_real_index(const char *name);

/* Returns the real function at a position of the table of functions; NULL = this NCCL lacks it. */
void *cw_real_member(const struct cw_real *real, unsigned index);

/* Returns the wrapper of a set at a position of the table of functions. */
void *cw_wrapper(unsigned set, unsigned index);
