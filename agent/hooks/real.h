/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The real NCCL functions behind the wrappers. A process may hold several copies of NCCL (a linked
 * one and one that Python opened): each gets a set, and each set has its own wrappers, so that a
 * call never ends in another copy. Set 0 belongs to the exported symbols, the others to copies met
 * through dlsym.
 *
 * Sets are filled once and never change; a function the loaded NCCL lacks is NULL.
 */
#pragma once

#include <stdatomic.h>

#include "agent/base/nccl_set.h"

#define CW_NCCL_SETS 4

extern struct cw_real cw_real_sets[CW_NCCL_SETS];

#define CW_ABSENT ((void *)-1) /* from our dlsym: the symbol must look absent */

/* Fills set 0 if it is empty and NCCL can be found. Takes the loader's lock. */
void cw_real_resolve_linked(void);

/*
 * The functions behind the exported wrappers. Any thread; blocks on the loader's lock only until
 * NCCL was found once. Never NULL.
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
 * The set whose member at index is found, the address dlsym gave for handle: an existing one, or a
 * new one filled from handle. -1 when all sets are taken: that copy stays unrecorded.
 */
int cw_real_set_of(void *handle, unsigned index, void *found);

/* Position of name in the table, -1 when it is not there. */
int cw_real_index(const char *name);

/* The member of a set at a table position, as an address. */
void *cw_real_member(const struct cw_real *real, unsigned index);

/* The wrapper of a table position for a set. */
void *cw_wrapper(unsigned set, unsigned index);
