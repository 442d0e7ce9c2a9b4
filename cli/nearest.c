/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/nearest.h"

#include <stdbool.h>
#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* Computes the optimal string alignment distance. Three rows of the table suffice. */
unsigned cw_nearest_distance(const char *a, const char *b)
{
	unsigned rows[3][CW_NEAREST_MAX + 1];
	unsigned *before = rows[0], *above = rows[1], *row = rows[2], *spare;
	size_t n = strnlen(a, CW_NEAREST_MAX), m = strnlen(b, CW_NEAREST_MAX);

	for (unsigned j = 0; j <= m; j++)
		above[j] = j;
	for (unsigned i = 1; i <= n; i++) {
		row[0] = i;
		for (unsigned j = 1; j <= m; j++) {
			bool is_other = a[i - 1] != b[j - 1];

			row[j] = least(above[j - 1] + is_other, least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				row[j] = least(row[j], before[j - 2] + is_other);
		}
		spare = before;
		before = above;
		above = row;
		row = spare;
	}
	return above[m];
}

/*
 * Returns how many typing errors we accept: one for a word of three letters, two for six. A word
 * with more errors would be another word.
 */
static unsigned limit(const char *typed)
{
	size_t n = strnlen(typed, CW_NEAREST_MAX);

	return n < 3 ? 0 : n < 6 ? 1 : n < 12 ? 2 : 3;
}

void cw_nearest_offer(struct cw_nearest *n, const char *word)
{
	unsigned distance = cw_nearest_distance(n->typed, word);

	if (distance > limit(n->typed) || (n->word && distance >= n->distance))
		return;
	n->word = word;
	n->distance = distance;
}
