/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job: a connected component of communicators among the ranks of one route
 * (docs/design/leader.md#what-a-job-is). Labels only help to find the leader; who shares a
 * communicator belongs together, because only members know its unique id.
 *
 * Components are computed afresh from each set of digests; a job is what stays the same between
 * them: it owns the patience (stall tracker), the incidents and the fetched windows.
 *
 * Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/stall/stall.h"
#include "common/text_set.h"
#include "leader/epitaph.h"
#include "leader/history.h"
#include "leader/job_incidents.h"
#include "leader/late_ranks.h"
#include "leader/route.h"
#include "model/snapshot.h"
#include "model/verdict_types.h"

/* Ops of all windows of a job: 256 suspects with 1,024 ops each. */
#define CW_JOB_MAX_WINDOW_OPS (1u << 18)
/* … and of those that stay as long as the job: the others must find room, too. */
#define CW_JOB_MAX_PAST_OPS (CW_JOB_MAX_WINDOW_OPS / 2)
/* Their call stacks: a job's ranks issue the same calls from the same lines. */
#define CW_JOB_MAX_STACK_BYTES (256u << 10)
/* A window whose member has moved on since is history after this long. */
#define CW_JOB_WINDOW_FRESH_NS (5 * CW_NS_PER_S)

enum cw_window_kind {
	CW_WINDOW_LAST = 0, /* the last ops: true until the member moves on */
	CW_WINDOW_PAST = 1, /* ops from where histories parted: true for ever */
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
	bool has_marks; /* the member's counters when the window came; it is fresh while they hold
			 */
	uint64_t op_index, returned, completed;
};

/* A communicator with members that are no ranks of this job. */
struct cw_job_view_comm {
	uint64_t id;
	uint32_t nranks, seen;
};
/* A job whose label is not that of all its ranks has one as a rule. */
#define CW_JOB_VIEW_PARTIAL 4u

/* What the last look at the job showed; for status. */
struct cw_job_view {
	uint32_t ranks, ranks_expected, comms, nodes, phase, verdict_class;
	uint64_t collectives;
	int64_t since_ns;            /* when `phase` began */
	int64_t job_timeout_ns;      /* of its own watchdog; 0 = none is known */
	char job_timeout_source[64]; /* what says so, for people; "" = not known */
	bool is_timeout_assumed;
	bool is_cut_off;
	char summary[512];
	/* Its pods, "namespace/name", each with a line feed behind it; as many as there is room
	 * for. */
	char pods[1024];
	char pod_namespace[64]; /* of the first rank that is in a pod; "" = not known */
	struct cw_job_view_comm partial[CW_JOB_VIEW_PARTIAL];
	uint32_t n_partial;
	/* The last stall that went on by itself; slow_for_ns 0 = there was none. */
	int64_t slow_for_ns, slow_until_ns;
	char slow_what[256];
};

struct cw_job {
	struct cw_job *next, *prev;
	uint64_t number; /* order of appearance on this daemon */
	struct cw_stall *stall;
	struct cw_job_incidents incidents;
	struct cw_job_window *windows;
	uint32_t n_window_ops, n_past_ops; /* of all windows, and of those of CW_WINDOW_PAST */
	struct cw_text_set stacks;         /* from where their ops were issued */
	struct cw_history history;
	struct cw_epitaph_memory memory;
	struct cw_late_ranks late;
	uint64_t *left_out_windows; /* counts them; NULL = nobody does */
	unsigned windows_awaited;   /* requests in flight */
	int64_t windows_asked_ns;
	int64_t searched_ns; /* for ranks without a record; 0 = never */
	int64_t started_ns, next_ns;
	int64_t apart_ns;  /* awake; when its leader last held its tongue for not being in touch */
	uint64_t pass;     /* its leader's last over the jobs of the route that came to this one */
	bool is_due;       /* windows came: look at once */
	bool is_announced; /* its start was logged */
	bool is_seen;      /* in the pass under way */
	struct cw_job_view view;
};

/*
 * Lists all ranks of the route with their component (0 … n-1), grouped by component. A rank without
 * any communicator yet goes with the only component there is, else it stands alone. *ret_refs:
 * free(). 0 or -ENOMEM.
 */
int cw_job_components(const struct cw_route *route, struct cw_rank_ref **ret_refs,
		      unsigned *ret_n_refs, unsigned *ret_n_components);

/* 0 or -ENOMEM. */
int cw_job_new(uint64_t number, int64_t now_ns, struct cw_job **ret);
/* Takes NULL; returns NULL. The incidents must be gone. */
struct cw_job *cw_job_free(struct cw_job *job);

/* Copies the windows of a reply, replacing older ones; beyond the limit they are left out. */
int cw_job_window_add(struct cw_job *job, const char *node, const struct cw_msg_window_reply *reply,
		      enum cw_window_kind kind, int64_t now_ns);
/* The window of this member, if it still says something about it. */
const struct cw_job_window *cw_job_window(struct cw_job *job, const char *node,
					  const struct cw_msg_rank *rank,
					  const struct cw_msg_member *member,
					  enum cw_window_kind kind, int64_t now_ns);
