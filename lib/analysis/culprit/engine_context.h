/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's data between the snapshot and the verdict: the histories of all comms, the wait-for
 * graph, and the findings. A finding is the end of a path through the graph, with the trouble
 * there.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/align/align.h"
#include "analysis/align/messages.h"
#include "analysis/connections/connection_judge.h"
#include "analysis/waits/failed_call.h"
#include "analysis/waits/waitgraph.h"
#include "model/arena.h"
#include "model/verdict_types.h"

/* How much attention a finding deserves. Within a tier the older finding comes first. */
enum finding_tier {
	TIER_FRESH,        /* the wait is short, as in every healthy job */
	TIER_OLD,          /* the wait is older than a stall, but the culprit shows host activity */
	TIER_SILENT_PROOF, /* the trouble is proven, but no rank waits because of it */
	TIER_STUCK,        /* the wait is older than a stall, and the culprit shows no activity */
	TIER_PROOF,        /* the trouble is proven, and a rank waits because of it */
};

/* The trouble at one end of a path through the wait-for graph. */
struct finding {
	enum cw_class verdict_class;
	enum cw_detail detail;
	bool is_proof;
	bool is_first;     /* for a death: no other death explains it */
	bool is_late;      /* for an end: another end of the same waits surely came before */
	bool has_failed;   /* NCCL returned an error to the rank (failed_call.h) */
	int64_t failed_ns; /* time of the error if has_failed is true; 0 = not known */
	enum finding_tier tier;
	uint32_t node;    /* node of the graph: a rank or a gate; CW_SNAP_NONE = none (mismatch) */
	uint32_t rank;    /* the culprit; CW_SNAP_NONE = none, or several */
	uint32_t partner; /* the second culprit if two calls do not fit; CW_SNAP_NONE = none */
	/* The gate at which ranks wait for the culprit; CW_SNAP_NONE = no rank waits. */
	uint32_t gate;
	uint32_t comm;    /* CW_SNAP_NONE = no particular comm */
	uint64_t seq;     /* coll_seq; 0 = the call has none */
	int64_t since_ns; /* time of the oldest wait for the culprit; 0 = unknown */
	/*
	 * For device_stalled: the op that the device does not reach. NULL if the gate has that op.
	 */
	const struct cw_op *held;
	uint32_t held_comm;
	/* The difference in the setup of the members, if all are in the call; NULL = none found. */
	const struct alignment *setup;
	bool is_uneven; /* for p2p_unmatched: the sizes of an all-to-all exchange do not add up */
	/* The fault that the connections show, if all are in the call; NULL = none. */
	const struct connection_judgement *connections;
	/* Messages that do not fit, although no rank waits for one. NULL for all other troubles. */
	const struct message_fault *messages;
	/*
	 * The rank that ended first after differing calls, if others wait because of its end; else
	 * NULL.
	 */
	const struct cw_snap_rank *ended;
};

/* The index of the ranks of each comm. We compute it at the first look-up in the comm. */
struct engine_context_places {
	struct cw_arena *arena; /* the context's arena */
	uint64_t **of_comm; /* per comm: rank << 32 | comm rank, ascending; NULL = not computed */
};

struct engine_context {
	const struct cw_snapshot *snap;
	struct cw_arena arena;
	struct waitgraph g;
	struct upstream up;
	struct alignment *alignments; /* per comm: result of align_comm() */
	struct engine_context_places *places;
	struct finding *findings;
	uint32_t n_findings;
	uint32_t n_ended;   /* number of ranks that ended, except in an orderly stop */
	bool has_one_ended; /* all ranks that ended are one process */
	int64_t first_end_ns, last_end_ns;
	/* The rank that ended by its own fault before all others; CW_SNAP_NONE = none. */
	uint32_t failed_first;
	/* Number of ranks in different processes that failed first, at the same time. */
	uint32_t n_failed_first;
	bool *has_given_up; /* per rank: it aborted after waiting for long; NULL = none did */
	/* Per rank: NCCL reported a lost peer to it, on a comm that it still has. */
	bool *has_lost_peer;
	bool *has_connections; /* per comm: some member reports network connections */
	/* Per comm: what the connections of its messages show; NULL = not judged yet. */
	struct connection_judgement **of_messages;
	uint32_t *failed_at; /* per rank: the gate at which its call failed; CW_SNAP_NONE = none */
	/* Per comm: its first death. death_order.c fills an element at the first look-up. */
	struct first_death *first_deaths;
	/*
	 * Per rank: 1 + the index of the comm after whose differing call it ended. 0 = none. NULL =
	 * all 0.
	 */
	uint32_t *ended_after;
};

/*
 * Initialises the index of ranks. The caller runs this before the other functions, and must not
 * move the context later. Returns 0 or -ENOMEM.
 */
int engine_context_init_places(struct engine_context *s);

/* Returns the first comm rank of `rank` in the comm; CW_SNAP_NONE = not a member. */
uint32_t engine_context_comm_rank(const struct engine_context *s, uint32_t comm, uint32_t rank);

/*
 * True if finding a explains finding b. Example: a rank omits a call and waits in a later call for
 * the ranks that wait in the omitted one. The waits form a cycle, and the differing call is its
 * cause.
 */
static inline bool engine_context_explains(const struct engine_context *s, const struct finding *a,
					   const struct finding *b)
{
	return a->verdict_class == CW_CLASS_MISMATCH && b->verdict_class == CW_CLASS_DEADLOCK &&
	       a->gate != CW_SNAP_NONE &&
	       s->g.component[waitgraph_gate_node(&s->g, a->gate)] == s->g.component[b->node];
}

/*
 * Returns the comm in which the rank's device may be stuck in a call whose progress we do not see.
 * CW_SNAP_NONE = no such comm. If the rank itself is held, the hold explains more, and we also
 * return CW_SNAP_NONE.
 */
static inline uint32_t engine_context_unobserved(const struct engine_context *s, uint32_t rank)
{
	return cw_rank_held_by(&s->snap->ranks[rank]) ? CW_SNAP_NONE : s->g.unobserved[rank];
}

/*
 * Finds the call of this rank that failed at this gate (failed_call.h). Returns false if no call
 * failed.
 */
bool engine_context_failed_call(const struct engine_context *s, uint32_t gate, uint32_t rank,
				struct failed_call *ret);

/* Returns the sides of the calls for a finding that is a mismatch. */
const struct alignment *engine_context_sides(const struct engine_context *s,
					     const struct finding *f);

/* Returns how many members have completed the gate's collective while others are still inside. */
uint32_t engine_context_n_completed(const struct engine_context *s, const struct gate *gate);

/* True if so many ranks have ended that the job seems to be shutting down. */
bool engine_context_is_ending(const struct engine_context *s);

/* True if the last end is so recent that a waiting rank may be about to end too. */
bool engine_context_may_be_ending(const struct engine_context *s);

/*
 * True if gate a comes before gate b. We order gates by communicator and call number, because these
 * are equal on all nodes. Ages, and indices of comms, are not.
 */
bool engine_context_gate_before(const struct engine_context *s, const struct gate *a,
				const struct gate *b);

/* Returns the gate that shows best which call a missing rank has not made. */
uint32_t engine_context_gate_of(const struct engine_context *s, uint32_t rank);

/*
 * Returns the send or receive with rank `rank` in which the rank `waiter` waits; NULL = not known.
 * `pending` is the oldest call of its group. But a group waits for the counterparts of all its
 * calls, so the missing one may belong to another call.
 */
const struct cw_op *engine_context_call_with(const struct engine_context *s, uint32_t comm,
					     const struct cw_op *pending, uint32_t waiter,
					     uint32_t rank);
