/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: a connected component of communicators among the ranks of one job key
 * (docs/design/leader.md#what-a-job-is). Labels only help to find the leader. Ranks that share a
 * communicator belong together, because only members know its unique id.
 *
 * We compute components afresh from each set of digests. The job outlives the sets: it owns the
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

/* Most ops in all windows of a job: 256 suspects with 1,024 ops each. */
#define CW_JOB_MAX_WINDOW_OPS (1u << 18)
/* Most ops in windows that last as long as the job. The other windows need room, too. */
#define CW_JOB_MAX_PAST_OPS (CW_JOB_MAX_WINDOW_OPS / 2)
/*
 * Most bytes of call stacks of these ops. Ranks of a job make the same calls from the same lines,
 * so this suffices.
 */
#define CW_JOB_MAX_STACK_BYTES (256u << 10)
/* If its member has moved on, a window becomes invalid after this time. */
#define CW_JOB_WINDOW_FRESH_NS (5 * CW_NS_PER_S)

enum cw_window_kind {
	CW_WINDOW_LAST = 0, /* the last ops; valid until the member moves on */
	CW_WINDOW_PAST = 1, /* ops from where histories diverged; always valid */
};

struct cw_job_window {
	struct cw_job_window *next, *prev;
	uint32_t kind; /* enum cw_window_kind */
	uint64_t comm_id;
	uint32_t instance;
	int32_t pid, comm_rank;
	uint64_t start_ticks;
	char *node;
	struct cw_op *ops; /* on this daemon's timeline */
	uint32_t n_ops;
	uint64_t lost;
	int64_t read_ns;
	bool has_marks; /* op_index, returned and completed are set; the window is fresh while
			 * they hold */
	uint64_t op_index, returned, completed;
};

/* A communicator that also has members outside this job. */
struct cw_job_view_comm {
	uint64_t id;
	uint32_t nranks, seen;
};
/*
 * Most such communicators of a job that we list. If a job's label does not cover all of its ranks,
 * it usually has one.
 */
#define CW_JOB_VIEW_PARTIAL 4u

/* The result of the job's last evaluation, for the status. */
struct cw_job_view {
	uint32_t ranks, ranks_expected, comms, nodes, phase, verdict_class;
	uint64_t collectives;
	int64_t since_ns;            /* time when `phase` began */
	int64_t job_timeout_ns;      /* timeout of the job's own watchdog; 0 = unknown */
	char job_timeout_source[64]; /* source of the timeout in words; "" = unknown */
	bool is_timeout_assumed;
	bool is_cut_off;
	char summary[512];
	/* The job's pods as "namespace/name", as many as fit, with a line feed after each. */
	char pods[1024];
	char pod_namespace[64]; /* namespace of the first rank in a pod; "" = unknown */
	struct cw_job_view_comm partial[CW_JOB_VIEW_PARTIAL];
	uint32_t n_partial;
	/* The last stall that ended by itself; slow_for_ns 0 = none so far. */
	int64_t slow_for_ns, slow_until_ns;
	char slow_what[256];
};

struct cw_job {
	struct cw_job *next, *prev;
	uint64_t number; /* order of appearance on this daemon */
	struct cw_stall *stall;
	struct cw_job_incidents incidents;
	struct cw_job_window *windows;
	uint32_t n_window_ops, n_past_ops; /* in all windows, and in windows of CW_WINDOW_PAST */
	struct cw_text_set stacks;         /* call stacks of the ops */
	struct cw_history history;
	struct cw_postmortem_memory memory;
	struct cw_late_ranks late;
	uint64_t *windows_over_limit; /* counter; NULL = no counter */
	unsigned windows_awaited;     /* requests in flight */
	int64_t windows_asked_ns;
	int64_t searched_ns; /* last search for ranks without a record; 0 = never */
	int64_t started_ns, next_ns;
	int64_t partitioned_ns; /* awake; when we last stayed silent because of lost contact */
	uint64_t pass;          /* number of the last evaluation pass that reached this job */
	bool is_due;            /* windows arrived: evaluate at once */
	bool is_announced;      /* we have logged the start of the job */
	bool is_seen;           /* the current pass has seen it */
	struct cw_job_view view;
};

/*
 * Lists all ranks of the digests with their component (0 … n-1), sorted by component. If a rank has
 * no communicator and there is only one component, the rank joins it. Otherwise the rank is a
 * component by itself. *ret_refs: free(). Returns 0 or -ENOMEM.
 */
int cw_job_components(const struct cw_job_digests *digests, struct cw_rank_ref **ret_refs,
		      unsigned *ret_n_refs, unsigned *ret_n_components);

/* Returns 0 or -ENOMEM. */
int cw_job_new(uint64_t number, int64_t now_ns, struct cw_job **ret);
/* Takes NULL; returns NULL. The owner must have freed the incidents. */
struct cw_job *cw_job_free(struct cw_job *job);

/* Copies the windows of a reply, which replace older ones. Omits windows over the limit. */
int cw_job_window_add(struct cw_job *job, const char *node, const struct cw_msg_window_reply *reply,
		      enum cw_window_kind kind, int64_t now_ns);
/*
 * Returns the window of this member. NULL = there is none, or it no longer says anything about the
 * member.
 */
const struct cw_job_window *cw_job_window(struct cw_job *job, const char *node,
					  const struct cw_msg_rank *rank,
					  const struct cw_msg_member *member,
					  enum cw_window_kind kind, int64_t now_ns);
