/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans /proc for ranks of a job that never called NCCL. Such a process has the agent's library
 * mapped and the job's label in its environment, but it has no flight record.
 *
 * Often several processes share one rank's environment: the shell that started the rank, the
 * program, and its data loader workers. We take the topmost process that is not a shell. If any of
 * them has a record, the rank did reach NCCL and the scan skips it.
 *
 * Reading environ and maps takes the process's memory lock, and that may hang. So the scan runs
 * only in a child (loop/children.h), which the daemon kills at its deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/process.h"
#include "identity/job_label.h"
#include "record/pod.h"

/* The limit of one job's ranks on one node, far above its GPUs. */
#define CW_UNREGISTERED_SCAN_MAX_RANKS 64u

/* The longest possible name of a UNIX socket. */
#define CW_UNREGISTERED_SCAN_SOCKET_BYTES 108

struct cw_unregistered_scan_query {
	char label[CW_JOB_LABEL_BYTES];
	uid_t uid;
	/*
	 * The socket at which the processes' agents would register. Other daemons may run on the
	 * machine, and their ranks are not ours.
	 */
	char socket[CW_UNREGISTERED_SCAN_SOCKET_BYTES];
};

/*
 * The child writes an array of these. The child has read hostile input, so the reader checks every
 * field.
 */
struct cw_unregistered_scan_found {
	int32_t rank, world_size, local_rank, pid;
	uint64_t start_ticks;
	gid_t gid;
	uint32_t command_len;
	char source[24];                        /* where the rank's number comes from */
	struct cw_pod pod;                      /* pod, from the environment */
	char command[CW_PROCESS_COMMAND_BYTES]; /* NUL-separated arguments */
};

/* One process of the job. cw_unregistered_scan_choose() decides later which process is the rank. */
struct cw_unregistered_scan_candidate {
	struct cw_unregistered_scan_found found;
	pid_t ppid;
	bool has_agent, has_record, is_shell;
};

/* Runs in the child; a cw_child_main_fn. query is a struct cw_unregistered_scan_query. */
int cw_unregistered_scan_main(int out_fd, const void *query);

/* ---- pure parts ---- */

/*
 * True if this environment (NUL-separated) belongs to a rank of the job. Fills rank, sizes and
 * source of *ret.
 */
bool cw_unregistered_scan_env_matches(const char *environment, size_t len,
				      const struct cw_unregistered_scan_query *query,
				      struct cw_unregistered_scan_found *ret);
/* Notes whether the process has mapped the agent or a record, from one line of maps. */
void cw_unregistered_scan_read_map(const char *line,
				   struct cw_unregistered_scan_candidate *candidate);
/* Moves the ranks among v[0..n) to the front and returns their number. */
uint32_t cw_unregistered_scan_choose(struct cw_unregistered_scan_candidate *v, uint32_t n);
