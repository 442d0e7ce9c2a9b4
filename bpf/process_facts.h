/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * The facts about a watched process that the kernel side (process_facts.bpf.c) writes and the
 * daemon (daemon/kernel/kernel_events.c) reads. One build contains both, so there is no version.
 *
 * Pids are those of the daemon's pid namespace, which is the initial one unless the daemon runs in
 * a container.
 */
#pragma once

#include <stdint.h>

/*
 * Twice the daemon's limit of registered processes: an ended process stays until the daemon
 * reads it.
 */
#define CW_FACTS_MAX_PROCESSES 8192

#define CW_FACTS_COMM_BYTES 16 /* TASK_COMM_LEN of the kernel */

enum { /* flags of a signal */
       CW_FACTS_BY_KERNEL = 1 << 0,
       CW_FACTS_BY_SELF = 1 << 1,
       /* The sender was exiting, and the kernel sent the signal for it (to its children, …). */
       CW_FACTS_SENDER_EXITS = 1 << 2,
       /* The sender is pid 1 of a pid namespace other than the initial one. */
       CW_FACTS_SENDER_IS_INIT = 1 << 3,
};

struct cw_facts_signal {
	uint64_t at_ns;      /* CLOCK_MONOTONIC */
	int32_t sig;         /* 0 = none */
	int32_t code;        /* si_code */
	uint32_t sender_pid; /* 0 = no sender, or not in the daemon's pid namespace */
	uint32_t sender_uid; /* as seen in the initial user namespace */
	uint32_t flags;
	char sender_comm[CW_FACTS_COMM_BYTES];
	uint32_t pad;
};

struct cw_facts_process {
	uint64_t ended_ns; /* CLOCK_MONOTONIC; 0 = the process lives */
	uint32_t changes;  /* odd while the kernel side writes */
	int32_t status;    /* as from wait(2); valid after the process has ended */
	uint32_t is_oom_victim;
	uint32_t pad;
	/* The last signal that has no handler and would end the process. */
	struct cw_facts_signal fatal;
	/* The last SIGTERM, SIGINT, SIGHUP or SIGQUIT that has a handler. */
	struct cw_facts_signal asked;
	struct cw_facts_signal stop; /* the last signal that stops the process */
	/*
	 * Pages at the time when the kernel itself sent SIGKILL. A limit of 0 means that no memory
	 * cgroup has a limit.
	 */
	int64_t rss_pages;
	/* Usage and limit of the memory cgroup that is nearest to its limit. */
	uint64_t group_usage_pages, group_limit_pages;
};
