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
#include <stdbool.h>
#include <stdint.h>

#include "agent/nccl_abi.h"
#include "agent/nccl_functions.h"

#define CW_NCCL_SETS 4

struct cw_real {
#define F(ret, name, since, how, params, args) ret(*name) params;
#define F0(ret, name, since, how) ret (*name)(void);
	CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0
	/* Where NCCL's own code lies; 0 when it shares a file with its user (static NCCL). */
	uintptr_t code_start, code_end;
	atomic_int state; /* CW_REAL_READY once all of the above is there */
	/* A function of the NCCL that the set is for: who has the same may fill it, too. 0: free */
	atomic_uintptr_t owner;
};

#define CW_REAL_READY 1

extern struct cw_real cw_real_sets[CW_NCCL_SETS];

#define CW_ABSENT ((void *)-1) /* from our dlsym: the symbol must look absent */

typedef void *(*cw_dlsym_fn)(void *handle, const char *name);

/* The dlsym behind ours; NULL only when libc has none. Any thread, async-signal-unsafe. */
cw_dlsym_fn cw_next_dlsym_get(void);

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

/* True when addr lies in NCCL's own code: it calls its public functions, those do not count. */
static inline bool cw_real_is_inside(const struct cw_real *real, const void *addr)
{
	return (uintptr_t)addr - real->code_start < real->code_end - real->code_start;
}
