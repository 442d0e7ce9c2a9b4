/* SPDX-License-Identifier: Apache-2.0 */
/* Parses instants in the past as users type them. */
#pragma once

#include <stdint.h>

/*
 * Parses "2h" (ago), "today", "yesterday", "14:30" of today, "2026-11-23" or "2026-11-23
 * 14:30[:05]", also with T for the blank. Times are in the time zone of this process, or in UTC if
 * Z is at the end. The form of documents is valid, too. Returns 0 or -errno. -EINVAL: none of these
 * forms, or not in the calendar. -ERANGE: after now_wall_ns, or a date before 1970. A duration that
 * reaches back further counts from 1970. Any thread; reads the time zone.
 */
int cw_since_parse(const char *text, int64_t now_wall_ns, int64_t *ret_wall_ns);
