/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": which of the words there are somebody may have meant to type. Pure. */
#pragma once

#include <stddef.h>

/* Longer words are compared up to here. */
#define CW_NEAREST_MAX 32u

/*
 * How many letters a typist got wrong: one missing, one too many, one for another, or two
 * neighbours the wrong way round. The whole length is more than anybody gets wrong.
 */
unsigned cw_nearest_distance(const char *a, const char *b);

/* The nearest so far. Starts as { .typed = … }. */
struct cw_nearest {
	const char *typed;
	const char *word; /* NULL = none is near enough; borrowed */
	unsigned distance;
};

/* A word there is; of two equally near ones the first stays. */
void cw_nearest_offer(struct cw_nearest *n, const char *word);
