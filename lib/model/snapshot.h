/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of the engine: all known facts about one job at one instant.
 *
 * A snapshot is plain data, without clock, descriptors and callbacks. The daemon fills it from
 * digests and windows, the CLI from a bundle, the suite from scenario files, and the benchmark from
 * a generator. The engine cannot tell these sources apart. All times are in ns on one timeline,
 * which the maker of the snapshot chooses. `now_ns` is the instant that the snapshot describes.
 * Inside a snapshot we refer to ranks by index into `ranks`. The user knows a rank by the number
 * `ranks[i].rank`.
 *
 * Absence is explicit. A counter without its CW_KNOWN_ bit, a window that is NULL, and a member
 * without a rank are "not visible". The engine must never treat them as zero.
 *
 * model/fact_list.h lists the facts about ranks, communicators and members. The snapshot owns their
 * texts, which may be NULL.
 *
 * Ownership: the snapshot owns all its data. cw_snapshot_new() makes an empty snapshot, the
 * cw_snapshot_add_* functions grow it, and cw_snapshot_free() frees it. The next add to an array
 * invalidates pointers into the array. Not thread-safe; no blocking. The only errors are -ENOMEM
 * and limits (-E2BIG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/facts.h"
#include "model/op.h"

#define CW_SNAP_NONE UINT32_MAX

/* Limits of a snapshot. We need them because snapshots are built from untrusted data. */
#define CW_SNAP_MAX_RANKS (1u << 20)
#define CW_SNAP_MAX_COMMS (1u << 22)
#define CW_SNAP_MAX_MEMBERS (1u << 24)
#define CW_SNAP_MAX_STACKS 1024u

enum cw_node_state {
	CW_NODE_REPORTING = 0,
	/* The node sent no digest for longer than node_silent_ns; perhaps it is only slow. */
	CW_NODE_SILENT = 1,
	CW_NODE_SAID_GOODBYE = 2, /* the node's daemon said goodbye and restarts: we wait for it */
	/* The node was reporting, stopped without a goodbye, and refuses to reconnect. */
	CW_NODE_UNREACHABLE = 3,
};

struct cw_snap_node {
	const char *name; /* owned by the snapshot */
	uint32_t state;   /* enum cw_node_state */
	int64_t last_digest_ns;
};

struct cw_snap_rank {
	CW_SAME_FACTS(rank_facts, CW_RANK_FACTS);
	CW_RANK_FACTS(CW_KEPT_FIELD)
	CW_SAME_FACTS(cause_facts, CW_CAUSE_FACTS);
	CW_CAUSE_FACTS(CW_KEPT_FIELD)
	struct cw_op host_call; /* kind CW_OP_NONE = the rank is in no such call */
};

/*
 * True if both ranks are in one process. A process that drives several devices counts as several
 * ranks, which live and die together.
 */
static inline bool cw_snap_rank_shares_process(const struct cw_snap_rank *a,
					       const struct cw_snap_rank *b)
{
	return a == b || (a->pid > 0 && a->pid == b->pid && a->start_ticks &&
			  a->start_ticks == b->start_ticks && a->node == b->node);
}

/* A member has two checkpoints for each level of cw_checkpoint_slot() (model/signature.h). */
#define CW_SNAP_CHECKPOINTS 8
#define CW_SNAP_MAX_LAST_HASHES 8u

#define CW_SNAP_MAX_CONNECTIONS 1024u /* per member: all slots of a record */

struct cw_snap_connection {
	CW_SAME_FACTS(connection_facts, CW_CONNECTION_FACTS);
	CW_CONNECTION_FACTS(CW_KEPT_FIELD)
};

/* One rank's facts about one comm. The index in the comm's `members` is the comm rank. */
struct cw_snap_member {
	CW_SAME_FACTS(member_facts, CW_MEMBER_FACTS);
	CW_MEMBER_FACTS(CW_KEPT_FIELD)
	struct cw_checkpoint checkpoints[CW_SNAP_CHECKPOINTS]; /* newest first */
	struct cw_checkpoint *last_hashes;                     /* owned, oldest first */
	uint32_t n_last_hashes;
	struct cw_op *pending; /* owned, NULL = none */
	struct cw_op *last;    /* owned, NULL = none */
	/*
	 * The last ops, the oldest first. A few older ops may precede them. Owned; NULL = not
	 * fetched.
	 */
	struct cw_op *window;
	uint32_t n_window;
	uint32_t n_p2p;
	struct cw_p2p_peer *p2p; /* owned */
	uint32_t n_connections;
	struct cw_snap_connection *connections; /* owned */
};

struct cw_snap_comm {
	CW_SAME_FACTS(comm_facts, CW_COMM_FACTS);
	CW_COMM_FACTS(CW_KEPT_FIELD)
	struct cw_snap_member *members; /* array of nranks members; owned */
	/*
	 * Private: the `last` ops of all members, side by side, because the engine reads them in
	 * sequence.
	 */
	struct cw_op *last_ops;
	uint32_t n_claimed; /* private: number of members with a rank */
};

/*
 * Time limits in ns. cw_thresholds_default() has the defaults of docs/design/patience.md#patience.
 */
struct cw_thresholds {
	int64_t stall_min_ns, stall_max_ns; /* bounds of T, the patience with a collective */
	uint32_t stall_factor;              /* T = factor × median interval */
	int64_t first_op_ns, first_op_per_rank_ns;
	int64_t proof_ns;             /* the time from the first sight of a proof to its alert */
	int64_t confirm_ns;           /* minimum time between two equal readings of the evidence */
	int64_t window_after_ns;      /* fetch windows if a comm's oldest pending op is this old */
	int64_t no_progress_after_ns; /* the setting no_progress_after */
	/* The minimum time until we report a wait whose culprit is unknown. */
	int64_t host_activity_alert_ns;
	int64_t in_collective_ns; /* limit for progress words that do not change */
	int64_t node_silent_ns;
	uint64_t bytes_per_s; /* assumed worst bandwidth of large ops; 0 = no assumption */
};

enum cw_policy { CW_POLICY_TRAINING = 0, CW_POLICY_SERVING = 1, CW_POLICY_OFF = 2 };

struct cw_snapshot {
	int64_t now_ns;  /* the instant that the snapshot describes */
	int64_t wall_ns; /* wall time of now_ns, for people; 0 = unknown */
	/*
	 * The total time until now_ns in which the maker of the snapshot was held up, for example
	 * stopped (common/awake.h), and evaluated nothing. Documents do not contain held_ns.
	 */
	int64_t held_ns;
	const char *job;         /* label of the job; owned */
	const char *group;       /* the source of the rank numbers, for example "RANK"; owned */
	uint32_t policy;         /* enum cw_policy */
	uint32_t ranks_expected; /* 0 = unknown */
	/*
	 * Number of rank processes that the node does not watch and that `ranks` therefore lacks.
	 */
	uint32_t untracked;
	/*
	 * For imported dumps: the number of incomplete calls, including those that no member shows.
	 * Documents do not contain open_calls.
	 */
	uint32_t open_calls;
	/*
	 * Number of calls that the dumps list or count, including omitted calls. Documents do not
	 * contain listed_calls.
	 */
	uint64_t listed_calls;
	struct cw_thresholds thresholds;
	struct cw_snap_node *nodes;
	struct cw_snap_rank *ranks;
	struct cw_snap_comm *comms;
	uint32_t n_nodes, n_ranks, n_comms;
	const char **notes; /* facts that were not visible; owned */
	uint32_t n_notes;
	const char **stacks; /* call stacks of ops, one line per frame; owned */
	uint32_t n_stacks;
	struct cw_snap_store *store; /* private: owns all of the above */
};

struct cw_thresholds cw_thresholds_default(void);

/* Returns an empty snapshot; NULL = out of memory. */
struct cw_snapshot *cw_snapshot_new(void);
/* Empties the snapshot, but keeps its memory for the next one. */
void cw_snapshot_reset(struct cw_snapshot *snap);
/* Frees the snapshot, which may be NULL. Returns NULL. */
struct cw_snapshot *cw_snapshot_free(struct cw_snapshot *snap);

/*
 * cw_snapshot_set_job() and the cw_snapshot_add_* functions copy their strings, which may be NULL.
 * They return 0, -ENOMEM or -E2BIG.
 */
int cw_snapshot_set_job(struct cw_snapshot *snap, const char *job, const char *group);
int cw_snapshot_add_note(struct cw_snapshot *snap, const char *note);
/*
 * Adds a call stack and stores its number, which ops refer to. Equal texts get the same number. If
 * the snapshot already has CW_SNAP_MAX_STACKS other stacks, *ret_number is 0.
 */
int cw_snapshot_add_stack(struct cw_snapshot *snap, const char *text, uint32_t *ret_number);
int cw_snapshot_add_node(struct cw_snapshot *snap, const char *name, uint32_t *ret_index);
/*
 * Adds a copy of *rank with its texts. If the facts about its death or stop are known, `cause` of
 * the copy becomes their text (model/cause.h).
 */
int cw_snapshot_add_rank(struct cw_snapshot *snap, const struct cw_snap_rank *rank,
			 uint32_t *ret_index);
/*
 * Adds a comm with a copy of the scalars and the name of *comm. The comm gets nranks members, whose
 * rank is CW_SNAP_NONE. A pointer to the comm is valid until the next cw_snapshot_add_comm().
 */
int cw_snapshot_add_comm(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			 uint32_t *ret_index);
/*
 * Like cw_snapshot_add_comm(), but for a caller that fills nearly all of many members. The function
 * saves the time of zeroing the members. Until cw_snapshot_clear_unclaimed() zeroes the members
 * without a rank, the caller may read only the rank of these members.
 */
int cw_snapshot_add_comm_raw(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			     uint32_t *ret_index);
void cw_snapshot_clear_unclaimed(struct cw_snapshot *snap);
/*
 * Gives the comm more members, because some ranks report a larger size. Never takes members away.
 */
int cw_snapshot_grow_comm(struct cw_snapshot *snap, uint32_t comm, uint32_t nranks);
/*
 * Fills member comm_rank of comm `comm` with a copy of *member, including pending, last, window,
 * p2p and last_error. Returns -EINVAL if comm or comm_rank is out of range, or if the member
 * already has a rank.
 */
int cw_snapshot_set_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_snap_member *member);
/*
 * These functions do the work of cw_snapshot_set_member() in steps, without copies of a whole
 * member:
 *
 *  1. cw_snapshot_claim_member() gives the member to `rank` and returns the zeroed member.
 *  2. The caller fills the member, except for its two ops. cw_snapshot_copy_pending() and
 *     cw_snapshot_copy_last() copy these ops.
 *  3. cw_snapshot_own_member() copies the remaining referenced data into the snapshot.
 *
 * If one of the functions fails, the caller may only free or reset the snapshot.
 */
int cw_snapshot_claim_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			     uint32_t rank, struct cw_snap_member **ret);
int cw_snapshot_copy_pending(struct cw_snapshot *snap, struct cw_snap_member *member,
			     const struct cw_op *op);
int cw_snapshot_copy_last(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			  const struct cw_op *op);
int cw_snapshot_own_member(struct cw_snapshot *snap, struct cw_snap_member *member);
/* Copies a window of ops into a member that is already set, and replaces an earlier window. */
int cw_snapshot_set_window(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_op *ops, uint32_t n_ops, uint64_t lost, int64_t read_ns);

/* Returns the call stack of an op; NULL = unknown. */
const char *cw_snapshot_stack(const struct cw_snapshot *snap, const struct cw_op *op);

/*
 * Returns the rank with the smallest time-out of the job's own watchdog. The job_timeout_ns of this
 * rank, and the source of that time-out, apply to the job. NULL = no rank has a time-out.
 */
const struct cw_snap_rank *cw_snapshot_job_timeout(const struct cw_snapshot *snap);

/* Finds a comm by (id, instance) and returns its index; CW_SNAP_NONE = not found. O(1). */
uint32_t cw_snapshot_find_comm(const struct cw_snapshot *snap, uint64_t id, uint32_t instance);
