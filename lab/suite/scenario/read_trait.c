/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads properties of ranks: NCCL's version, its variables, and the size that ranks pass for a
 * comm.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab/suite/scenario/reader.h"

static struct suite_trait *new_trait(struct reader *r, uint8_t kind)
{
	struct suite_trait *t = &r->s->traits[r->s->n_traits];

	if (r->s->n_traits == SUITE_MAX_TRAITS) {
		(void)read_fail(r, "too many such lines", NULL);
		return NULL;
	}
	*t = (struct suite_trait){ .kind = kind };
	return read_set(r, &t->set) < 0 ? NULL : t;
}

static int finish_trait(struct reader *r)
{
	r->s->n_traits++;
	return read_end(r);
}

/* Reads: nccl RANKS MAJOR.MINOR.PATCH */
int read_version(struct reader *r)
{
	struct suite_trait *t = new_trait(r, SUITE_VERSION);
	const char *w = t ? read_word(r) : NULL;
	unsigned major, minor, patch;
	int end = 0;

	if (!t)
		return -EINVAL;
	if (!w || w[strspn(w, "0123456789.")] ||
	    sscanf(w, "%3u.%2u.%2u%n", &major, &minor, &patch, &end) != 3 || w[end])
		return read_fail(r, "not a version of NCCL (2.28.9):", w);
	t->value = major * 10000 + minor * 100 + patch;
	return finish_trait(r);
}

/* Reads: environment RANKS NUMBER|own */
int read_environment(struct reader *r)
{
	struct suite_trait *t = new_trait(r, SUITE_ENVIRONMENT);

	if (!t)
		return -EINVAL;
	if (read_is(r, "own"))
		t->value = SUITE_OWN;
	else if (read_u64(r, UINT32_MAX, &t->value) < 0)
		return -EINVAL;
	return finish_trait(r);
}

/* Reads: starts RANKS after|within TIME */
int read_starts(struct reader *r)
{
	struct suite_trait *t = new_trait(r, SUITE_STARTS);
	int64_t ns;

	if (!t)
		return -EINVAL;
	if (read_is(r, "after"))
		t->kind = SUITE_STARTS_AT;
	else if (!read_is(r, "within"))
		return read_fail(r, "after what time, or within which?", NULL);
	if (read_time(r, &ns) < 0)
		return -EINVAL;
	t->value = (uint64_t)ns;
	return finish_trait(r);
}

/* Reads: told RANKS COMM NUMBER */
int read_told(struct reader *r)
{
	struct suite_trait *t = new_trait(r, SUITE_SIZE);

	if (!t || read_family(r, &t->family) < 0 || read_u64(r, SUITE_MAX_RANKS, &t->value) < 0)
		return -EINVAL;
	if (t->value == 0)
		return read_fail(r, "a comm of nobody", NULL);
	if (r->s->families[t->family].made != SUITE_BY_INIT)
		return read_fail(r, "the comm is not declared as made by init", NULL);
	return finish_trait(r);
}
