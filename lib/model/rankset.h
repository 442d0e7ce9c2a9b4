/* SPDX-License-Identifier: Apache-2.0 */
/* Sets of rank numbers as people write them: "0-15,17". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Formats n numbers, in any order and with duplicates, into buf ("" for none; negative numbers are
 * left out). When it does not fit, it ends in ",…". Returns buf.
 */
char *cw_rankset_format(const int32_t *ranks, size_t n, char *buf, size_t len);

/* The same, complete, in a fresh string (free()); NULL = out of memory. */
char *cw_rankset_format_alloc(const int32_t *ranks, size_t n);

/*
 * Parses "0-2,7" into a fresh, ascending array (free()). -EINVAL when malformed, -E2BIG above max
 * numbers, -ENOMEM. An empty string is an empty set (*ret_ranks NULL).
 */
int cw_rankset_parse(const char *text, size_t max, int32_t **ret_ranks, size_t *ret_n);
