/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/score_times.h"

#include <errno.h>
#include <stdlib.h>

int cw_score_times_add(struct score_times *t, int64_t ns)
{
	if (t->n == t->cap) {
		size_t cap = t->cap ? t->cap * 2 : 64;
		int64_t *more = reallocarray(t->ns, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->ns = more;
		t->cap = cap;
	}
	t->ns[t->n++] = ns;
	return 0;
}

static int by_length(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

int64_t cw_score_times_at(struct score_times *t, unsigned percent)
{
	size_t at = (t->n * percent + 99) / 100;

	if (!t->n)
		return 0;
	qsort(t->ns, t->n, sizeof(*t->ns), by_length);
	return t->ns[at ? at - 1 : 0];
}

void cw_score_times_fini(struct score_times *t)
{
	free(t->ns);
	*t = (struct score_times){ 0 };
}
