/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One copy of NCCL in this process, as its functions: one member per row of nccl_functions.h, NULL
 * where the loaded NCCL lacks it. cw_real_linked() finds them.
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
	/* Where NCCL's own code lies; 0 when it shares a file with its user (static NCCL). */
	uintptr_t code_start, code_end;
	atomic_int state; /* CW_REAL_READY once all of the above is there */
	/* A function of the NCCL that the set is for: who has the same may fill it, too. 0: free */
	atomic_uintptr_t owner;
};

#define CW_REAL_READY 1

/* True when addr lies in NCCL's own code: it calls its public functions, those do not count. */
static inline bool cw_real_is_inside(const struct cw_real *real, const void *addr)
{
	return (uintptr_t)addr - real->code_start < real->code_end - real->code_start;
}
