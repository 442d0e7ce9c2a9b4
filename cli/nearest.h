/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the known word that is closest to a mistyped one. Pure. */
#pragma once

#include <stddef.h>

/* Of longer words, we compare this many characters. */
#define CW_NEAREST_MAX 32u

/*
 * Counts typing errors: a missing letter, an extra letter, a wrong letter, or two swapped
 * neighbours. If the result is the whole length, the words differ completely.
 */
unsigned cw_nearest_distance(const char *a, const char *b);

/* The closest word so far. Initialize it with { .typed = … }. */
struct cw_nearest {
	const char *typed;
	const char *word; /* NULL = none is close enough; borrowed */
	unsigned distance;
};

/* Offers a known word. Of two equally close words we keep the first. */
void cw_nearest_offer(struct cw_nearest *n, const char *word);
