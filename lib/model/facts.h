/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The enums and flags of the facts about a rank and its communicators. The daemon collects the
 * facts, messages carry them (proto/), and the engine judges by them (analysis/). The numbers go
 * over the wire and into bundles: append only.
 */
#pragma once

#include <stdbool.h>

enum cw_liveness {
	CW_LIVE_UNKNOWN = 0,
	CW_LIVE_ALIVE = 1,
	CW_LIVE_STOPPED = 2, /* state T, no tracer */
	CW_LIVE_TRACED = 3,  /* stopped by a debugger */
	CW_LIVE_EXITED = 4,  /* the process called exit(exit_code) */
	CW_LIVE_KILLED = 5,  /* the signal term_signal killed it */
	CW_LIVE_GONE = 6,    /* ended in an unknown way: the kernel did not report it */
	CW_LIVE__MAX,
};

/* The architecture of a rank's node. */
enum cw_machine {
	CW_MACHINE_UNKNOWN = 0, /* not known, or another one */
	CW_MACHINE_X86_64 = 1,
	CW_MACHINE_AARCH64 = 2,
	CW_MACHINE__MAX,
};

/* The architecture for which this program is built. */
#if defined(__x86_64__)
#define CW_MACHINE_OWN CW_MACHINE_X86_64
#elif defined(__aarch64__)
#define CW_MACHINE_OWN CW_MACHINE_AARCH64
#else
#define CW_MACHINE_OWN CW_MACHINE_UNKNOWN
#endif

static inline bool cw_liveness_is_dead(unsigned l)
{
	return l == CW_LIVE_EXITED || l == CW_LIVE_KILLED || l == CW_LIVE_GONE;
}

/* The cause of an end: the sender of the signal that killed the process or requested its exit. */
enum cw_end_by {
	CW_END_BY_UNKNOWN = 0, /* the kernel reported nothing */
	CW_END_BY_NOBODY = 1,  /* the process exited, and no signal requested that */
	CW_END_BY_ITSELF = 2,  /* the process sent the signal to itself */
	CW_END_BY_PROCESS = 3, /* a process that the daemon sees sent the signal */
	CW_END_BY_OUTSIDE = 4, /* the signal came from outside the daemon's pid namespace */
	CW_END_BY_KERNEL = 5,  /* a fault, or the OOM killer */
	CW_END_BY_PARENT = 6,  /* the parent or session leader of the process ended */
	CW_END_BY_INIT = 7,    /* pid 1 of the process's container ended */
	CW_END_BY__MAX,
};

/*
 * cw_end_by_name() returns the name of a number in documents: "process", "kernel" …. It returns ""
 * for CW_END_BY_UNKNOWN and for the number of a newer version, and never NULL.
 * cw_end_by_from_name() returns CW_END_BY_UNKNOWN for the name of a newer version.
 */
const char *cw_end_by_name(unsigned by);
enum cw_end_by cw_end_by_from_name(const char *name);

enum { /* flags of a rank */
       /* The rank has a flight record, so its counters are reliable. */
       CW_RANKF_HAS_RECORD = 1 << 0,
       CW_RANKF_SHUTDOWN =
	       1 << 1, /* ended or ending in an orderly stop (SIGTERM/SIGINT, launcher gone) */
       CW_RANKF_OOM_KILLED = 1 << 2,
       CW_RANKF_PYTHON = 1 << 3,          /* the agent can take Python stacks */
       CW_RANKF_D_STATE = 1 << 4,         /* the main thread is in uninterruptible sleep */
       CW_RANKF_BUSY_CHILD = 1 << 5,      /* a descendant is active */
       CW_RANKF_BEATING = 1 << 6,         /* the agent's thread updates its heartbeat */
       CW_RANKF_FROZEN = 1 << 7,          /* the cgroup of the rank is frozen */
       CW_RANKF_TIMEOUT_ASSUMED = 1 << 8, /* no user set job_timeout_ns: it is PyTorch's default */
};

/*
 * Why the thread that must make the next call waits. An open wait may end at any time by an event
 * outside the process. Only another thread of the same process can end a closed wait.
 */
enum cw_host_wait {
	CW_HOST_WAIT_UNKNOWN = 0,
	/*
	 * Closed: another thread of the process holds the lock, and no thread of the process runs.
	 */
	CW_HOST_WAIT_LOCK,
	CW_HOST_WAIT_GIL,     /* closed: Python's interpreter lock */
	CW_HOST_WAIT_QUEUE,   /* open: a queue, a condition, or a time */
	CW_HOST_WAIT_SOCKET,  /* open */
	CW_HOST_WAIT_TTY,     /* open: input of a person at a terminal */
	CW_HOST_WAIT_STORAGE, /* uninterruptible sleep, and no byte moves */
	CW_HOST_WAIT__MAX,
};

/*
 * Return the name of a wait in documents ("lock", "socket" …), or the number of a name. Unknown
 * names and numbers are as in cw_end_by_name().
 */
const char *cw_host_wait_name(unsigned wait);
enum cw_host_wait cw_host_wait_from_name(const char *name);

static inline bool cw_host_wait_is_closed(unsigned w)
{
	return w == CW_HOST_WAIT_LOCK || w == CW_HOST_WAIT_GIL;
}

static inline bool cw_host_wait_is_open(unsigned w)
{
	return w == CW_HOST_WAIT_QUEUE || w == CW_HOST_WAIT_SOCKET || w == CW_HOST_WAIT_TTY;
}

enum { /* which counters of a member are known */
       CW_KNOWN_ENTERED = 1 << 0,
       CW_KNOWN_RETURNED = 1 << 1,
       CW_KNOWN_REACHED = 1 << 2,
       CW_KNOWN_COMPLETED = 1 << 3,
       CW_KNOWN_HASH = 1 << 4,
       CW_KNOWN_P2P = 1 << 5,
};

enum {                              /* flags of a connection */
       CW_CONNECTION_SEND = 1 << 0, /* the connection sends; without this flag it receives */
       /* The connection carries sends and receives instead of collectives. */
       CW_CONNECTION_P2P = 1 << 1,
       /* On a sender `ready` is known; without this flag it is 0. */
       CW_CONNECTION_DETAILED = 1 << 2,
       /* A thread of another process on the node moves the data (NCCL's PXN). */
       CW_CONNECTION_FOREIGN = 1 << 3,
};
