/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wait-for graph under construction, comm by comm. waitgraph.c initialises the builder and adds
 * the gates of collectives. waitgraph_p2p.c and waitgraph_host.c add the other gates. Pure.
 */
#pragma once

#include "analysis/align/position.h"
#include "analysis/waits/waitgraph.h"

/* A member that waits for a collective. */
struct waiter {
	uint64_t seq;
	uint32_t member; /* comm rank */
};

/*
 * A member that has not come as far as some waiter. `arrived` is the last coll_seq that it has
 * reached.
 */
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
	/*
	 * The current comm; the number of its members that are not visible; and the number of its
	 * members that may be inside an unobserved op.
	 */
	uint32_t comm;
	const struct cw_snap_comm *c;
	uint32_t n_unseen;
	uint32_t n_unobserved;
	/* Scratch arrays, with room for each member of the largest comm. */
	struct position *positions;
	struct waiter *waiters;
	struct late *late;
	/* Per peer: n_gates when a gate last counted the peer as not visible. */
	uint32_t *unseen_at;
	struct entry *entries; /* all waits, in all comms */
	uint32_t n_entries;
	/* Per rank: it is making some comm now; NULL = not computed yet. */
	bool *is_making;
	/* Rank index by label, for labels below n_ranks; CW_SNAP_NONE = none. */
	uint32_t *by_label;
};

/*
 * Adds an empty gate to the current comm. The next call invalidates the returned pointer. NULL =
 * out of memory.
 */
struct gate *builder_add_gate(struct builder *b, enum gate_kind kind, uint64_t seq,
			      uint32_t op_kind);

/*
 * Adds the member to the waiters of the gate. We store the wait in `entries`, and make the gate's
 * list after all gates are complete. The oldest waiter is the one that has waited longest as far as
 * we know. Of several such waiters we take the lowest label, because indices differ between
 * snapshots.
 */
void builder_note_waiter(struct builder *b, struct gate *gate, uint32_t member);

/* Adds the gates of sends and receives (waitgraph_p2p.c). Returns 0 or -ENOMEM. */
int waitgraph_add_p2p(struct builder *b);

/*
 * Adds the gates of calls that block the host until all members have come, such as init
 * (waitgraph_host.c). Returns 0 or -ENOMEM.
 */
int waitgraph_add_host(struct builder *b);
