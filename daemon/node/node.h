/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This daemon's view of the ranks on its own node. The node holds the registered agents, their
 * flight records, sampled at 4 Hz, and the liveness and host activity of their processes. Once a
 * second it makes one digest per job (uid and label; docs/design/daemon.md#sampling-and-digests)
 * and passes it to a callback. On demand it returns windows and Python stacks.
 *
 * The node does not judge, does not know other nodes, and does not write to disk.
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
	const char *socket_path;      /* agent socket; made with mode 0666 */
	int listen_fd;                /* from socket activation; -1 = we listen on socket_path */
	const char *node_name;
	const struct cw_extension *extension; /* judges tensor summaries; borrowed */
	uint64_t epoch;                       /* start of this daemon, wall ns */
	uint32_t sample_ms;                   /* 250 */
	uint32_t digest_ms;                   /* 1000 */
	uint32_t max_processes, max_processes_per_uid;
	bool keeps_descriptors; /* in the service manager: daemon/process/fdstore.h */
	/* Entries restored from there; we take them, also on failure. */
	struct cw_fdstore_entry *fdstore;
	size_t n_fdstore;
	struct cw_kernel_events *kernel; /* borrowed for the node's life; NULL = none */
	/* True if the job's leader has an open incident for it. NULL = the node never knows. */
	bool (*has_incident)(const struct cw_job_id *job, void *user);
	cw_node_digest_fn on_digest;
	void *user;
};

/*
 * The descriptors of a rank process: its connection, its record, its pidfd, its launcher's pidfd,
 * its directory in /proc, and the counter of its memory cgroup.
 */
#define CW_NODE_PROCESS_FDS 6u
/*
 * The number of descriptors reserved for listeners, peers, evidence children and bundles. It is a
 * quarter of all descriptors, but at most this many.
 */
#define CW_NODE_OTHER_FDS 512u

/*
 * Returns how many of the `wanted` rank processes fit into this many descriptors, at least one.
 * Quotas divide this number. If we promised places without descriptors for them, the first user to
 * arrive could take all descriptors.
 */
uint32_t cw_node_room(uint64_t descriptors, uint32_t wanted);

/* 0, or -errno with err set. Starts listening; the event loop makes the callbacks. */
int cw_node_new(const struct cw_node_config *config, struct cw_node **ret, struct cw_err *err);
/* Closes the connections; the agents reconnect to the next daemon. Takes NULL; returns NULL. */
struct cw_node *cw_node_free(struct cw_node *node);

/*
 * Reads windows of the requested comms, for all local members of the job. The caller owns the
 * reply's arrays and frees them with cw_node_windows_fini(). 0 or -ENOMEM.
 */
int cw_node_windows(struct cw_node *node, const struct cw_job_id *job,
		    const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
void cw_node_windows_fini(struct cw_msg_window_reply *reply);

/*
 * Searches, at the request of a leader, for ranks of a job that never called NCCL
 * (daemon/node/unregistered_ranks.h). False if we refuse the request.
 */
bool cw_node_search(struct cw_node *node, const struct cw_msg_rank_search *q);

/* Facts about one process, for evidence. Borrowed until the next iteration of the loop. */
struct cw_node_process {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid;
	gid_t gid;
	int pidfd; /* -1 = none; borrowed */
	int32_t rank;
	bool is_dead;
	bool has_python; /* the agent of the process can take Python stacks */
	int64_t idle_ns; /* time since the process last used CPU; -1 = unknown */
};

/* Finds a process that is registered now, or that a search has found. False if there is none. */
bool cw_node_find(struct cw_node *node, pid_t pid, uint64_t start_ticks,
		  struct cw_node_process *ret);
/*
 * True if we know the process and it belongs to a job other than this one. Evidence for this job
 * must then not use it.
 */
bool cw_node_is_of_another(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
			   const struct cw_job_id *job);

/*
 * Calls fn for each registered process, with the label of its job ("" = no job yet). Both are
 * borrowed until fn returns.
 */
typedef void (*cw_node_process_fn)(const struct cw_node_process *p, const char *label, void *user);
void cw_node_each(struct cw_node *node, cw_node_process_fn fn, void *user);

/*
 * Calls fn for each process with the totals of its ops and its non-finite input. We show these only
 * to people. Borrowed until fn returns.
 */
typedef void (*cw_node_ops_fn)(const struct cw_node_process *p, const char *label,
			       const struct cw_op_stats *ops,
			       const struct cw_nonfinite_input *nonfinite_input, void *user);
void cw_node_each_ops(const struct cw_node *node, cw_node_ops_fn fn, void *user);
const struct cw_op_totals *cw_node_op_totals(const struct cw_node *node);

/*
 * Receives the stacks. status is an enum cw_python_status. text is borrowed until the callback
 * returns; "" = none.
 */
typedef void (*cw_node_python_fn)(uint32_t status, const char *text, void *user);

/*
 * Asks the process's agent for its Python stacks. The callback comes exactly once, never from
 * inside this call, and at the latest after deadline_ms; it then gets CW_PYTHON_FAILED. On failure
 * no callback comes. -ENOENT: there is no such process. -ENOTCONN: its agent is not connected. With
 * *ret_handle, cw_node_python_cancel() prevents the callback.
 */
int cw_node_python_stacks(struct cw_node *node, pid_t pid, uint64_t start_ticks,
			  uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			  uint64_t *ret_handle);
void cw_node_python_cancel(struct cw_node *node, uint64_t handle);

/*
 * The node watches the pidfd of each process. When a process ends, we make its job's digest at once
 * instead of at the next second. So we report a death within one sampling period.
 */

/* Returns the findings on jobs' tensor summaries. Borrowed. */
const struct cw_job_tensor_stats *cw_node_tensor_stats(const struct cw_node *node);

/* Returns the rank processes that did not get a place on this node. Borrowed. */
const struct cw_untracked *cw_node_untracked(const struct cw_node *node);

struct cw_node_stats {
	uint32_t processes, connected, dead;
	uint32_t waiting; /* agents whose hello is queued */
	uint64_t registered_total, refused_total, bad_messages_total, record_errors_total;
	uint64_t deferred_total;        /* connections closed without an answer: agents retry */
	uint64_t probes_repeated_total; /* agent probes that a child did not get to */
	uint64_t scans_cut_total; /* host activity scans cut short at CW_HOST_ACTIVITY_MAX_FILES */
	uint64_t digests_total, samples_total;
	/* Processes dropped because their records took too much memory. */
	uint64_t too_costly_total;
	uint64_t unreadable_total; /* records whose version this daemon does not know */
	uint64_t no_record_total;  /* agents that failed to make a record */
	int no_record_error;       /* errno of the last such failure */
	/* Processes that passed NaN or infinity to an op, counted once each. */
	uint64_t nonfinite_inputs_total;
	uint64_t findings_total[CW_EXTENSION_KINDS]; /* on tensor summaries */
	uint32_t restored;         /* processes restored from the fdstore at start */
	uint64_t displaced_total;  /* living processes that lost their place to another user's */
	uint64_t postponed_total;  /* readings deferred because the user's budget was spent */
	uint64_t over_quota_total; /* registrations refused because all places were taken */
	uint32_t untracked;        /* rank processes that have no place now */
};
void cw_node_stats(const struct cw_node *node, struct cw_node_stats *ret);
