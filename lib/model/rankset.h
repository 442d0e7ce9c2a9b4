/* SPDX-License-Identifier: Apache-2.0 */
/* Format and parse sets of rank numbers: "0-15,17". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Formats n numbers, in any order and with duplicates, into buf ("" for none). Skips negative
 * numbers. A text that does not fit ends in ",…". Returns buf.
 */
char *cw_rankset_format(const int32_t *ranks, size_t n, char *buf, size_t len);

/* The same in a fresh string of any length (free()); NULL = out of memory. */
char *cw_rankset_format_alloc(const int32_t *ranks, size_t n);

/*
 * Parses "0-2,7" into a fresh, ascending array (free()). -EINVAL for a malformed text, -E2BIG for
 * more than max numbers, -ENOMEM. An empty string is an empty set (*ret_ranks NULL).
 */
int cw_rankset_parse(const char *text, size_t max, int32_t **ret_ranks, size_t *ret_n);
