/* SPDX-License-Identifier: Apache-2.0 */
/* Parses instants in the past as users type them. */
#pragma once

#include <stdint.h>

/*
 * Parses a time in one of these forms: "2h" (ago), "today", "yesterday", "14:30" (of today),
 * "2026-11-23" and "2026-11-23 14:30[:05]". T may replace the blank. The form of times in our
 * documents works, too. A final Z means UTC. Otherwise the time zone is that of this process.
 *
 * Returns 0 or -errno. -EINVAL: the text has none of these forms, or the calendar has no such day.
 * -ERANGE: the time is after now_wall_ns, or a date before 1970. A duration that reaches back
 * further counts from 1970. Any thread; reads the time zone.
 */
int cw_since_parse(const char *text, int64_t now_wall_ns, int64_t *ret_wall_ns);
