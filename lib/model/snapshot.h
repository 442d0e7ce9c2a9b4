/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input of the engine: what was known about one job at one instant.
 *
 * Plain data: no clock, no descriptors, no callbacks. The daemon fills it from digests and windows,
 * the CLI from a bundle, the suite from scenario files, the benchmark from a generator; the engine
 * cannot tell which. All times are ns on one timeline, that of the snapshot's maker; `now_ns` is
 * the instant it describes. Ranks are named by index into `ranks` everywhere inside; the number
 * people know is `ranks[i].rank`.
 *
 * Absence is explicit: a counter without its CW_KNOWN_ bit, a window that is NULL, a member without
 * a rank say "not visible", and the engine must treat them so (never as zero).
 *
 * What is known of ranks, communicators and members is listed in model/fact_list.h; its texts are
 * owned and may be NULL.
 *
 * Ownership: one arena-like owner. cw_snapshot_new() makes an empty one, the cw_snapshot_add_*
 * functions grow it, cw_snapshot_free() frees all. Pointers into the arrays are invalidated by the
 * next add of the same array. Not thread-safe; no blocking; the only failure is -ENOMEM or a limit
 * (-E2BIG).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/facts.h"
#include "model/op.h"

#define CW_SNAP_NONE UINT32_MAX

/* Limits: a snapshot is built from untrusted data. */
#define CW_SNAP_MAX_RANKS (1u << 20)
#define CW_SNAP_MAX_COMMS (1u << 22)
#define CW_SNAP_MAX_MEMBERS (1u << 24)
#define CW_SNAP_MAX_STACKS 1024u

enum cw_node_state {
	CW_NODE_REPORTING = 0,
	CW_NODE_SILENT = 1,       /* no digest for longer than the limit; maybe only slow */
	CW_NODE_SAID_GOODBYE = 2, /* its daemon restarts: wait for it */
	CW_NODE_UNREACHABLE = 3,  /* was reporting, stopped without goodbye, reconnect refused */
};

struct cw_snap_node {
	const char *name; /* owned by the snapshot */
	uint32_t state;   /* enum cw_node_state */
	int64_t last_digest_ns;
};

struct cw_snap_rank {
	CW_SAME_FACTS(rank_facts, CW_RANK_FACTS);
	CW_RANK_FACTS(CW_KEPT_FIELD)
	struct cw_op host_call; /* kind CW_OP_NONE = none */
};

/* A process that drives several devices is as many ranks, which live and die together. */
static inline bool cw_snap_rank_shares_process(const struct cw_snap_rank *a,
					       const struct cw_snap_rank *b)
{
	return a == b || (a->pid > 0 && a->pid == b->pid && a->start_ticks &&
			  a->start_ticks == b->start_ticks && a->node == b->node);
}

/* Two of each level of cw_checkpoint_slot(). */
#define CW_SNAP_CHECKPOINTS 8
#define CW_SNAP_MAX_LAST_HASHES 8u

/* One rank's view of one comm. Index in the comm's members = comm rank. */
struct cw_snap_member {
	CW_SAME_FACTS(member_facts, CW_MEMBER_FACTS);
	CW_MEMBER_FACTS(CW_KEPT_FIELD)
	struct cw_checkpoint checkpoints[CW_SNAP_CHECKPOINTS]; /* newest first */
	struct cw_checkpoint *last_hashes;                     /* owned, oldest first */
	uint32_t n_last_hashes;
	struct cw_op *pending; /* owned, NULL = none */
	struct cw_op *last;    /* owned, NULL = none */
	struct cw_op *window;  /* last ops, oldest first, maybe with some from further back before
				* them; owned; NULL = not fetched */
	uint32_t n_window;
	uint32_t n_p2p;
	struct cw_p2p_peer *p2p; /* owned */
};

struct cw_snap_comm {
	CW_SAME_FACTS(comm_facts, CW_COMM_FACTS);
	CW_COMM_FACTS(CW_KEPT_FIELD)
	struct cw_snap_member *members; /* owned; nranks of them */
	/* Private: where the members' `last` are, side by side, because all are read in turn. */
	struct cw_op *last_ops;
	uint32_t n_claimed; /* private: members with a rank */
};

/* Defaults are those of docs/design/hang.md#patience: cw_thresholds_default(). All in ns. */
struct cw_thresholds {
	int64_t stall_min_ns, stall_max_ns; /* clamp of T */
	uint32_t stall_factor;              /* T = factor × median interval */
	int64_t first_op_ns, first_op_per_rank_ns;
	int64_t proof_ns;         /* alert this long after a proof is first seen */
	int64_t confirm_ns;       /* between the two equal readings */
	int64_t window_after_ns;  /* fetch windows of a comm whose oldest pending op is this old */
	int64_t no_headway_ns;    /* no_progress_after */
	int64_t headway_alert_ns; /* alert on a rank that makes headway: max(this, 3 × longest) */
	int64_t in_collective_ns; /* unchanged progress words */
	int64_t node_silent_ns;
	uint64_t bytes_per_s; /* worst bandwidth assumed for large ops; 0 = not used */
};

enum cw_policy { CW_POLICY_TRAINING = 0, CW_POLICY_SERVING = 1, CW_POLICY_OFF = 2 };

struct cw_snapshot {
	int64_t now_ns;  /* the instant described */
	int64_t wall_ns; /* the same instant as wall time, for people; 0 = unknown */
	/* Up to then, how long in all whoever made it was held up and looked at nothing. Not kept.
	 */
	int64_t held_ns;
	const char *job;         /* label; owned */
	const char *group;       /* where rank numbers come from, e.g. "RANK"; owned */
	uint32_t policy;         /* enum cw_policy */
	uint32_t ranks_expected; /* 0 = unknown */
	uint32_t untracked;      /* rank processes there is no place for: they are not in `ranks` */
	/* Of imported dumps: calls that had not completed, shown by a member or not. Not kept. */
	uint32_t open_calls;
	uint64_t listed_calls; /* of them all, also those that were left out. Not kept. */
	struct cw_thresholds thresholds;
	struct cw_snap_node *nodes;
	struct cw_snap_rank *ranks;
	struct cw_snap_comm *comms;
	uint32_t n_nodes, n_ranks, n_comms;
	const char **notes; /* what could not be seen; owned */
	uint32_t n_notes;
	const char **stacks; /* from where ops were issued, a line per frame; owned */
	uint32_t n_stacks;
	struct cw_snap_store *store; /* private: owner of all of the above */
};

struct cw_thresholds cw_thresholds_default(void);

/* NULL = out of memory. */
struct cw_snapshot *cw_snapshot_new(void);
/* As new, but for memory that is kept to be used again. */
void cw_snapshot_reset(struct cw_snapshot *snap);
/* Takes NULL; returns NULL. */
struct cw_snapshot *cw_snapshot_free(struct cw_snapshot *snap);

/* Each copies the strings it is given (NULL allowed) and returns 0, -ENOMEM or -E2BIG. */
int cw_snapshot_set_job(struct cw_snapshot *snap, const char *job, const char *group);
int cw_snapshot_add_note(struct cw_snapshot *snap, const char *note);
/*
 * The number under which ops name a call stack; the same for the same text. 0 = there are
 * CW_SNAP_MAX_STACKS others.
 */
int cw_snapshot_add_stack(struct cw_snapshot *snap, const char *text, uint32_t *ret_number);
int cw_snapshot_add_node(struct cw_snapshot *snap, const char *name, uint32_t *ret_index);
/* Copies *rank with its texts. */
int cw_snapshot_add_rank(struct cw_snapshot *snap, const struct cw_snap_rank *rank,
			 uint32_t *ret_index);
/*
 * Copies the scalars and the name of *comm; makes nranks members with rank CW_SNAP_NONE. The
 * returned pointer to the comm holds until the next add_comm.
 */
int cw_snapshot_add_comm(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			 uint32_t *ret_index);
/*
 * The same for who fills nearly all of many members: of those without a rank nothing else may be
 * read until cw_snapshot_clear_unclaimed() has zeroed them.
 */
int cw_snapshot_add_comm_raw(struct cw_snapshot *snap, const struct cw_snap_comm *comm,
			     uint32_t *ret_index);
void cw_snapshot_clear_unclaimed(struct cw_snapshot *snap);
/* Gives the comm more members: some ranks say that it is larger. Never fewer. */
int cw_snapshot_grow_comm(struct cw_snapshot *snap, uint32_t comm, uint32_t nranks);
/*
 * Fills member comm_rank of comm `comm` with a copy of *member (pending, last, window, p2p and
 * last_error included). -EINVAL when comm or comm_rank is out of range or the place is taken.
 */
int cw_snapshot_set_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_snap_member *member);
/*
 * The same in steps, without copies of a whole member: takes the place for `rank` and gives the
 * zeroed member to be filled in, but for its two ops; copies those; then makes what else it points
 * to the snapshot's own. Once one of these has failed, the snapshot is only good to be freed or
 * reset.
 */
int cw_snapshot_claim_member(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			     uint32_t rank, struct cw_snap_member **ret);
int cw_snapshot_copy_pending(struct cw_snapshot *snap, struct cw_snap_member *member,
			     const struct cw_op *op);
int cw_snapshot_copy_last(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			  const struct cw_op *op);
int cw_snapshot_own_member(struct cw_snapshot *snap, struct cw_snap_member *member);
/* Copies a window into a member that is already set; replaces an earlier one. */
int cw_snapshot_set_window(struct cw_snapshot *snap, uint32_t comm, uint32_t comm_rank,
			   const struct cw_op *ops, uint32_t n_ops, uint64_t lost, int64_t read_ns);

/* From where an op was issued; NULL = not known. */
const char *cw_snapshot_stack(const struct cw_snapshot *snap, const struct cw_op *op);

/*
 * The rank with the smallest time-out of the job's own watchdog: its job_timeout_ns, and where that
 * is from, are the job's. NULL = none is known.
 */
const struct cw_snap_rank *cw_snapshot_job_timeout(const struct cw_snapshot *snap);

/* Look-up by (id, instance); CW_SNAP_NONE = not there. O(1). */
uint32_t cw_snapshot_find_comm(const struct cw_snapshot *snap, uint64_t id, uint32_t instance);
