/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a record may be read. One with hundreds of communicators takes milliseconds, and
 * nothing stops a user from making many of them. So no record gets more than 1 % of a core, and
 * where there are many, all together at most a quarter of one: a costly one is sampled less often.
 * Real records take 0.1 ms and are read on every tick. Any thread; does not block.
 */
#pragma once

#include <stdint.h>

/* When to read it again: it took cost_ns just now, and is one of n. */
int64_t cw_sample_throttle_next_ns(int64_t now_ns, int64_t cost_ns, unsigned n);
