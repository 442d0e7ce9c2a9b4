/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks through /proc for ranks of a job that never called NCCL: such a process has the agent's
 * library and the job's label in its environment, but no flight record.
 *
 * A rank is often several processes with one environment: a shell that started it, the program, its
 * data loader's workers. Taken for the rank is the topmost that is no shell. If any of them has a
 * record, the rank did reach NCCL and is not looked for here.
 *
 * Reading environ and maps takes a process's memory lock, which may hang: only in a child
 * (loop/children.h), which is killed at its deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/process.h"
#include "identity/job_label.h"
#include "record/pod.h"

/* Ranks of one job on one node: far above what GPUs fit into it. */
#define CW_ABSENT_MAX_RANKS 64u

/* As long as the name of a UNIX socket can be. */
#define CW_ABSENT_SOCKET_BYTES 108

struct cw_absent_query {
	char label[CW_JOB_LABEL_BYTES];
	uid_t uid;
	/* Only those whose agents would register there: other daemons may run on this machine. */
	char socket[CW_ABSENT_SOCKET_BYTES];
};

/* What the child writes, one after the other; whoever reads checks every field. */
struct cw_absent_found {
	int32_t rank, world_size, local_rank, pid;
	uint64_t start_ticks;
	gid_t gid;
	uint32_t command_len;
	char source[24];                        /* of the rank's number */
	struct cw_pod pod;                      /* as its environment names it */
	char command[CW_PROCESS_COMMAND_BYTES]; /* NUL-separated arguments */
};

/* One process of the job, before it is known which of them is the rank. */
struct cw_absent_candidate {
	struct cw_absent_found found;
	pid_t ppid;
	bool has_agent, has_record, is_shell;
};

/* A cw_child_main_fn; query: struct cw_absent_query. */
int cw_absent_scan_main(int out_fd, const void *query);

/* ---- its pure parts ---- */

/*
 * Does this environment (NUL-separated) belong to a rank of the job? Fills rank, sizes and source.
 */
bool cw_absent_scan_env_matches(const char *environment, size_t len,
				const struct cw_absent_query *query, struct cw_absent_found *ret);
/* What one line of maps tells. */
void cw_absent_scan_read_map(const char *line, struct cw_absent_candidate *candidate);
/* Moves the ranks among v[0..n) to the front; returns how many there are. */
uint32_t cw_absent_scan_choose(struct cw_absent_candidate *v, uint32_t n);
