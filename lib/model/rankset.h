/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and parses sets of rank numbers, such as "0-15,17". */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Formats n numbers into buf. The numbers may be in any order and contain duplicates. For n = 0 the
 * text is "". We skip negative numbers. If the text does not fit, it ends in ",…". Returns buf.
 */
char *cw_rankset_format(const int32_t *ranks, size_t n, char *buf, size_t len);

/*
 * Like cw_rankset_format(), but returns a new string of any length. The caller frees the string
 * with free(). NULL = out of memory.
 */
char *cw_rankset_format_alloc(const int32_t *ranks, size_t n);

/*
 * Parses a text like "0-2,7" into a new, ascending array. The caller frees the array with free().
 * For an empty text *ret_ranks is NULL. Returns 0, -EINVAL for a malformed text, -E2BIG for more
 * than max numbers, or -ENOMEM.
 */
int cw_rankset_parse(const char *text, size_t max, int32_t **ret_ranks, size_t *ret_n);
