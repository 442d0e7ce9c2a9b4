/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are late again and again while their job makes progress. We sample all windows of the
 * job now and then (analysis/slow/slow.h), and keep the result from one sample to the next. We send
 * one notice, never a page.
 *
 * A sample covers the newest calls. A rank may be late in one sample by chance. So we report a rank
 * after two samples in a row that found it, and clear it after two in a row that did not.
 *
 * Pure; loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/slow/slow.h"
#include "common/clock.h"
#include "model/snapshot.h"

/* Time between two samples. */
#define LATE_RANKS_EVERY_NS (30 * CW_NS_PER_S)
/*
 * Collectives the job must have made since the last sample: otherwise we would see the same
 * calls again.
 */
#define LATE_RANKS_CALLS_MIN 16u
/* At most one notice per job within this time; a rank that is late on and off is one matter. */
#define LATE_RANKS_NOTICE_EVERY_NS (600 * CW_NS_PER_S)

struct cw_late_rank {
	struct cw_slow said; /* from the last sample that found it; its indices are stale */
	int32_t rank, pid;
	uint64_t comm;
	char host[64], comm_name[32];
	int64_t since_ns, since_wall_ns; /* the first sample that found it */
	uint32_t n_found, n_missed;      /* samples in a row */
	bool is_noticed;
};

struct cw_late_ranks {
	struct cw_late_rank v[CW_SLOW_MAX];
	uint32_t n;
	int64_t asked_ns;   /* last request for windows; initially the start of the job */
	int64_t noticed_ns; /* 0 = never */
	uint64_t calls;     /* the job's collectives at the last request */
	bool is_asked;      /* requests for all windows are in flight */
};

/* True if two samples in a row found it late. */
bool cw_late_rank_is_confirmed(const struct cw_late_rank *late);

/* True if a sample is due and there are new calls to see. */
bool late_ranks_is_due(const struct cw_late_ranks *l, int64_t now_ns, uint64_t calls);
/*
 * Takes a sample: list is about snap. *ret_over: ranks that are late no more, the first n of it;
 * room for CW_SLOW_MAX.
 */
uint32_t late_ranks_add_sample(struct cw_late_ranks *l, const struct cw_snapshot *snap,
			       const struct cw_slow_list *list, struct cw_late_rank *ret_over);
/*
 * The costliest late rank that is due for a notice; NULL = no new rank, or too soon. Marks all
 * confirmed and likely ranks as noticed. Borrowed until the next sample.
 */
const struct cw_late_rank *late_ranks_next_notice(struct cw_late_ranks *l, int64_t now_ns);
/* "rank 5 (node-b, pid 71) comes late: …", for users; len is 1 or more. */
void cw_late_rank_format(const struct cw_late_rank *late, char *buf, size_t len);
/* … and the number of other late ranks. */
void late_ranks_format(const struct cw_late_ranks *l, const struct cw_late_rank *late, char *buf,
		       size_t len);
