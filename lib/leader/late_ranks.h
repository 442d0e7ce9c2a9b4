/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that come late again and again while their job gets on: found by looking at all its windows
 * now and then (analysis/slow/slow.h), kept from one look to the next, told once. Nobody is paged.
 *
 * A look is a sample of the newest calls. Somebody may be late in one by chance, so a rank is told
 * of when two looks in a row found it, and is late no more when two in a row did not.
 *
 * Pure; loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/slow/slow.h"
#include "common/clock.h"
#include "model/snapshot.h"

/* Between two looks. */
#define LATE_RANKS_EVERY_NS (30 * CW_NS_PER_S)
/* So many collectives must have been made since the last: else it would see the same ones again. */
#define LATE_RANKS_CALLS_MIN 16u
/* A job's notices, one within this time; a rank that is on time and late by turns is one matter. */
#define LATE_RANKS_TELL_EVERY_NS (600 * CW_NS_PER_S)

struct cw_late_rank {
	struct cw_slow said; /* of the last look that found it; its indices are no more valid */
	int32_t rank, pid;
	uint64_t comm;
	char host[64], comm_name[32];
	int64_t since_ns, since_wall_ns; /* the first look that found it */
	uint32_t n_found, n_missed;      /* looks in a row */
	bool is_told;
};

struct cw_late_ranks {
	struct cw_late_rank v[CW_SLOW_MAX];
	uint32_t n;
	int64_t asked_ns; /* for windows; before that, when the job began */
	int64_t told_ns;  /* 0 = never */
	uint64_t calls;   /* the job's collectives when it was last asked */
	bool is_asked;    /* the windows of all are on their way */
};

/* It was late in two looks in a row. */
bool cw_late_rank_is_confirmed(const struct cw_late_rank *late);

/* It is time to look, and there is something new to see. */
bool late_ranks_is_due(const struct cw_late_ranks *l, int64_t now_ns, uint64_t calls);
/* A look: list is about snap. *ret_over: who is late no more, first of n; room for CW_SLOW_MAX. */
uint32_t late_ranks_look(struct cw_late_ranks *l, const struct cw_snapshot *snap,
			 const struct cw_slow_list *list, struct cw_late_rank *ret_over);
/*
 * The costliest of whom people are to be told now, and marks all that are confirmed, and likely, as
 * told; NULL = nobody new, or too soon. Borrowed until the next look.
 */
const struct cw_late_rank *late_ranks_tell(struct cw_late_ranks *l, int64_t now_ns);
/* "rank 5 (node-b, pid 71) comes late: …", for people; len is 1 or more. */
void cw_late_rank_format(const struct cw_late_rank *late, char *buf, size_t len);
/* … and how many others are. */
void late_ranks_format(const struct cw_late_ranks *l, const struct cw_late_rank *late, char *buf,
		       size_t len);
