/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine works on between the snapshot and the verdict: the histories of all comms, the
 * wait-for graph, and the ends of its paths, each with what seems to be the matter there.
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

/* How much a finding deserves attention, before age decides. */
enum finding_tier {
	TIER_FRESH, /* waiting, not for long: what every healthy job looks like */
	TIER_OLD,   /* pending for longer than a stall, but the culprit shows host activity */
	TIER_SILENT_PROOF, /* proven wrong, though nobody waits because of it */
	TIER_STUCK,        /* pending for longer than a stall, and nothing moves */
	TIER_PROOF,        /* proven, and somebody waits because of it */
};

/* The matter at one end of the waiting. */
struct finding {
	enum cw_class verdict_class;
	enum cw_detail detail;
	bool is_proof;
	bool is_first;     /* of a death: no other explains it */
	bool is_late;      /* of an end: another that the same wait for surely came before */
	bool has_failed;   /* its call came back with an error: failed_call.h */
	int64_t failed_ns; /* with has_failed: when; 0 = not known */
	enum finding_tier tier;
	uint32_t node;    /* of the graph: a rank, a gate, or CW_SNAP_NONE (mismatch) */
	uint32_t rank;    /* the culprit; CW_SNAP_NONE = none, or several */
	uint32_t partner; /* the other culprit, where two calls do not fit; CW_SNAP_NONE */
	uint32_t gate;    /* where it is waited for; CW_SNAP_NONE = nobody waits */
	uint32_t comm;    /* where; CW_SNAP_NONE = nowhere in particular */
	uint64_t seq;     /* coll_seq, 0 where it has none */
	int64_t since_ns; /* the oldest wait for it; 0 = unknown */
	/* Of device_stalled: what it does not come to, where that is not the call waited in. */
	const struct cw_op *held;
	uint32_t held_comm;
	/* What the members of a full call do not have in common; NULL = nothing was found. */
	const struct alignment *setup;
	bool is_uneven; /* of p2p_unmatched: an exchange of all, whose sizes do not add up */
	/*
	 * Of messages that do not fit, though nobody waits for one; NULL = it is not about those.
	 */
	const struct message_fault *messages;
	/* Of calls that differ: who ended first after them, where that is why others wait; NULL. */
	const struct cw_snap_rank *ended;
};

/* Where the ranks of a comm stand in it, found when first asked for. */
struct engine_context_places {
	struct cw_arena *arena; /* the context's */
	uint64_t **of_comm;     /* per comm: rank << 32 | place, ascending; NULL = not made */
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
	bool has_one_ended; /* all of these are one process */
	int64_t first_end_ns, last_end_ns;
	/* A rank that ended by its own fault before all others; CW_SNAP_NONE = none. */
	uint32_t failed_first;
	uint32_t n_failed_first; /* with those of other processes that failed at the same time */
	bool *has_given_up;      /* by rank: it aborted because it had waited; NULL = nobody has */
	bool *has_lost_peer; /* by rank: NCCL told it that a peer is gone, on a comm it still has */
	uint32_t *failed_at; /* by rank: the gate at which its call failed; CW_SNAP_NONE = none */
	/* By comm: the first death there, kept by death_order.c. */
	struct first_death *first_deaths;
	/* By rank: 1 + the comm after whose differing call it ended; 0 = none; NULL = nobody. */
	uint32_t *ended_after;
};

/* Before any question; the context must stay where it is. 0 or -ENOMEM. */
int engine_context_init_places(struct engine_context *s);

/* Position of `rank` in the comm, the first of several; CW_SNAP_NONE = not a member. */
uint32_t engine_context_comm_rank(const struct engine_context *s, uint32_t comm, uint32_t rank);

/*
 * a is why b is so. Whoever leaves a call out waits in a later one for those who wait in the first:
 * a cycle, which the differing call explains.
 */
static inline bool engine_context_explains(const struct engine_context *s, const struct finding *a,
					   const struct finding *b)
{
	return a->verdict_class == CW_CLASS_MISMATCH && b->verdict_class == CW_CLASS_DEADLOCK &&
	       a->gate != CW_SNAP_NONE &&
	       s->g.component[waitgraph_gate_node(&s->g, a->gate)] == s->g.component[b->node];
}

/*
 * The comm in which the device of a rank may be held up in a call of which nobody sees how far it
 * is; CW_SNAP_NONE = none, or the rank itself is held, which explains more.
 */
static inline uint32_t engine_context_unobserved(const struct engine_context *s, uint32_t rank)
{
	return cw_rank_held_by(&s->snap->ranks[rank]) ? CW_SNAP_NONE : s->g.unobserved[rank];
}

/* What failed of the rank's at this gate (failed_call.h); false: nothing. */
bool engine_context_failed_call(const struct engine_context *s, uint32_t gate, uint32_t rank,
				struct failed_call *ret);

/* Of a mismatch: who stands on which side. */
const struct alignment *engine_context_sides(const struct engine_context *s,
					     const struct finding *f);

/* Members of the gate's comm that have completed the collective others are still inside of. */
uint32_t engine_context_n_completed(const struct engine_context *s, const struct gate *gate);

/* Enough ranks have ended that the job is being taken down. */
bool engine_context_is_ending(const struct engine_context *s);

/* The last end is not long ago: whoever still waits may be on its way out. */
bool engine_context_may_be_ending(const struct engine_context *s);

/*
 * By what is the same for all who see them, communicator and number of the call: not by ages, nor
 * by an order of comms.
 */
bool engine_context_gate_before(const struct engine_context *s, const struct gate *a,
				const struct gate *b);

/* The gate by which to describe what a missing rank owes. */
uint32_t engine_context_gate_of(const struct engine_context *s, uint32_t rank);

/*
 * The send or receive with that rank which the side's only rank waits in. A group waits for the
 * counterparts of all its calls, and is known by the oldest of them: what is missing may be that of
 * another one. NULL: that one is not at hand.
 */
const struct cw_op *engine_context_call_with(const struct engine_context *s, uint32_t comm,
					     const struct cw_side *side, uint32_t rank);
