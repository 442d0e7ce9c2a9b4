/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats a rank's calls as PyTorch's Flight Recorder does. fr_export.c chooses the contents of the
 * dumps, and this file writes them. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "model/arena.h"
#include "model/snapshot.h"

struct fr_out_place {
	int32_t label;
	uint32_t comm_rank;
};

/*
 * A member's sends to one peer and receives from it. first_send and first_recv are the numbers of
 * the oldest ones in the snapshot; 0 = none.
 */
struct fr_out_pair {
	uint32_t peer;
	uint64_t first_send, first_recv;
};

struct fr_out_pairs {
	struct fr_out_pair *list;
	uint32_t n, room;
};

struct fr_out_comm {
	const struct cw_snap_comm *snap;
	/* The members by label. NULL = some members are unknown, so we omit the comm. */
	struct fr_out_place *sorted;
	uint32_t *place_of; /* per comm rank: index of the member in `sorted` */
	uint64_t first_seq; /* first collective that we write; some members lack earlier ones */
	struct fr_out_pairs *pairs; /* per comm rank: the pairs of the member */
	char name[40];
};

struct fr_out_member {
	const struct cw_snap_member *snap;
	uint32_t comm, comm_rank;
};

struct fr_out_entry {
	const struct cw_op *op;
	const struct fr_out_member *member;
	uint32_t pg_id; /* index of the member among the members of its rank */
	uint64_t p2p_seq;
	uint64_t last_coll; /* number of the last collective, which a send or receive carries */
	bool ends_group;    /* the entry closes a coalesced launch and has the state of op */
	bool is_coalesced;
};

struct fr_out {
	const struct cw_snapshot *snap;
	struct fr_out_comm *comms;
	struct fr_out_member *members; /* members of all comms, sorted by rank */
	uint32_t *start; /* members of rank r: members[start[r]] … members[start[r + 1] - 1] */
	struct cw_arena arena;
};

struct fr_out_dump {
	const struct fr_out *x;
	uint32_t rank;
	struct fr_out_entry *entries;
	uint32_t n, room;
};

/* Writes the whole pickle of one rank. The stream records errors. */
void fr_out_put_dump(FILE *out, const struct fr_out_dump *d);
