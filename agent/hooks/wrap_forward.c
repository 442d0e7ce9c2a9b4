/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of calls that involve no other rank. They forward the call unchanged. */
#include "agent/hooks/wrap.h"

#define CW_UNPACK(...) __VA_ARGS__

/* Results for a program that calls a function that its NCCL lacks. */
static const char *missing_text(void)
{
	return "function missing in this NCCL";
}

static ncclTeam_t missing_team(void)
{
	return (ncclTeam_t){ 0 };
}

#define MISSING(type)                                                                              \
	_Generic((type *)0, ncclTeam_t * : missing_team, const char ** : missing_text, default : missing_int)()

static int missing_int(void)
{
	return ncclInvalidUsage;
}

#define RECORD(ret, name, params, args)
#define RECORD0(ret, name)
#define FORWARD(ret, name, params, args)                                                           \
	ret cw_impl_##name CW_WITH params                                                          \
	{                                                                                          \
		return real->name ? real->name args : MISSING(ret);                                \
	}
#define FORWARD0(ret, name)                                                                        \
	ret cw_impl_##name(const struct cw_real *real, const void *caller)                         \
	{                                                                                          \
		if (real->name)                                                                    \
			real->name();                                                              \
	}

#define F(ret, name, since, how, params, args) how(ret, name, params, args)
#define F0(ret, name, since, how) how##0(ret, name)
CW_NCCL_FUNCTIONS(F, F0)
