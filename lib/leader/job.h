/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: a connected component of communicators among the ranks of one job key
 * (docs/design/leader.md#what-a-job-is). Ranks that share a communicator belong together, because
 * only members know its unique id. Labels only help to find the leader.
 *
 * We compute components afresh from each set of digests. The job outlives these sets. It owns the
 * patience (stall tracker), the incidents and the fetched windows.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/stall.h"
#include "leader/history.h"
#include "leader/job_digests.h"
#include "leader/job_incidents.h"
#include "leader/late_ranks.h"
#include "leader/postmortem.h"
#include "model/snapshot.h"
#include "model/text_set.h"
#include "model/verdict_types.h"

/* The maximum number of ops in all windows of a job: 256 suspects with 1,024 ops each. */
#define CW_JOB_MAX_WINDOW_OPS (1u << 18)
/*
 * The maximum number of ops in CW_WINDOW_PAST windows, which last as long as the job. We leave the
 * rest of the room to the other windows.
 */
#define CW_JOB_MAX_PAST_OPS (CW_JOB_MAX_WINDOW_OPS / 2)
/*
 * The maximum size of the call stacks of these ops. This suffices, because the ranks of a job make
 * the same calls from the same lines.
 */
#define CW_JOB_MAX_STACK_BYTES (256u << 10)
/* A window becomes invalid after this time if its member has moved on. */
#define CW_JOB_WINDOW_FRESH_NS (5 * CW_NS_PER_S)

enum cw_window_kind {
	CW_WINDOW_LAST = 0, /* the last ops; valid until the member moves on */
	/* Ops from the point where histories diverged; always valid. */
	CW_WINDOW_PAST = 1,
};

struct cw_job_window {
	struct cw_job_window *next, *prev;
	uint32_t kind; /* enum cw_window_kind */
	uint64_t comm_id;
	uint32_t instance;
	int32_t pid, comm_rank;
	uint64_t start_ticks;
	char *node;
	struct cw_op *ops; /* ops, with times on this daemon's timeline */
	uint32_t n_ops;
	uint64_t lost;
	int64_t read_ns;
	/*
	 * True if op_index, returned and completed are set. The window is fresh while the member's
	 * counters equal them.
	 */
	bool has_marks;
	uint64_t op_index, returned, completed;
};

/* A communicator that also has members outside of this job. */
struct cw_job_view_comm {
	uint64_t id;
	uint32_t nranks, seen;
};
/*
 * The maximum number of such communicators that we list for a job. If a job's label does not cover
 * all of its ranks, the job usually has one.
 */
#define CW_JOB_VIEW_PARTIAL 4u

/* The result of the job's last evaluation, which the status shows. */
struct cw_job_view {
	uint32_t ranks, ranks_expected, comms, nodes, phase, verdict_class;
	uint64_t collectives;
	int64_t since_ns;            /* time when `phase` began */
	int64_t job_timeout_ns;      /* timeout of the job's own watchdog; 0 = unknown */
	char job_timeout_source[64]; /* source of the timeout in words; "" = unknown */
	bool is_timeout_assumed;
	bool is_cut_off;
	char summary[512];
	/*
	 * The job's pods as "namespace/name", each followed by a line feed. Pods that do not fit
	 * are omitted.
	 */
	char pods[1024];
	char pod_namespace[64]; /* namespace of the first rank in a pod; "" = unknown */
	struct cw_job_view_comm partial[CW_JOB_VIEW_PARTIAL];
	uint32_t n_partial;
	/* The last stall that ended by itself. slow_for_ns 0 = none so far. */
	int64_t slow_for_ns, slow_until_ns;
	char slow_what[256];
};

struct cw_job {
	struct cw_job *next, *prev;
	/* Jobs of this daemon are numbered in order of appearance. */
	uint64_t number;
	struct cw_stall *stall;
	struct cw_job_incidents incidents;
	struct cw_job_window *windows;
	/* Number of ops in all windows, and in CW_WINDOW_PAST windows. */
	uint32_t n_window_ops, n_past_ops;
	struct cw_text_set stacks; /* the call stacks of the ops */
	struct cw_history history;
	struct cw_postmortem_memory memory;
	struct cw_late_ranks late;
	uint64_t *windows_over_limit; /* counter of the leader; NULL = no counter */
	unsigned windows_awaited;     /* number of requests in flight */
	int64_t windows_asked_ns;
	/* Time of the last search for ranks without a record; 0 = never. */
	int64_t searched_ns;
	int64_t started_ns, next_ns;
	/* When we last suppressed alerts because of lost contact; awake clock. */
	int64_t partitioned_ns;
	/* Number of the last evaluation pass that evaluated this job. */
	uint64_t pass;
	bool is_due;       /* windows have arrived, so we evaluate at once */
	bool is_announced; /* we have logged the start of the job */
	bool is_seen;      /* the current pass has seen the job */
	struct cw_job_view view;
};

/*
 * Lists all ranks of the digests with their components (0 … n-1), sorted by component. If a rank
 * has no communicator and there is only one component, the rank joins that component. Otherwise
 * such a rank is a component by itself. The caller frees *ret_refs with free(). Returns 0 or
 * -ENOMEM.
 */
int cw_job_components(const struct cw_job_digests *digests, struct cw_rank_ref **ret_refs,
		      unsigned *ret_n_refs, unsigned *ret_n_components);

/* Makes a job without incidents and windows. Returns 0 or -ENOMEM. */
int cw_job_new(uint64_t number, int64_t now_ns, struct cw_job **ret);
/* Frees the job, which may be NULL. The owner must have freed the incidents. Returns NULL. */
struct cw_job *cw_job_free(struct cw_job *job);

/* Copies the windows of a reply. They replace older windows. Omits windows over the limit. */
int cw_job_window_add(struct cw_job *job, const char *node, const struct cw_msg_window_reply *reply,
		      enum cw_window_kind kind, int64_t now_ns);
/* Returns the window of this member. NULL = there is no window, or it is out of date. */
const struct cw_job_window *cw_job_window(struct cw_job *job, const char *node,
					  const struct cw_msg_rank *rank,
					  const struct cw_msg_member *member,
					  enum cw_window_kind kind, int64_t now_ns);
