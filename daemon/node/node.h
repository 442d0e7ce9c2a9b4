/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this daemon knows about the ranks on its own node: the agents that registered, their flight
 * records sampled at 4 Hz, the liveness and headway of their processes. Once a second it makes one
 * digest per job (uid and label; docs/design/node.md#sampling-and-digests) and hands it to whoever
 * forwards digests; on demand it gives out windows and Python stacks.
 *
 * It does not judge, does not know other nodes, does not write to disk.
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
#include "daemon/node/job_numbers.h"
#include "daemon/process/op_stats.h"
#include "digest/fed_tensor.h"
#include "proto/messages.h"

struct cw_job_id;
struct cw_fdstore_entry;
struct cw_fork_server;
struct cw_kernel_events;
struct event_base;
struct cw_node;
struct cw_untracked;

/* A digest was made. Borrowed until the callback returns. */
typedef void (*cw_node_digest_fn)(const struct cw_msg_digest *digest, void *user);

struct cw_node_config {
	struct event_base *base;
	const struct cw_clock *clock; /* borrowed for the node's life */
	struct cw_fork_server *forks; /* the same */
	const char *socket_path;      /* agent socket; made with mode 0666 */
	int listen_fd;                /* from socket activation; -1 = listen on socket_path */
	const char *node_name;
	uint64_t epoch;     /* of this daemon's start, wall ns */
	uint32_t sample_ms; /* 250 */
	uint32_t digest_ms; /* 1000 */
	uint32_t max_processes, max_processes_per_uid;
	bool keeps_descriptors;           /* with the service manager: daemon/process/fdstore.h */
	struct cw_fdstore_entry *fdstore; /* what came back from there; taken, also on failure */
	size_t n_fdstore;
	struct cw_kernel_events *kernel; /* borrowed for the node's life; NULL = none */
	/* Whether a job's leader has an open incident of it; NULL = nobody knows. */
	bool (*has_incident)(const struct cw_job_id *job, void *user);
	cw_node_digest_fn on_digest;
	void *user;
};

/*
 * So many descriptors a rank process takes: its connection, its record, its pidfd and its
 * launcher's, its directory in /proc, its memory cgroup's counter.
 */
#define CW_NODE_PROCESS_FDS 6u
/* Kept back for listeners, peers, children that take evidence, bundles: a quarter, at most these.
 */
#define CW_NODE_OTHER_FDS 512u

/*
 * How many of `wanted` rank processes so many descriptors have room for, at least one. Were places
 * promised that descriptors cannot keep, then who came first would have them all: shares are of
 * what there is.
 */
uint32_t cw_node_room(uint64_t descriptors, uint32_t wanted);

/* 0, or -errno with err set. Starts listening; callbacks come from the event loop. */
int cw_node_new(const struct cw_node_config *config, struct cw_node **ret, struct cw_err *err);
/* Takes NULL; returns NULL. Closes connections; agents reconnect to the next daemon. */
struct cw_node *cw_node_free(struct cw_node *node);

/*
 * Reads windows of the comms named in the request, for all local members that are of the job. The
 * reply's arrays are owned by the caller: cw_node_windows_fini(). 0 or -ENOMEM.
 */
int cw_node_windows(struct cw_node *node, const struct cw_job_id *job,
		    const struct cw_msg_window_request *request, struct cw_msg_window_reply *ret);
void cw_node_windows_fini(struct cw_msg_window_reply *reply);

/*
 * A leader asks for ranks of a job that never called NCCL: daemon/node/absent.h. False: refused.
 */
bool cw_node_search(struct cw_node *node, const struct cw_msg_rank_search *q);

/* Facts about one registered process, for evidence. Borrowed until the loop turns. */
struct cw_node_process {
	pid_t pid;
	uint64_t start_ticks;
	uid_t uid;
	gid_t gid;
	int pidfd; /* -1 = none; borrowed */
	int32_t rank;
	bool is_dead;
	bool has_python; /* armed */
	int64_t idle_ns; /* since the process last used CPU; -1 = unknown */
};

/* False when no such process is registered (any more), nor found by a search. */
bool cw_node_find(struct cw_node *node, pid_t pid, uint64_t start_ticks,
		  struct cw_node_process *ret);
/* Known here, but of another job: nothing of it is for whoever asks about this one. */
bool cw_node_is_of_another(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
			   const struct cw_job_id *job);

/* The job of a registered process. False: it is none, or has no job yet. */
bool cw_node_job(const struct cw_node *node, pid_t pid, uint64_t start_ticks,
		 struct cw_job_id *ret);

/* All registered processes, with their job's label ("" = none yet); borrowed until it returns. */
typedef void (*cw_node_process_fn)(const struct cw_node_process *p, const char *label, void *user);
void cw_node_each(struct cw_node *node, cw_node_process_fn fn, void *user);

/* What their ops add up to, and what they fed; for people. Borrowed until it returns. */
typedef void (*cw_node_ops_fn)(const struct cw_node_process *p, const char *label,
			       const struct cw_op_stats *ops, const struct cw_fed_tensor *fed,
			       void *user);
void cw_node_each_ops(const struct cw_node *node, cw_node_ops_fn fn, void *user);
const struct cw_op_totals *cw_node_op_totals(const struct cw_node *node);

/* status: enum cw_python_status; text borrowed until the callback returns, "" when none. */
typedef void (*cw_node_python_fn)(uint32_t status, const char *text, void *user);

/*
 * Asks the process's agent for its Python stacks. The callback comes exactly once, never from
 * inside this call, at the latest after deadline_ms (then CW_PYTHON_FAILED). -ENOENT: no such
 * process, -ENOTCONN: its agent is not connected. On failure no callback comes.
 * *ret_handle serves cw_node_python_cancel(), after which no callback comes.
 */
int cw_node_python_stacks(struct cw_node *node, pid_t pid, uint64_t start_ticks,
			  uint32_t deadline_ms, cw_node_python_fn fn, void *user,
			  uint64_t *ret_handle);
void cw_node_python_cancel(struct cw_node *node, uint64_t handle);

/*
 * A watched end of a process (pidfd became readable) makes a digest at once instead of at the next
 * second, so that a death is reported within one sampling period.
 */

/* What was told of the numbers of jobs. Borrowed. */
const struct cw_job_numbers *cw_node_numbers(const struct cw_node *node);

/* Rank processes that this node has no place for. Borrowed. */
const struct cw_untracked *cw_node_untracked(const struct cw_node *node);

struct cw_node_stats {
	uint32_t processes, connected, dead;
	uint32_t waiting; /* hellos that wait for their turn */
	uint64_t registered_total, refused_total, bad_messages_total, record_errors_total;
	uint64_t deferred_total;        /* connections ended without a word: they come again */
	uint64_t probes_repeated_total; /* looks at agents that a child did not come to */
	uint64_t looks_cut_total;       /* of headway, at CW_HEADWAY_MAX_FILES */
	uint64_t digests_total, samples_total;
	uint64_t too_costly_total;  /* processes dropped for the memory their records took */
	uint64_t unreadable_total;  /* records of versions this daemon does not know */
	uint64_t no_record_total;   /* agents that could make no record */
	int no_record_error;        /* the errno of the last one */
	uint64_t fed_tensors_total; /* processes that fed NaN or infinity, the first time */
	struct cw_job_numbers_stats numbers;
	uint32_t restored;        /* at start, out of what was kept */
	uint64_t displaced_total; /* living processes that gave their place to another user's */
	uint64_t postponed_total; /* readings that their user had no time left for */
	uint64_t no_place_total;  /* registrations there was no place for */
	uint32_t untracked;       /* rank processes that have no place now */
};
void cw_node_stats(const struct cw_node *node, struct cw_node_stats *ret);
