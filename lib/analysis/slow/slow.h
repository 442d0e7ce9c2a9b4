/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who comes late, in a job that gets on. A rank is slow where the others of a communicator had to
 * wait for it again and again: it entered collectives later than most, and most did not enter
 * another call before it had come. Hosts that run ahead of their devices are behind each other
 * without holding anybody up, and do not count; nor does, in any call, what a rank has itself
 * waited for others.
 *
 * That needs windows of all members. It is for recordings and for people: nobody is alerted. Times
 * of ranks on different hosts are comparable only as far as their clocks are: where no rank of the
 * same host is on time, the answer is no more than possible.
 */
#pragma once

#include <stdint.h>

#include "model/snapshot.h"

#define CW_SLOW_MAX 8u

struct cw_slow {
	uint32_t rank, comm; /* indices; of its comms the one in which it costs most */
	uint32_t confidence; /* enum cw_confidence: likely or possible */
	uint32_t n_ops;      /* collectives compared */
	uint32_t n_late;     /* … in which the others waited for it */
	int64_t late_ns;     /* by how much it came after the median, on average of those */
	uint32_t percent;    /* of the time looked at that this cost */
};

/* The costliest first. */
struct cw_slow_list {
	struct cw_slow v[CW_SLOW_MAX];
	uint32_t n;
};

/* Pure; O(window ops × log members). Returns 0 or -ENOMEM. */
int cw_slow_find(const struct cw_snapshot *snap, struct cw_slow_list *ret);
