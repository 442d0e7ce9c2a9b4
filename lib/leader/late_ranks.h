/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are late again and again while their job makes progress. We sample all windows of the
 * job now and then (analysis/slow/slow.h), and keep the result from one sample to the next. We send
 * one notice, never a page.
 *
 * A sample covers the newest calls. In a single sample a rank may be late by chance. So we report a
 * rank when two samples in a row found it late, and clear it when two samples in a row did not.
 *
 * Pure; loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analysis/slow/slow.h"
#include "common/clock.h"
#include "model/snapshot.h"

/* The time between two samples. */
#define LATE_RANKS_EVERY_NS (30 * CW_NS_PER_S)
/*
 * The minimum number of collectives of the job between two samples. With fewer, we would see the
 * same calls again.
 */
#define LATE_RANKS_CALLS_MIN 16u
/*
 * The minimum time between two notices of one job. A rank that is late on and off gets only one
 * notice in this time.
 */
#define LATE_RANKS_NOTICE_EVERY_NS (600 * CW_NS_PER_S)

struct cw_late_rank {
	/* From the last sample that found the rank late; its indices are out of date. */
	struct cw_slow said;
	int32_t rank, pid;
	uint64_t comm;
	char host[64], comm_name[32];
	int64_t since_ns, since_wall_ns; /* time of the first sample that found the rank late */
	/* Number of samples in a row that found the rank late, or did not. */
	uint32_t n_found, n_missed;
	bool is_noticed;
};

struct cw_late_ranks {
	struct cw_late_rank v[CW_SLOW_MAX];
	uint32_t n;
	/* Time of the last request for windows; at first the start of the job. */
	int64_t asked_ns;
	int64_t noticed_ns; /* time of the last notice; 0 = never */
	uint64_t calls;     /* number of the job's collectives at the last request */
	bool is_asked;      /* requests for all windows are in flight */
};

/* True if two samples in a row found the rank late. */
bool cw_late_rank_is_confirmed(const struct cw_late_rank *late);

/* True if the next sample is due and the job has made new calls. */
bool late_ranks_is_due(const struct cw_late_ranks *l, int64_t now_ns, uint64_t calls);
/*
 * Adds a sample. list: the late ranks of snap. *ret_over: the ranks that are no longer late, with
 * room for CW_SLOW_MAX. Returns the number of ranks in *ret_over.
 */
uint32_t late_ranks_add_sample(struct cw_late_ranks *l, const struct cw_snapshot *snap,
			       const struct cw_slow_list *list, struct cw_late_rank *ret_over);
/*
 * Returns the costliest late rank that is due for a notice. NULL = there is no new late rank, or it
 * is too soon. Marks all confirmed ranks whose confidence is at least likely as noticed. The rank
 * is borrowed until the next sample.
 */
const struct cw_late_rank *late_ranks_next_notice(struct cw_late_ranks *l, int64_t now_ns);
/* Formats "rank 5 (node-b, pid 71) is late: …" for users. len is 1 or more. */
void cw_late_rank_format(const struct cw_late_rank *late, char *buf, size_t len);
/* Formats the rank like cw_late_rank_format(), and adds the number of other late ranks. */
void late_ranks_format(const struct cw_late_ranks *l, const struct cw_late_rank *late, char *buf,
		       size_t len);
