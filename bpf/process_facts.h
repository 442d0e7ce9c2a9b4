/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What the kernel side (process_facts.bpf.c) writes down about a watched process, and the daemon
 * reads (daemon/kernel/kernel_events.c). Both are built together: there is no version.
 *
 * Pids are those of the daemon's pid namespace, which is the initial one unless the daemon runs in
 * a container.
 */
#pragma once

#include <stdint.h>

/* Twice what a daemon lets register: those that have ended stay until they are looked at. */
#define CW_FACTS_MAX_PROCESSES 8192

#define CW_FACTS_COMM_BYTES 16 /* TASK_COMM_LEN */

enum { /* flags of a signal */
       CW_FACTS_BY_KERNEL = 1 << 0,
       CW_FACTS_BY_SELF = 1 << 1,
       CW_FACTS_SENDER_EXITS = 1 << 2,   /* sent because the sender ends: to its children, … */
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
	uint32_t changes;  /* odd while being written */
	int32_t status;    /* as wait(2) has it; once it has ended */
	uint32_t is_oom_victim;
	uint32_t pad;
	struct cw_facts_signal fatal; /* the last one that ends a process that does not handle it */
	struct cw_facts_signal asked; /* the last SIGTERM, SIGINT, SIGHUP or SIGQUIT it handles */
	struct cw_facts_signal stop;  /* the last that stops */
	/* When the kernel itself sent SIGKILL, in pages; limit 0 = its groups have none. */
	int64_t rss_pages;
	uint64_t group_usage_pages, group_limit_pages; /* of the group nearest to its limit */
};
