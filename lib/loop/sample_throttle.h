/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how often we read a record. A record with hundreds of communicators takes milliseconds,
 * and a user can make many such records. We therefore sample costly records less often. No record
 * gets more than 1 % of a core. All records together get at most a quarter of a core. Real records
 * take 0.1 ms, and we read them on every tick. Any thread; does not block.
 */
#pragma once

#include <stdint.h>

/*
 * Returns the time at which to read a record again. cost_ns is the CPU time of its last read, and n
 * is the number of records.
 */
int64_t cw_sample_throttle_next_ns(int64_t now_ns, int64_t cost_ns, unsigned n);
