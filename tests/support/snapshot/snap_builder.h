/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds snapshots for tests from a description in an engineer's words: eight ranks on two nodes,
 * and a comm over them. All ranks have completed 41 all_reduces. All but rank 3 are inside the 42nd
 * one. A test changes the description freely and turns it into a snapshot at the end.
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
	/* the ops after `completed` up to this one got no progress writes; 0 = none */
	uint64_t untracked_to;
	int64_t age_ns;      /* time since the member entered its oldest pending op */
	int64_t interval_ns; /* usual time between its calls; 0 = unknown */
	bool has_window;
	struct cw_op odd[SB_MAX_ODD]; /* ops that differ from the comm's usual one, by coll_seq */
	uint32_t n_odd;
	struct cw_op
		call; /* a p2p or host call in progress, instead of a collective; kind 0 = none */
	/* the last op of the group that `call` belongs to; kind 0 = no group */
	struct cw_op newest;
	struct cw_p2p_peer p2p[SB_MAX_RANKS];
	uint32_t n_p2p;
	uint64_t sends, recvs; /* numbers of all sends and receives that it has posted */
	int32_t last_result;   /* ncclResult_t of the last call that failed; 0 = none */
};

struct sb_comm {
	const char *name;
	uint64_t id;
	uint64_t parent_id;
	uint32_t split_ordinal;
	uint32_t nranks;
	struct cw_op usual; /* the op that every rank repeats */
	int64_t every_ns;   /* time between two completed calls; 0 = 0.1 s */
	struct sb_member members[SB_MAX_RANKS];
};

struct sb {
	uint32_t n_ranks, n_nodes, n_comms;
	struct cw_snap_rank ranks[SB_MAX_RANKS];
	uint32_t node_state[SB_MAX_RANKS];
	struct sb_comm *comms[SB_MAX_COMMS];
	int64_t now_ns;
};

/*
 * Makes a job whose ranks are all alive, on nodes in equal blocks, with host activity right now.
 * Release it with sb_free().
 */
struct sb *sb_new(uint32_t n_ranks, uint32_t n_nodes);
void sb_free(struct sb *b);
/* Removes all comms. */
void sb_clear_comms(struct sb *b);

/*
 * Adds a comm over ranks first, first + stride, … whose members have all completed `done`
 * all_reduces.
 */
struct sb_comm *sb_comm(struct sb *b, const char *name, uint32_t first, uint32_t n, uint32_t stride,
			uint64_t done);

/* Lets the member enter and reach its next op, age_ns ago. It is still in this op. */
void sb_waits(struct sb_comm *c, uint32_t member, int64_t age_ns);
/* Lets all members but `member` wait (SB_MAX_RANKS = all members). */
void sb_all_wait_but(struct sb_comm *c, uint32_t member, int64_t age_ns);
/*
 * Lets the member have called all ops up to `entered`, the newest age_ns ago. The ops after its
 * completed ones, up to `to`, got no progress writes.
 */
void sb_leave_out(struct sb_comm *c, uint32_t member, uint64_t to, uint64_t entered,
		  int64_t age_ns);
/*
 * Returns a copy of the usual op that the member calls as coll_seq `seq`. The test changes the
 * copy.
 */
struct cw_op *sb_odd(struct sb_comm *c, uint32_t member, uint64_t seq);
/* Puts the member inside this host-blocking or p2p call. */
struct cw_op *sb_call(struct sb_comm *c, uint32_t member, unsigned kind, int64_t age_ns);
/* Returns the op that the member calls as coll_seq `seq`. */
struct cw_op sb_op(const struct sb_comm *c, uint32_t member, uint64_t seq);

/* Turns the builder into a snapshot. */
struct cw_snapshot *sb_snapshot(const struct sb *b);
/* Turns the builder into a snapshot and computes the verdict on it. The caller owns both. */
struct cw_verdict sb_verdict(const struct sb *b, struct cw_snapshot **ret_snap);

/* Return the labels of the culprits or victims, such as "3" or "0,3", in a static buffer. */
const char *sb_culprits(const struct cw_snapshot *snap, const struct cw_verdict *v);
const char *sb_victims(const struct cw_snapshot *snap, const struct cw_verdict *v);
