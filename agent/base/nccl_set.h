/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one copy of NCCL in this process. Each row of nccl_functions.h gives one member,
 * which is NULL if the loaded NCCL lacks the function. cw_real_linked() fills the set.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/base/nccl_abi.h"
#include "agent/base/nccl_functions.h"

struct cw_real {
#define F(ret, name, since, how, params, args) ret(*name) params;
#define F0(ret, name, since, how) ret (*name)(void);
	CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0
	/* Address range of NCCL's code; 0 if NCCL shares a file with its user (static NCCL). */
	uintptr_t code_start, code_end;
	atomic_int state; /* CW_REAL_READY once the members above are set */
	/*
	 * Identifies the copy of NCCL by the address of one of its functions; 0 = free. Several
	 * threads may fill the set for the same copy.
	 */
	atomic_uintptr_t owner;
};

#define CW_REAL_READY 1

/*
 * Returns whether addr lies in NCCL's own code. NCCL also calls its public functions itself, and we
 * do not count those calls.
 */
static inline bool cw_real_is_inside(const struct cw_real *real, const void *addr)
{
	return (uintptr_t)addr - real->code_start < real->code_end - real->code_start;
}
