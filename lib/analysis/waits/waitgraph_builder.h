/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph under construction, comm by comm. waitgraph.c initialises it and adds the gates of
 * collectives; waitgraph_p2p.c and waitgraph_host.c add the other gates. Pure.
 */
#pragma once

#include "analysis/align/position.h"
#include "analysis/waits/waitgraph.h"

/* A member that waits for a collective. */
struct waiter {
	uint64_t seq;
	uint32_t member; /* comm rank */
};

/* A member that has not come as far as some waiter. `arrived` is its last coll_seq. */
struct late {
	uint64_t arrived;
	uint32_t member;
};

/* A wait of `rank` at `gate`. */
struct entry {
	uint32_t rank, gate;
};

struct builder {
	const struct cw_snapshot *snap;
	struct cw_arena *arena;
	struct waitgraph *g;
	/* The current comm, its members that are not visible, and those in an unobserved op. */
	uint32_t comm;
	const struct cw_snap_comm *c;
	uint32_t n_unseen;
	uint32_t n_unobserved;
	/* Scratch arrays, with room for each member of the largest comm. */
	struct position *positions;
	struct waiter *waiters;
	struct late *late;
	uint32_t *unseen_at;   /* per peer: n_gates when a gate last counted it as not visible */
	struct entry *entries; /* all waits, of all comms */
	uint32_t n_entries;
	bool *is_making;    /* by rank: it is making some comm now; NULL = not computed yet */
	uint32_t *by_label; /* rank index by label, for labels below n_ranks; CW_SNAP_NONE = none */
};

/*
 * Adds an empty gate to the current comm. The pointer is valid until the next call. NULL = out of
 * memory.
 */
struct gate *builder_add_gate(struct builder *b, enum gate_kind kind, uint64_t seq,
			      uint32_t op_kind);

/*
 * Adds the member to the gate's waiters. The list itself is made after all gates, from `entries`.
 * The gate's oldest waiter is the one that has waited longest as far as we know, then the one with
 * the lowest label. An index would differ between snapshots.
 */
void builder_note_waiter(struct builder *b, struct gate *gate, uint32_t member);

/* Adds the gates of sends and receives (waitgraph_p2p.c). Returns 0 or -ENOMEM. */
int waitgraph_add_p2p(struct builder *b);

/*
 * Adds the gates of calls that block the host until all members have come, such as init
 * (waitgraph_host.c). Returns 0 or -ENOMEM.
 */
int waitgraph_add_host(struct builder *b);
