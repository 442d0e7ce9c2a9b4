/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": finds the known word that is closest to a mistyped one. Pure. */
#pragma once

#include <stddef.h>

/* We compare longer words up to this length. */
#define CW_NEAREST_MAX 32u

/*
 * Counts typing errors: a letter missing, one too many, one for another, or two neighbours swapped.
 * The whole length means that the words differ completely.
 */
unsigned cw_nearest_distance(const char *a, const char *b);

/* The closest word so far. Starts as { .typed = … }. */
struct cw_nearest {
	const char *typed;
	const char *word; /* NULL = none is close enough; borrowed */
	unsigned distance;
};

/* Offers a known word; of two equally close words the first stays. */
void cw_nearest_offer(struct cw_nearest *n, const char *word);
