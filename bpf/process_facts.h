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

#define CW_FACTS_COMM_BYTES 16 /* TASK_COMM_LEN */

enum { /* flags of a signal */
       CW_FACTS_BY_KERNEL = 1 << 0,
       CW_FACTS_BY_SELF = 1 << 1,
       CW_FACTS_SENDER_EXITS = 1 << 2,   /* the sender was exiting: a signal to its children, … */
       CW_FACTS_SENDER_IS_INIT = 1 << 3, /* pid 1 of a pid namespace other than the initial one */
};

struct cw_facts_signal {
	uint64_t at_ns;      /* CLOCK_MONOTONIC */
	int32_t sig;         /* 0 = none */
	int32_t code;        /* si_code */
	uint32_t sender_pid; /* 0 = none, or not of this namespace */
	uint32_t sender_uid; /* of the initial user namespace */
	uint32_t flags;
	char sender_comm[CW_FACTS_COMM_BYTES];
	uint32_t pad;
};

struct cw_facts_process {
	uint64_t ended_ns; /* CLOCK_MONOTONIC; 0 = lives */
	uint32_t changes;  /* odd while the kernel side writes */
	int32_t status;    /* as from wait(2); valid after the end */
	uint32_t is_oom_victim;
	uint32_t pad;
	struct cw_facts_signal fatal; /* the last that would end the process, without a handler */
	struct cw_facts_signal asked; /* the last SIGTERM, SIGINT, SIGHUP or SIGQUIT it handles */
	struct cw_facts_signal stop;  /* the last signal that stops it */
	/* Pages when the kernel itself sent SIGKILL; limit 0 = no memory cgroup has a limit. */
	int64_t rss_pages;
	uint64_t group_usage_pages, group_limit_pages; /* of the group nearest to its limit */
};
