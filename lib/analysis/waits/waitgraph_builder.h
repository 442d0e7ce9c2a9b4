/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The graph while it is being built, comm by comm: waitgraph.c sets it up and makes the gates of
 * collectives, waitgraph_p2p.c and waitgraph_host.c add theirs. Pure.
 */
#pragma once

#include "analysis/align/position.h"
#include "analysis/waits/waitgraph.h"

/* A member that waits for a collective. */
struct waiter {
	uint64_t seq;
	uint32_t member; /* comm rank */
};

/* A member that has not come as far as some waiter. */
struct late {
	uint64_t arrived;
	uint32_t member;
};

/* `rank` waits at `gate`. */
struct entry {
	uint32_t rank, gate;
};

struct builder {
	const struct cw_snapshot *snap;
	struct cw_arena *arena;
	struct waitgraph *g;
	/* The comm being looked at. */
	uint32_t comm;
	const struct cw_snap_comm *c;
	uint32_t n_unseen;
	uint32_t n_unobserved;
	/* Scratch, as long as the largest comm has members. */
	struct position *positions;
	struct waiter *waiters;
	struct late *late;
	uint32_t *unseen_at; /* how many gates there were when the last of them counted the peer */
	struct entry *entries;
	uint32_t n_entries;
	bool *is_making;    /* by rank: it is in the making of some comm; NULL = not found yet */
	uint32_t *by_label; /* rank index by label, for labels below n_ranks; CW_SNAP_NONE = none */
};

/* A fresh gate at the comm being looked at; NULL = out of memory. Holds until the next call. */
struct gate *builder_add_gate(struct builder *b, enum gate_kind kind, uint64_t seq,
			      uint32_t op_kind);

/* The member waits at the gate. Its list of waiters is made when all gates are known. */
void builder_note_waiter(struct builder *b, struct gate *gate, uint32_t member);

/* The gates of point-to-point ops (waitgraph_p2p.c). Returns 0 or -ENOMEM. */
int waitgraph_add_p2p(struct builder *b);

/* Init and the calls that block the host until all members came (waitgraph_host.c). */
int waitgraph_add_host(struct builder *b);
