/* SPDX-License-Identifier: Apache-2.0 */
/* For fr_snapshot.c: one communicator of the dumps, and the positions of its members. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/fr_dump.h"
#include "model/arena.h"
#include "model/snapshot.h"

struct fr_place {
	const struct cw_fr_dump *dump;   /* NULL = no dump describes this member */
	const struct cw_fr_group *group; /* its group in this dump; NULL = the rank never used it */
	bool is_behind; /* assume that its pending calls are behind a call on another group */
};

struct fr_comm {
	const char *name, *desc;
	const struct cw_fr_group *first; /* one member's view; its name is used for the group */
	const int32_t *ranks;
	uint32_t n_ranks;
	struct fr_place *places; /* one per member */

	/* Set by fr_comm_prepare(). */
	uint64_t lowest_pending; /* coll_seq; 0 = none */
	uint64_t highest;        /* the highest coll_seq that a member entered */
	uint8_t pending_kind;    /* kind of the call at lowest_pending */
	int64_t pending_ns;      /* when the first member made that call; 0 = unknown */
	int64_t *asked_ns;       /* per place: first open send to it or receive from it */
	uint64_t had_all;        /* the last coll_seq that all members certainly entered */
	bool has_completed;      /* the dumps of its members list completed calls too */
	uint32_t n_unconfirmed;  /* calls that count as completed, but may have failed */
	bool has_p2p;
	bool lacks_dump; /* some member has no dump */
	/* the dumps contain every send and receive ever made on this comm */
	bool is_p2p_whole;
	const struct cw_fr_op **calls; /* collectives by coll_seq; the best known comes first */
	uint32_t n_calls;
	/* per place: index + 1 in the peers of the current member; 0 = none */
	uint32_t *peers;
	/* coll_seq of an open exchange whose sizes do not match; 0 = none. */
	uint64_t uneven_seq;
	int32_t uneven_member; /* the member that most likely has the wrong size; -1 = unknown */
	/* Counted by fr_member_make(). */
	uint32_t n_unnamed_ops;
	uint32_t n_earlier; /* members dumped before others continued: position unknown */
	uint32_t n_before;  /* members dumped before others made the call that they wait in */
};

/* Returns 0 or -ENOMEM. */
int fr_comm_prepare(struct fr_comm *comm, struct cw_arena *arena);

/*
 * Fills *ret for member `place`, except for ret->rank. Its data lies in arena. Call
 * fr_comm_prepare() first. Returns 0 or -ENOMEM.
 */
int fr_member_make(struct fr_comm *comm, uint32_t place, struct cw_arena *arena,
		   struct cw_snap_member *ret);
