/* SPDX-License-Identifier: Apache-2.0 */
/* fr_snapshot.c's: one communicator of the dumps, and how its members stand. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "import/fr_dump.h"
#include "model/arena.h"
#include "model/snapshot.h"

struct fr_place {
	const struct cw_fr_dump *dump;   /* NULL = no dump describes this member */
	const struct cw_fr_group *group; /* of that dump; NULL = it has never used it */
	bool is_behind; /* its pending calls are taken to be behind one on another group */
};

struct fr_comm {
	const char *name, *desc;
	const struct cw_fr_group *first; /* somebody's: as it is known by name */
	const int32_t *ranks;
	uint32_t n_ranks;
	struct fr_place *places; /* one per member */

	/* By fr_comm_prepare(). */
	uint64_t lowest_pending; /* coll_seq; 0 = none */
	uint64_t highest;        /* coll_seq anybody has come to */
	uint8_t pending_kind;    /* at lowest_pending */
	int64_t pending_ns;      /* when the first of its members made it; 0 = not known */
	int64_t *asked_ns;       /* of each place: the first open send to it or receive from it */
	uint64_t had_all;        /* the last coll_seq of which it is known that all had come */
	bool has_completed;      /* its members' dumps list calls that are not open, too */
	uint32_t n_in_doubt;     /* calls that are taken for completed, and may have failed */
	bool has_p2p;
	bool lacks_dump;               /* of some member */
	bool is_p2p_whole;             /* the dumps hold every send and receive ever made on it */
	const struct cw_fr_op **calls; /* collectives by coll_seq, the best known first */
	uint32_t n_calls;
	uint32_t *peers; /* of each place: its number + 1 among the peers of the member that is
			    made; 0 = none */
	/* An exchange that is open and whose sizes do not add up; 0 = there is none. */
	uint64_t uneven_seq;
	int32_t uneven_member; /* whose size it is, most likely; -1 = that is open */
	/* Counted while members are made. */
	uint32_t n_unnamed_ops;
	uint32_t n_earlier; /* dumped before others went on: where they stand is not known */
	uint32_t n_before;  /* … before others made the call they wait in */
};

/* 0 or -ENOMEM. */
int fr_comm_prepare(struct fr_comm *comm, struct cw_arena *arena);

/*
 * Member `place`, all but ret->rank; what it points to lies in arena. After fr_comm_prepare(). 0 or
 * -ENOMEM.
 */
int fr_member_make(struct fr_comm *comm, uint32_t place, struct cw_arena *arena,
		   struct cw_snap_member *ret);
