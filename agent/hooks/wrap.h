/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generates the prototype of one implementation per row of the table: cw_impl_<name>(set, caller,
 * the function's own parameters). wrappers.c generates the entry points of every set from the same
 * rows.
 */
#pragma once

#include "agent/base/nccl_set.h"

#define CW_WITH(...) (const struct cw_real *real, const void *caller, __VA_ARGS__)

#define F(ret, name, since, how, params, args) ret cw_impl_##name CW_WITH params;
#define F0(ret, name, since, how)                                                                  \
	ret cw_impl_##name(const struct cw_real *real, const void *caller);
CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0
