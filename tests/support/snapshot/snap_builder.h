/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots for tests, described the way an engineer speaks about them: eight ranks on two nodes, a
 * comm over these. Every rank has done 41 all_reduces and is inside the 42nd, but rank 3 has not
 * entered it. A test changes the draft freely and turns it into a snapshot at the end.
 */
#pragma once

#include "analysis/verdict.h"
#include "model/snapshot.h"

#define SB_MAX_RANKS 64
#define SB_MAX_COMMS 24
#define SB_MAX_ODD 8
#define SB_S INT64_C(1000000000)
#define SB_NOW (1000 * SB_S)

struct sb_member {
	uint32_t rank; /* CW_SNAP_NONE = not visible */
	uint32_t state, known;
	uint64_t entered, returned, reached, completed;
	uint64_t untracked_to; /* those between completed and this one got no writes; 0 = none */
	int64_t age_ns;        /* since the oldest op that has not completed was entered */
	int64_t interval_ns;   /* its rhythm; 0 = unknown */
	bool has_window;
	struct cw_op odd[SB_MAX_ODD]; /* ops that differ from the comm's usual one, by coll_seq */
	uint32_t n_odd;
	struct cw_op
		call; /* a p2p or host call in progress, instead of a collective; kind 0 = no */
	struct cw_op newest; /* the last one of call's group; kind 0 = no group */
	struct cw_p2p_peer p2p[SB_MAX_RANKS];
	uint32_t n_p2p;
	uint64_t sends, recvs; /* all it has ever posted */
	int32_t last_result;   /* ncclResult_t of the last call that failed; 0 = none */
};

struct sb_comm {
	const char *name;
	uint64_t id;
	uint64_t parent_id;
	uint32_t split_ordinal;
	uint32_t nranks;
	struct cw_op usual; /* the op that every rank repeats */
	int64_t every_ns;   /* from one call to the next, of those completed; 0 = 0.1 s */
	struct sb_member members[SB_MAX_RANKS];
};

struct sb {
	uint32_t n_ranks, n_nodes, n_comms;
	struct cw_snap_rank ranks[SB_MAX_RANKS];
	uint32_t node_state[SB_MAX_RANKS];
	struct sb_comm *comms[SB_MAX_COMMS];
	int64_t now_ns;
};

/* All alive, on nodes in equal blocks, with host activity right now. Freed by sb_free(). */
struct sb *sb_new(uint32_t n_ranks, uint32_t n_nodes);
void sb_free(struct sb *b);
/* Takes all comms away again. */
void sb_clear_comms(struct sb *b);

/* A comm over ranks first, first + stride, …; all members have completed `done` all_reduces. */
struct sb_comm *sb_comm(struct sb *b, const char *name, uint32_t first, uint32_t n, uint32_t stride,
			uint64_t done);

/* The member enters and reaches its next op, and stays in it for age_ns. */
void sb_waits(struct sb_comm *c, uint32_t member, int64_t age_ns);
/* All members but `member` wait (SB_MAX_RANKS = all of them). */
void sb_all_wait_but(struct sb_comm *c, uint32_t member, int64_t age_ns);
/*
 * The member has called up to `entered`, and those past what it completed, up to `to`, got no
 * progress writes; the newest age_ns ago.
 */
void sb_leave_out(struct sb_comm *c, uint32_t member, uint64_t to, uint64_t entered,
		  int64_t age_ns);
/* A copy of the usual op, to be changed, that the member calls as coll_seq `seq`. */
struct cw_op *sb_odd(struct sb_comm *c, uint32_t member, uint64_t seq);
/* The member is inside this host-blocking or p2p call. */
struct cw_op *sb_call(struct sb_comm *c, uint32_t member, unsigned kind, int64_t age_ns);
/* The op the member calls as coll_seq `seq`. */
struct cw_op sb_op(const struct sb_comm *c, uint32_t member, uint64_t seq);

/* Turns the builder into a snapshot. */
struct cw_snapshot *sb_snapshot(const struct sb *b);
/* … and asks for the verdict on it; both are the caller's. */
struct cw_verdict sb_verdict(const struct sb *b, struct cw_snapshot **ret_snap);

/* "3" or "0,3": labels of the culprits (victims), in a static buffer. */
const char *sb_culprits(const struct cw_snapshot *snap, const struct cw_verdict *v);
const char *sb_victims(const struct cw_snapshot *snap, const struct cw_verdict *v);
