/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures evidence about a stuck rank on this node: facts from /proc, native stacks and Python
 * stacks (docs/design/evidence.md). A child with a deadline does the slow or dangerous work. It has
 * the rights for this; the daemon does not need them.
 * At most two captures run at the same time; the others wait in a queue.
 *
 * Loop thread only; nothing here blocks.
 */
#pragma once

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "loop/children.h"
#include "proto/messages.h"

struct event_base;
struct cw_fork_server;
struct cw_node;
struct cw_capture;

/* Jobs of the fork server. */
int cw_capture_proc_child(int fd);
int cw_capture_python_child(int fd);
int cw_capture_native_child(int fd);
int cw_capture_sweep_child(int fd);

/* A process that a signal killed, such as SIGSEGV. */
struct cw_capture_ended {
	pid_t pid;     /* as the daemon saw it */
	pid_t own_pid; /* in the process's own pid namespace */
	uid_t uid;
	gid_t gid;
	int64_t ended_wall_ns; /* 0 = unknown */
	char cwd[PATH_MAX];    /* working directory at its registration; "" = unknown */
};

/* What we know of such a process. New references. */
struct cw_capture_ended_parts {
	json_t *core;   /* {"status", "reason", "signal", "tid"} */
	json_t *native; /* the parts of collwatch.evidence/1; NULL = there are no such stacks */
	json_t *python;
};

/* The reader of core files (daemon/evidence/core/core_take.h). */
struct cw_capture_core {
	cw_child_main_fn main; /* its argument is a struct cw_capture_ended */
	cw_fork_child_fn job;
	size_t max_output;
	void (*read)(const char *output, size_t len, bool is_whole,
		     struct cw_capture_ended_parts *ret);
};

struct cw_capture_config {
	struct event_base *base;
	/* Has the jobs above; NULL = we fork the children ourselves. */
	struct cw_fork_server *forks;
	const struct cw_clock *clock;
	struct cw_node *node; /* borrowed; it identifies processes and takes Python stacks */
	const char *node_name;
	/* NULL = a process that has ended has no stacks. */
	const struct cw_capture_core *core;
	uint32_t max_running; /* maximum number of captures at the same time, usually 2 */
	uint32_t max_queued;
};

int cw_capture_new(const struct cw_capture_config *config, struct cw_capture **ret);
/* Kills and reaps the running children. No callback follows. Takes NULL; returns NULL. */
struct cw_capture *cw_capture_free(struct cw_capture *capture);

/*
 * Receives the evidence. json: one collwatch.evidence/1 object (docs/schemas.md), never NULL,
 * borrowed until the callback returns. For each missing part it has the reason.
 */
typedef void (*cw_capture_fn)(const struct cw_msg_evidence_target *target, const char *json,
			      void *user);

/*
 * Queues a capture. After 0 we call fn exactly once, after at most deadline_ms, and never from
 * inside this call. Returns 0 or -errno. -EAGAIN: the queue is full. We count this, and do not call
 * fn.
 *
 * A capture with CW_EVIDENCE_BRIEF is one of many. It starts after all other captures, runs for at
 * most 8 s, and may use three quarters of the queue. Its result has only the threads that show
 * where the rank is.
 */
int cw_capture_request(struct cw_capture *capture, const struct cw_msg_evidence_target *target,
		       uint32_t deadline_ms, cw_capture_fn fn, void *user);

/* Maximum number of processes that one child reads. */
#define CW_CAPTURE_MAX_ALL 64u

/*
 * Like cw_capture_request() for n targets with CW_EVIDENCE_PYTHON_READ, at most CW_CAPTURE_MAX_ALL.
 * One child reads all of these processes. We capture a process in the usual way afterwards if the
 * child found no Python stack of it. Calls fn once for each target. Borrows targets until the
 * return.
 */
int cw_capture_request_all(struct cw_capture *capture, const struct cw_msg_evidence_target *targets,
			   uint32_t n, uint32_t deadline_ms, cw_capture_fn fn, void *user);

struct cw_capture_stats {
	uint64_t done, failed, timed_out, abandoned, refused;
	uint32_t running, queued;
};
void cw_capture_stats(const struct cw_capture *capture, struct cw_capture_stats *ret);
