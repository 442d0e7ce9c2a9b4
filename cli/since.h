/* SPDX-License-Identifier: Apache-2.0 */
/* Parses instants in the past as users type them. */
#pragma once

#include <stdint.h>

/*
 * Accepts "2h" (ago), "today", "yesterday", "14:30" of today, "2026-11-23", "2026-11-23 14:30[:05]"
 * (also with T for the blank), in the time zone of this process; in UTC with Z at the end, and in
 * the form of documents. 0; -EINVAL: none of these, or not in the calendar; -ERANGE: after
 * now_wall_ns, or before 1970. Any thread; reads the time zone.
 */
int cw_since_parse(const char *text, int64_t now_wall_ns, int64_t *ret_wall_ns);
