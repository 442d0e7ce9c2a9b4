/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's data between the snapshot and the verdict: the histories of all comms, the wait-for
 * graph, and the findings, which are the ends of its paths with the trouble at each.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/align/align.h"
#include "analysis/align/messages.h"
#include "analysis/waits/failed_call.h"
#include "analysis/waits/waitgraph.h"
#include "model/arena.h"
#include "model/verdict_types.h"

/* How much attention a finding deserves. Within a tier its age decides. */
enum finding_tier {
	TIER_FRESH, /* a short wait, as in every healthy job */
	TIER_OLD,   /* pending for longer than a stall, but the culprit shows host activity */
	TIER_SILENT_PROOF, /* proven wrong, but no rank waits because of it */
	TIER_STUCK,        /* pending for longer than a stall, and nothing moves */
	TIER_PROOF,        /* proven, and a rank waits because of it */
};

/* The trouble at one end of the waits. */
struct finding {
	enum cw_class verdict_class;
	enum cw_detail detail;
	bool is_proof;
	bool is_first;     /* for a death: no other death explains it */
	bool is_late;      /* for an end: another end surely came before, for the same waits */
	bool has_failed;   /* the rank's call returned an error: failed_call.h */
	int64_t failed_ns; /* with has_failed: time of the error; 0 = not known */
	enum finding_tier tier;
	uint32_t node;    /* of the graph: a rank, a gate, or CW_SNAP_NONE (mismatch) */
	uint32_t rank;    /* the culprit; CW_SNAP_NONE = none, or several */
	uint32_t partner; /* the other culprit if two calls do not fit; CW_SNAP_NONE = none */
	uint32_t gate;    /* at which ranks wait for it; CW_SNAP_NONE = no rank waits */
	uint32_t comm;    /* CW_SNAP_NONE = no comm in particular */
	uint64_t seq;     /* coll_seq; 0 = the call has none */
	int64_t since_ns; /* the oldest wait for it; 0 = unknown */
	/* For device_stalled: the op that the device does not reach, unless the gate has it. */
	const struct cw_op *held;
	uint32_t held_comm;
	/* The difference in the setup of the members of a full call; NULL = none found. */
	const struct alignment *setup;
	bool is_uneven; /* for p2p_unmatched: the sizes of an exchange of all do not add up */
	/* Messages that do not fit, although no rank waits for one; NULL = another trouble. */
	const struct message_fault *messages;
	/* The rank that ended first after differing calls, if others wait because of it; NULL. */
	const struct cw_snap_rank *ended;
};

/* The places of the ranks in each comm, computed at the first question about the comm. */
struct engine_context_places {
	struct cw_arena *arena; /* the context's arena */
	uint64_t **of_comm;     /* per comm: rank << 32 | place, ascending; NULL = not computed */
};

struct engine_context {
	const struct cw_snapshot *snap;
	struct cw_arena arena;
	struct waitgraph g;
	struct upstream up;
	struct alignment *alignments; /* per comm */
	struct engine_context_places *places;
	struct finding *findings;
	uint32_t n_findings;
	uint32_t n_ended;   /* ranks that ended, other than in an orderly stop */
	bool has_one_ended; /* all ranks that ended are one process */
	int64_t first_end_ns, last_end_ns;
	/* A rank that ended by its own fault before all others; CW_SNAP_NONE = none. */
	uint32_t failed_first;
	uint32_t n_failed_first; /* plus ranks of other processes that failed at the same time */
	bool *has_given_up;  /* by rank: it aborted because it had waited for long; NULL = none */
	bool *has_lost_peer; /* by rank: NCCL told it that a peer is gone, on a comm it still has */
	uint32_t *failed_at; /* by rank: the gate at which its call failed; CW_SNAP_NONE = none */
	/* By comm: its first death; death_order.c fills this at the first question. */
	struct first_death *first_deaths;
	/* By rank: 1 + the comm after whose differing call it ended; 0 = none; NULL = all 0. */
	uint32_t *ended_after;
};

/* Call this before the other functions. The context must not move later. Returns 0 or -ENOMEM. */
int engine_context_init_places(struct engine_context *s);

/* Returns the first place of `rank` in the comm; CW_SNAP_NONE = not a member. */
uint32_t engine_context_comm_rank(const struct engine_context *s, uint32_t comm, uint32_t rank);

/*
 * True if a explains b. A rank that leaves out a call waits in a later call for the ranks that wait
 * in the first one. This is a cycle, and the differing call is its cause.
 */
static inline bool engine_context_explains(const struct engine_context *s, const struct finding *a,
					   const struct finding *b)
{
	return a->verdict_class == CW_CLASS_MISMATCH && b->verdict_class == CW_CLASS_DEADLOCK &&
	       a->gate != CW_SNAP_NONE &&
	       s->g.component[waitgraph_gate_node(&s->g, a->gate)] == s->g.component[b->node];
}

/*
 * Returns the comm in which the rank's device may be held up in a call whose progress we do not
 * see. CW_SNAP_NONE = no such comm, or the rank itself is held, which explains more.
 */
static inline uint32_t engine_context_unobserved(const struct engine_context *s, uint32_t rank)
{
	return cw_rank_held_by(&s->snap->ranks[rank]) ? CW_SNAP_NONE : s->g.unobserved[rank];
}

/*
 * Finds the rank's call that failed at this gate (failed_call.h). Returns false if there is none.
 */
bool engine_context_failed_call(const struct engine_context *s, uint32_t gate, uint32_t rank,
				struct failed_call *ret);

/* Returns the sides of a mismatch. */
const struct alignment *engine_context_sides(const struct engine_context *s,
					     const struct finding *f);

/* Returns how many members have completed the gate's collective, in which others still are. */
uint32_t engine_context_n_completed(const struct engine_context *s, const struct gate *gate);

/* True if so many ranks have ended that the job seems to be shutting down. */
bool engine_context_is_ending(const struct engine_context *s);

/* True if the last end is recent, so that a waiting rank may be about to end, too. */
bool engine_context_may_be_ending(const struct engine_context *s);

/*
 * Orders gates by communicator and call number, which are the same on all nodes. Ages and indices
 * of comms are not.
 */
bool engine_context_gate_before(const struct engine_context *s, const struct gate *a,
				const struct gate *b);

/* Returns the gate that shows best what a missing rank owes. */
uint32_t engine_context_gate_of(const struct engine_context *s, uint32_t rank);

/*
 * Returns the send or receive with that rank in which the side's only rank waits; NULL = not known.
 * The side has the oldest call of its group. But a group waits for the counterparts of all its
 * calls, so the missing one may belong to another call.
 */
const struct cw_op *engine_context_call_with(const struct engine_context *s, uint32_t comm,
					     const struct cw_side *side, uint32_t rank);
