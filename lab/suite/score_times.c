/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/score_times.h"

#include <stdlib.h>

#include "common/or_exit/or_exit.h"

void cw_score_times_add(struct score_times *t, int64_t ns)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->ns = cw_or_exit(reallocarray(t->ns, t->cap, sizeof(*t->ns)));
	}
	t->ns[t->n++] = ns;
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
