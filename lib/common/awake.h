/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long this process has been awake: a clock that stands still while its loop is held up, by
 * SIGSTOP, a disk that hangs, the migration of its machine, or too few processors.
 *
 * Silence is judged by it alone. Whoever was held up for a minute has heard nobody for a minute,
 * and that says nothing about the others; what they sent meanwhile lies unread in the kernel.
 * Deadlines of questions and answers run by it, too. When something happened, and for how long
 * somebody has been waiting by the word of those who saw it, is told by the monotonic clock.
 *
 * Whoever runs looks at the clock several times a second. Of a longer gap between two looks it
 * counts CW_AWAKE_STEP_NS, so that no caller has to say that there was one, and whichever event
 * comes first after it, every module sees the same. CLOCK_MONOTONIC stands still while the machine
 * is suspended: then neither clock has anything to leave out.
 *
 * Not thread-safe.
 */
#pragma once

#include <stdint.h>

#include "common/clock.h"

/*
 * More than a loop that runs is ever away: it ticks every 250 ms. Less than what people or peers
 * are promised: the shortest silence that means anything is 5 s.
 */
#define CW_AWAKE_STEP_NS CW_NS_PER_S

struct cw_awake {
	struct cw_clock clock; /* to be handed out: all three times */
	const struct cw_clock *of;
	int64_t looked_ns;
	int64_t held_ns; /* left out so far */
};

/* of: borrowed. Must not move afterwards. */
void cw_awake_init(struct cw_awake *a, const struct cw_clock *of);
