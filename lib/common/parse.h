/* SPDX-License-Identifier: Apache-2.0 */
/* Strict number and unit parsers: whole string or -EINVAL, range or -ERANGE. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads the digits at *text in base 10 or 16, and moves *text past them. No sign, space or
 * prefix. The agent uses this function and neither strtoul() nor sscanf(): headers of glibc 2.38
 * and later rename those to functions that an older glibc lacks. No format that the agent reads
 * has signs or spaces.
 */
int cw_parse_digits(const char **text, unsigned base, uint64_t *ret);
int cw_parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *ret);
int cw_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret);
/* "90s", "500ms", "10min", "1h", "30d"; a unit is required except for 0. */
int cw_parse_duration_ns(const char *text, int64_t *ret_ns);
/* "512KiB", "1GiB", "0"; a unit is required except for 0. */
int cw_parse_bytes(const char *text, uint64_t *ret);
/* For each boolean of the environment: "1", "true", "yes", "on" or an opposite, in any case. */
int cw_parse_switch(const char *text, bool *ret);
/* "12 s", "350 ms", "2 min 5 s" for people; returns buf. */
char *cw_format_duration(int64_t ns, char *buf, unsigned len);
