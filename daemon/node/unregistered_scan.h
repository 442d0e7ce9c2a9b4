/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scans /proc for ranks of a job that never called NCCL. Such a process has the agent's library
 * mapped and the job's label in its environment, but it has no flight record.
 *
 * Several processes often have the environment of one rank: the shell that started the rank, the
 * program, and its data loader workers. We take the topmost process that is not a shell. If one of
 * these processes has a record, the rank has reached NCCL, and we skip it.
 *
 * Reading environ and maps takes the process's memory lock, which may hang. The scan therefore runs
 * only in a child (loop/children.h), which the daemon kills at a deadline.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/process/process.h"
#include "identity/job_label.h"
#include "record/pod.h"

/* Maximum number of ranks of a job on one node, far above its number of GPUs. */
#define CW_UNREGISTERED_SCAN_MAX_RANKS 64u

/* Size of the longest name of a UNIX socket. */
#define CW_UNREGISTERED_SCAN_SOCKET_BYTES 108

struct cw_unregistered_scan_query {
	char label[CW_JOB_LABEL_BYTES];
	uid_t uid;
	/*
	 * Path of the socket at which the job's agents would register. Another daemon on the
	 * machine may have another socket; the ranks of that daemon do not belong to us.
	 */
	char socket[CW_UNREGISTERED_SCAN_SOCKET_BYTES];
};

/*
 * One rank that the child found. The child writes an array of these. It has read hostile input, so
 * the daemon checks every field.
 */
struct cw_unregistered_scan_found {
	int32_t rank, world_size, local_rank, pid;
	uint64_t start_ticks;
	gid_t gid;
	uint32_t command_len;
	char source[24];                        /* name of the source of the rank's number */
	struct cw_pod pod;                      /* the pod, from the environment */
	char command[CW_PROCESS_COMMAND_BYTES]; /* NUL-separated arguments */
};

/* One process of the job. cw_unregistered_scan_choose() later decides whether it is the rank. */
struct cw_unregistered_scan_candidate {
	struct cw_unregistered_scan_found found;
	pid_t ppid;
	bool has_agent, has_record, is_shell;
};

/*
 * The main function of the child, a cw_child_main_fn. query: a struct cw_unregistered_scan_query.
 */
int cw_unregistered_scan_main(int out_fd, const void *query);
/* Scans as a job of the fork server. fd is the job's end of the pair. Returns the exit status. */
int cw_unregistered_scan_child(int fd);

/* ---- parts that read no file, for tests ---- */

/*
 * True if this environment belongs to a rank of the job. environment: NUL-separated variables.
 * Fills the rank, the sizes and the source of *ret.
 */
bool cw_unregistered_scan_env_matches(const char *environment, size_t len,
				      const struct cw_unregistered_scan_query *query,
				      struct cw_unregistered_scan_found *ret);
/* Notes from one line of maps whether the process has the agent or a record mapped. */
void cw_unregistered_scan_read_map(const char *line,
				   struct cw_unregistered_scan_candidate *candidate);
/* Moves the processes that are ranks to the front of v[0..n). Returns their number. */
uint32_t cw_unregistered_scan_choose(struct cw_unregistered_scan_candidate *v, uint32_t n);
