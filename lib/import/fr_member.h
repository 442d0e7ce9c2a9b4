/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For fr_snapshot.c and fr_exchange.c: one communicator of the dumps, and the positions of its
 * members.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/fr_dump.h"
#include "model/arena.h"
#include "model/snapshot.h"

struct fr_place {
	const struct cw_fr_dump *dump; /* NULL = no dump describes this member */
	/* The group in this dump; NULL = the rank never used the group. */
	const struct cw_fr_group *group;
	/* We assume that the pending calls are behind a call on another group. */
	bool is_behind;
};

struct fr_comm {
	const char *name, *desc;
	const struct cw_fr_group *first; /* the group in one member's dump; we use its name */
	const int32_t *ranks;
	uint32_t n_ranks;
	struct fr_place *places; /* one element per member */

	/* fr_comm_prepare() sets the fields from here on. */
	uint64_t lowest_pending; /* lowest coll_seq of a pending call; 0 = none */
	uint64_t highest;        /* the highest coll_seq that a member has entered */
	uint8_t pending_kind;    /* kind of the call at lowest_pending */
	/* When the first member made the call at lowest_pending; 0 = unknown. */
	int64_t pending_ns;
	/*
	 * Indexed by a member's rank in the group: time of the first open send to this member, or
	 * receive from it.
	 */
	int64_t *asked_ns;
	/* The last coll_seq that all members have certainly entered. */
	uint64_t had_all;
	bool has_completed; /* the dumps of the members list completed calls too */
	/* Number of calls that count as completed, but may have failed. */
	uint32_t n_unconfirmed;
	bool has_p2p;
	bool lacks_dump; /* some member has no dump */
	/* The dumps contain every send and receive ever made on this comm. */
	bool is_p2p_whole;
	const struct cw_fr_op **calls; /* collectives by coll_seq; the best known comes first */
	uint32_t n_calls;
	/*
	 * Indexed by a member's rank in the group: index + 1 in the peers of the current member; 0
	 * = none.
	 */
	uint32_t *peers;
	/* Sends and receives that an older call of their rank holds up; sorted by address. */
	const struct cw_fr_op **behind;
	uint32_t n_behind;
	/* The coll_seq of an open exchange whose sizes do not match; 0 = none. */
	uint64_t uneven_seq;
	int32_t uneven_member; /* the member that most likely has the wrong size; -1 = unknown */
	/* fr_member_make() counts in the fields from here on. */
	uint32_t n_unnamed_ops;
	/* Members whose dump is older than others' later calls; their position is unknown. */
	uint32_t n_earlier;
	/* Members whose dump is older than the calls that others wait in. */
	uint32_t n_before;
};

/* Sets the fields that fr_comm_prepare() owns. */
void fr_comm_prepare(struct fr_comm *comm, struct cw_arena *arena);

/*
 * Fills *ret for member `place`, except for ret->rank. The data of *ret lies in arena.
 * fr_comm_prepare() must have run before.
 */
void fr_member_make(struct fr_comm *comm, uint32_t place, struct cw_arena *arena,
		    struct cw_snap_member *ret);
