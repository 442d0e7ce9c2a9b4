/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This daemon's view of the ranks on its own node. The node has the registered agents and their
 * flight records, which it samples at 4 Hz. It also has the liveness and host activity of their
 * processes. Once a second it makes one digest per job (uid and label;
 * docs/design/daemon.md#sampling-and-digests) and passes it to a callback. On request it returns
 * windows (recent calls of ranks) and Python stacks.
 *
 * The node makes no verdicts, does not know other nodes, and writes nothing to disk.
 *
 * Loop thread only; nothing here blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/node/job_tensor_stats.h"
#include "daemon/process/op_stats.h"
#include "digest/extension.h"
#include "digest/nonfinite_input.h"
#include "proto/messages.h"

struct cw_job_id;
struct cw_fdstore_entry;
struct cw_fork_server;
struct cw_kernel_events;
struct event_base;
struct cw_node;
struct cw_untracked;

/* Receives each new digest. Borrowed until the callback returns. */
typedef void (*cw_node_digest_fn)(const struct cw_msg_digest *digest, void *user);

struct cw_node_config {
	struct event_base *base;
	const struct cw_clock *clock; /* borrowed for the node's life */
	struct cw_fork_server *forks; /* borrowed for the node's life */
	const char *socket_path;      /* path of the agent socket, which gets the mode 0666 */
	int listen_fd;                /* from socket activation; -1 = we listen on socket_path */
	const char *node_name;
	const struct cw_extension *extension; /* judges tensor summaries; borrowed */
	uint64_t epoch;                       /* start of this daemon, wall ns */
	uint32_t sample_ms;                   /* interval of samples, usually 250 */
	uint32_t digest_ms;                   /* interval of digests, usually 1000 */
	uint32_t max_processes, max_processes_per_uid;
	/* True if the service manager stores descriptors for us (daemon/process/fdstore.h). */
	bool keeps_descriptors;
	/* Entries that the service manager has stored. The node owns them, also on failure. */
	struct cw_fdstore_entry *fdstore;
	size_t n_fdstore;
	/* Borrowed for the node's life; NULL = no facts from BPF. */
	struct cw_kernel_events *kernel;
	/*
	 * Returns true if the job's leader has an open incident for it. NULL = the node never knows
	 * this.
	 */
	bool (*has_incident)(const struct cw_job_id *job, void *user);
	cw_node_digest_fn on_digest;
	void *user;
};

/*
 * Number of descriptors for a rank process: its connection, its record, its pidfd, its launcher's
 * pidfd, its directory in /proc, and the counter of its memory cgroup.
 */
#define CW_NODE_PROCESS_FDS 6u
/*
 * Maximum number of descriptors reserved for listeners, peers, evidence children and bundles. We
 * reserve a quarter of all descriptors, up to this number.
 */
#define CW_NODE_OTHER_FDS 512u

/*
 * Returns how many of the `wanted` rank processes fit into this many descriptors, at least one.
 * Quotas divide the result among users. If it were too high, the first user could take all
 * descriptors within its quota.
 */
uint32_t cw_node_room(uint64_t descriptors, uint32_t wanted);

/* Starts to listen. All callbacks come from the event loop. Returns 0, or -errno with err set. */
int cw_node_new(const struct cw_node_config *config, struct cw_node **ret, struct cw_err *err);
/* Closes all connections. The agents will connect to the next daemon. Takes NULL; returns NULL. */
struct cw_node *cw_node_free(struct cw_node *node);

/*
 * Reads windows of the requested communicators, for all members of the job on this node. The caller
 * owns the arrays of the reply, and frees them with cw_node_windows_fini(). Returns 0 or -ENOMEM.
 */
int cw_node_windows(struct cw_node *node, const struct cw_job_id *job,
		    const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
void cw_node_windows_fini(struct cw_msg_window_reply *reply);

/*
 * Searches for ranks of a job that never called NCCL, because a leader requests it
 * (daemon/node/unregistered_ranks.h). Returns false if we refuse the request.
 */
bool cw_node_search(struct cw_node *node, const struct cw_msg_rank_search *q);

/*
 * Facts about one process, for evidence. Pointers and descriptors are borrowed until the next
 * iteration of the loop.
 */
struct cw_node_process {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid;
	gid_t gid;
	int pidfd; /* borrowed; -1 = none */
	int32_t rank;
	bool is_dead;
	bool is_crashed;  /* a signal such as SIGSEGV or SIGABRT killed it */
	int64_t ended_ns; /* 0 = it lives */
	pid_t own_pid;    /* in its own pid namespace; 0 = the same as pid */
	const char *cwd;  /* working directory at its registration; "" = unknown */
	bool has_python;  /* the agent of the process can take Python stacks */
	int64_t idle_ns;  /* time since the process last used CPU; -1 = unknown */
};

/*
 * Finds a process that is registered, or that a search for ranks has found. Returns false if there
 * is none.
 */
bool cw_node_find(struct cw_node *node, pid_t pid, uint64_t start_ticks,
		  struct cw_node_process *ret);
/*
 * True if we know that the process belongs to another job. Evidence for this job must then not use
 * the process.
 */
bool cw_node_is_of_another(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
			   const struct cw_job_id *job);

/*
 * Calls fn for each registered process. label: the label of its job; "" = not known yet. Both are
 * borrowed until fn returns.
 */
typedef void (*cw_node_process_fn)(const struct cw_node_process *p, const char *label, void *user);
void cw_node_each(struct cw_node *node, cw_node_process_fn fn, void *user);

/*
 * Calls fn for each process, with the totals of its ops and its non-finite input. These facts are
 * only for users; no verdict depends on them. All are borrowed until fn returns.
 */
typedef void (*cw_node_ops_fn)(const struct cw_node_process *p, const char *label,
			       const struct cw_op_stats *ops,
			       const struct cw_nonfinite_input *nonfinite_input, void *user);
void cw_node_each_ops(const struct cw_node *node, cw_node_ops_fn fn, void *user);
const struct cw_op_totals *cw_node_op_totals(const struct cw_node *node);

/*
 * Receives the Python stacks. status: an enum cw_python_status. text: the stacks, borrowed until
 * the callback returns; "" = none.
 */
typedef void (*cw_node_python_fn)(uint32_t status, const char *text, void *user);

/*
 * Asks the process's agent for its Python stacks. After 0, we call fn exactly once, and never from
 * inside this call. At deadline_ms fn gets CW_PYTHON_FAILED. cw_node_python_cancel() with
 * *ret_handle prevents the call. Returns 0 or -errno; after an error fn is not called. -ENOENT:
 * there is no such process. -ENOTCONN: its agent is not connected.
 */
int cw_node_python_stacks(struct cw_node *node, pid_t pid, uint64_t start_ticks,
			  uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			  uint64_t *ret_handle);
void cw_node_python_cancel(struct cw_node *node, uint64_t handle);

/*
 * The node watches the pidfd of each process. When a process ends, we make a digest of its job at
 * once, without waiting for the next second. We therefore report a death within one sampling
 * interval.
 */

/* Returns the object with the findings on tensor summaries. Borrowed. */
const struct cw_job_tensor_stats *cw_node_tensor_stats(const struct cw_node *node);

/*
 * Returns the rank processes that we do not watch, because the table of processes is full.
 * Borrowed.
 */
const struct cw_untracked *cw_node_untracked(const struct cw_node *node);

struct cw_node_stats {
	uint32_t processes, connected, dead;
	uint32_t waiting; /* agents whose hello waits for its check */
	uint64_t registered_total, refused_total, bad_messages_total, record_errors_total;
	/* Connections closed without an answer, after which the agent tries again. */
	uint64_t deferred_total;
	/* Agents that a probe child did not check, so that we repeat the check. */
	uint64_t probes_repeated_total;
	uint64_t scans_cut_total; /* host activity scans cut short at CW_HOST_ACTIVITY_MAX_FILES */
	uint64_t digests_total, samples_total;
	/* Processes dropped because their records took too much memory. */
	uint64_t too_costly_total;
	uint64_t unreadable_total; /* records of a version that this daemon does not know */
	uint64_t no_record_total;  /* agents that could not make a record */
	int no_record_error;       /* errno of the last such agent */
	/* Processes that passed NaN or infinity to an op, counted once each. */
	uint64_t nonfinite_inputs_total;
	uint64_t findings_total[CW_EXTENSION_KINDS]; /* findings on tensor summaries, by kind */
	uint32_t restored; /* processes restored from the fdstore at start */
	/* Living processes that left the full table for a process of another user. */
	uint64_t displaced_total;
	uint64_t postponed_total; /* readings postponed because the user's budget was spent */
	/* Registrations refused because the table of processes is full. */
	uint64_t over_quota_total;
	/* Rank processes that we do not watch now, because the table of processes is full. */
	uint32_t untracked;
	uint64_t untracked_dropped_total; /* cw_untracked_dropped() */
};
void cw_node_stats(const struct cw_node *node, struct cw_node_stats *ret);
