/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strict parsers of numbers and units. Each parser returns -EINVAL unless the whole string is
 * valid, and -ERANGE if the number is out of range.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the digits at *text in base 10 or 16, and moves *text past them. No sign, space or prefix
 * is accepted; no format that the agent reads has any. The agent uses this function instead of
 * strtoul() and sscanf(). Headers of glibc 2.38 and later rename those to functions that an older
 * glibc lacks.
 */
int cw_parse_digits(const char **text, unsigned base, uint64_t *ret);
int cw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
int cw_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret);
/* Parses "90s", "500ms", "10min", "1h" or "30d". A unit is required except for 0. */
int cw_parse_duration_ns(const char *text, int64_t *ret_ns);
/* Parses "512KiB", "1GiB" or "0". A unit is required except for 0. */
int cw_parse_bytes(const char *text, uint64_t *ret);
/*
 * Parses a boolean of the environment: "1", "true", "yes", "on" or an opposite, in upper or lower
 * case.
 */
int cw_parse_switch(const char *text, bool *ret);
/*
 * Returns whether the values of the environment's COLLWATCH and COLLWATCH_DISABLE turn the agent
 * off: the first is off, or the second is on. NULL = the variable is not set. A value that is no
 * boolean counts as not set. deploy/slurm has this rule, too, because it builds without our
 * libraries.
 */
bool cw_parse_agent_is_off(const char *collwatch, const char *disable);
/* Writes "12 s", "350 ms" or "2 min 5 s" for people, and returns buf. */
char *cw_format_duration(int64_t ns, char *buf, unsigned len);
