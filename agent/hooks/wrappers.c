/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We generate all entry points from the table of functions: the exported ncclX for set 0, and a
 * static twin of each for every other set. A program gets a twin only through dlsym. An entry point
 * only adds its set and its caller.
 */
#include "agent/base/state.h"
#include "agent/hooks/real.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/hot.h"
#include "agent/python/call_stack.h"

#define CW_UNPACK(...) __VA_ARGS__
#define RETURN_ADDRESS __builtin_return_address(0)

/* Stores the frame of the entry point. A call stack begins at this frame. */
#define NOTE_RECORD()                                                                              \
	do {                                                                                       \
		if (cw_unlikely(cw_call_stacks_is_on))                                             \
			cw_tls.frame = (uintptr_t)__builtin_frame_address(0);                      \
	} while (0)
#define NOTE_FORWARD() (void)0

/* ---- set 0: exported ---- */

#define IN_RECORD CW_HOT
#define IN_FORWARD
#define FETCH_RECORD(name) cw_hot_fetch_first(&cw_real_sets[0].name)
#define FETCH_FORWARD(name) (void)0

#define F(ret, name, since, how, params, args)                                                     \
	CW_EXPORT ret name params;                                                                 \
	CW_EXPORT IN_##how ret name params                                                         \
	{                                                                                          \
		FETCH_##how(name);                                                                 \
		NOTE_##how();                                                                      \
		return cw_impl_##name(cw_real_linked(), RETURN_ADDRESS, CW_UNPACK args);           \
	}
#define F0(ret, name, since, how)                                                                  \
	CW_EXPORT ret name(void);                                                                  \
	CW_EXPORT ret name(void)                                                                   \
	{                                                                                          \
		NOTE_##how();                                                                      \
		return cw_impl_##name(cw_real_linked(), RETURN_ADDRESS);                           \
	}
CW_NCCL_FUNCTIONS(F, F0)
#undef F
#undef F0

/* ---- the other sets ---- */

#define SET(n)                                                                                     \
	CW_NCCL_FUNCTIONS(F##n, F0##n)                                                             \
	static void *const set##n[] = { CW_NCCL_FUNCTIONS(A##n, A0##n) };

#define ENTRY(n, ret, name, how, params, args)                                                     \
	static ret set##n##_##name params                                                          \
	{                                                                                          \
		NOTE_##how();                                                                      \
		return cw_impl_##name(&cw_real_sets[n], RETURN_ADDRESS, CW_UNPACK args);           \
	}
#define ENTRY0(n, ret, name, how)                                                                  \
	static ret set##n##_##name(void)                                                           \
	{                                                                                          \
		NOTE_##how();                                                                      \
		return cw_impl_##name(&cw_real_sets[n], RETURN_ADDRESS);                           \
	}

#define F1(ret, name, since, how, params, args) ENTRY(1, ret, name, how, params, args)
#define F01(ret, name, since, how) ENTRY0(1, ret, name, how)
#define A1(ret, name, since, how, params, args) (void *)set1_##name,
#define A01(ret, name, since, how) (void *)set1_##name,
SET(1)

#define F2(ret, name, since, how, params, args) ENTRY(2, ret, name, how, params, args)
#define F02(ret, name, since, how) ENTRY0(2, ret, name, how)
#define A2(ret, name, since, how, params, args) (void *)set2_##name,
#define A02(ret, name, since, how) (void *)set2_##name,
SET(2)

#define F3(ret, name, since, how, params, args) ENTRY(3, ret, name, how, params, args)
#define F03(ret, name, since, how) ENTRY0(3, ret, name, how)
#define A3(ret, name, since, how, params, args) (void *)set3_##name,
#define A03(ret, name, since, how) (void *)set3_##name,
SET(3)

#define A(ret, name, since, how, params, args) (void *)name,
#define A0(ret, name, since, how) (void *)name,
static void *const set0[] = { CW_NCCL_FUNCTIONS(A, A0) };

_Static_assert(CW_NCCL_SETS == 4, "one block above per set");

void *cw_wrapper(unsigned set, unsigned index)
{
	static void *const *const sets[CW_NCCL_SETS] = { set0, set1, set2, set3 };

	return sets[set][index];
}
