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
 * Capacity of the map: twice the daemon's limit of registered processes. An ended process keeps its
 * entry until the daemon reads it.
 */
#define CW_FACTS_MAX_PROCESSES 8192

#define CW_FACTS_COMM_BYTES 16 /* TASK_COMM_LEN of the kernel */

enum { /* flags of a signal */
       CW_FACTS_BY_KERNEL = 1 << 0,
       CW_FACTS_BY_SELF = 1 << 1,
       /*
	* The sender was exiting, and the kernel sent the signal on its behalf (to its children, …).
	*/
       CW_FACTS_SENDER_EXITS = 1 << 2,
       /* The sender is pid 1 of a pid namespace other than the initial one. */
       CW_FACTS_SENDER_IS_INIT = 1 << 3,
};

struct cw_facts_signal {
	uint64_t at_ns;      /* CLOCK_MONOTONIC */
	int32_t sig;         /* number of the signal; 0 = none */
	int32_t code;        /* si_code */
	uint32_t sender_pid; /* 0 = no sender, or a sender outside the daemon's pid namespace */
	uint32_t sender_uid; /* uid in the initial user namespace */
	uint32_t flags;
	char sender_comm[CW_FACTS_COMM_BYTES];
	uint32_t pad;
};

struct cw_facts_process {
	uint64_t ended_ns; /* CLOCK_MONOTONIC; 0 = the process lives */
	uint32_t changes;  /* odd while the kernel side writes */
	int32_t status;    /* status as from wait(2); valid after the end of the process */
	uint32_t is_oom_victim;
	uint32_t pad;
	/* The last signal without a handler that ends a process by default. */
	struct cw_facts_signal fatal;
	/* The last SIGTERM, SIGINT, SIGHUP or SIGQUIT that the program has a handler for. */
	struct cw_facts_signal asked;
	struct cw_facts_signal stop; /* the last signal that stops the process */
	/*
	 * Memory in pages when the kernel itself sent SIGKILL. A limit of 0 means that no memory
	 * cgroup has a limit.
	 */
	int64_t rss_pages;
	/* Usage and limit of the memory cgroup that has the least room left. */
	uint64_t group_usage_pages, group_limit_pages;
};
