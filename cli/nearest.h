/* SPDX-License-Identifier: Apache-2.0 */
/* For the hint "Did you mean": finds the known word that is closest to a mistyped one. Pure. */
#pragma once

#include <stddef.h>

/* We compare at most this many characters of a word. */
#define CW_NEAREST_MAX 32u

/*
 * Counts the typing errors between two words: a missing letter, an extra letter, a wrong letter, or
 * two swapped neighbours. If the count equals the length of the longer word, the words differ
 * completely.
 */
unsigned cw_nearest_distance(const char *a, const char *b);

/* The closest of the words offered so far. Initialize it with { .typed = … }. */
struct cw_nearest {
	const char *typed;
	const char *word; /* NULL = none is close enough; borrowed */
	unsigned distance;
};

/* Offers a known word. If two words are equally close, we keep the first. */
void cw_nearest_offer(struct cw_nearest *n, const char *word);
