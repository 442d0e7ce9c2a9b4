/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words for what is known about a rank and its communicators, shared by those who find it out (the
 * daemon), carry it (proto/) and judge by it (analysis/). The numbers go over the wire and into
 * bundles: append only.
 */
#pragma once

#include <stdbool.h>

enum cw_liveness {
	CW_LIVE_UNKNOWN = 0,
	CW_LIVE_ALIVE = 1,
	CW_LIVE_STOPPED = 2, /* state T, no tracer */
	CW_LIVE_TRACED = 3,  /* stopped by a debugger */
	CW_LIVE_EXITED = 4,  /* exit(exit_code) */
	CW_LIVE_KILLED = 5,  /* by term_signal */
	CW_LIVE_GONE = 6,    /* ended, the kernel did not say how */
	CW_LIVE__MAX,
};

static inline bool cw_liveness_is_dead(unsigned l)
{
	return l == CW_LIVE_EXITED || l == CW_LIVE_KILLED || l == CW_LIVE_GONE;
}

enum {                               /* flags of a rank */
       CW_RANKF_HAS_RECORD = 1 << 0, /* a flight record was read: counters can be trusted */
       CW_RANKF_SHUTDOWN =
	       1 << 1, /* ended or ending in an orderly stop (SIGTERM/SIGINT, launcher gone) */
       CW_RANKF_OOM_KILLED = 1 << 2,
       CW_RANKF_PYTHON = 1 << 3,     /* Python stacks are armed */
       CW_RANKF_D_STATE = 1 << 4,    /* its main thread is in uninterruptible sleep */
       CW_RANKF_BUSY_CHILD = 1 << 5, /* a descendant makes headway */
       CW_RANKF_BEATING = 1 << 6,    /* the agent's thread beats */
};

enum { /* which counters of a member are known */
       CW_KNOWN_ENTERED = 1 << 0,
       CW_KNOWN_RETURNED = 1 << 1,
       CW_KNOWN_REACHED = 1 << 2,
       CW_KNOWN_COMPLETED = 1 << 3,
       CW_KNOWN_HASH = 1 << 4,
       CW_KNOWN_P2P = 1 << 5,
};
