/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/parse.h"
#include "lab/suite/scenario/reader.h"

int read_fail(const struct reader *r, const char *what, const char *word)
{
	return cw_err_set(r->err, EINVAL, "%s:%u: %s%s%s%s", r->file, r->words->line, what,
			  word ? " \"" : "", word ? word : "", word ? "\"" : "");
}

const char *read_word(struct reader *r)
{
	return r->at < r->words->n ? r->words->w[r->at++] : NULL;
}

bool read_is(struct reader *r, const char *word)
{
	if (r->at >= r->words->n || strcmp(r->words->w[r->at], word) != 0)
		return false;
	r->at++;
	return true;
}

int read_end(struct reader *r)
{
	return r->at == r->words->n ? 0 : read_fail(r, "what is", r->words->w[r->at]);
}

int read_u64(struct reader *r, uint64_t max, uint64_t *ret)
{
	const char *w = read_word(r);

	if (!w)
		return read_fail(r, "a number is missing", NULL);
	if (cw_parse_u64(w, 0, max, ret) < 0)
		return read_fail(r, "not a number, or too large:", w);
	return 0;
}

int read_time(struct reader *r, int64_t *ret_ns)
{
	const char *w = read_word(r);

	if (!w)
		return read_fail(r, "a time is missing", NULL);
	if (cw_parse_duration_ns(w, ret_ns) < 0)
		return read_fail(r, "not a time (90s, 500ms, 2min):", w);
	return 0;
}

static int read_number(const char **p, uint32_t *ret)
{
	uint32_t v = 0;

	if (**p < '0' || **p > '9')
		return -EINVAL;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		v = v * 10 + (uint32_t)(**p - '0');
		if (v > SUITE_MAX_RANKS)
			return -EINVAL;
	}
	*ret = v;
	return 0;
}

/* Parses ranges such as "0-3,7,12-". */
static int parse_ranges(const char *p, struct suite_set *set)
{
	for (;; p++) {
		struct suite_range *range = &set->ranges[set->n];

		if (set->n == SUITE_MAX_RANGES || read_number(&p, &range->first) < 0)
			return -EINVAL;
		range->last = range->first;
		if (*p == '-') {
			p++;
			range->last = SUITE_NONE;
			if (*p && *p != ',' && read_number(&p, &range->last) < 0)
				return -EINVAL;
		}
		if (range->last < range->first)
			return -EINVAL;
		set->n++;
		if (*p != ',')
			return *p ? -EINVAL : 0;
	}
}

/*
 * Reads a set: "all", "odd", "even", "3", "0-3,7", "every 4" or "every 4 from 1", each also after
 * "not".
 */
int read_set(struct reader *r, struct suite_set *ret)
{
	struct suite_set set = { 0 };
	const char *w;
	uint64_t n;

	set.is_negated = read_is(r, "not");
	w = read_word(r);
	if (!w)
		return read_fail(r, "ranks are missing", NULL);
	if (strcmp(w, "odd") == 0 || strcmp(w, "even") == 0) {
		set.step = 2;
		set.phase = w[0] == 'o';
	} else if (strcmp(w, "every") == 0) {
		if (read_u64(r, SUITE_MAX_RANKS, &n) < 0 || n == 0)
			return read_fail(r, "every how many ranks?", NULL);
		set.step = (uint32_t)n;
		if (read_is(r, "from")) {
			if (read_u64(r, n - 1, &n) < 0)
				return -EINVAL;
			set.phase = (uint32_t)n;
		}
	} else if (strcmp(w, "all") != 0 && parse_ranges(w, &set) < 0) {
		return read_fail(r, "not a set of ranks:", w);
	}
	*ret = set;
	return 0;
}

int read_wait(struct reader *r, bool is_io, uint32_t *ret_wait, bool *ret_moves)
{
	static const struct {
		const char *name;
		uint32_t wait;
	} table[] = {
		{ "lock", CW_HOST_WAIT_LOCK },       { "gil", CW_HOST_WAIT_GIL },
		{ "queue", CW_HOST_WAIT_QUEUE },     { "socket", CW_HOST_WAIT_SOCKET },
		{ "tty", CW_HOST_WAIT_TTY },         { "sync", CW_HOST_WAIT_UNKNOWN },
		{ "storage", CW_HOST_WAIT_STORAGE },
	};

	*ret_moves = is_io;
	*ret_wait = is_io ? CW_HOST_WAIT_STORAGE : CW_HOST_WAIT_QUEUE;
	if (!read_is(r, "in"))
		return 0;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (!read_is(r, table[i].name))
			continue;
		*ret_wait = table[i].wait;
		*ret_moves = false;
		if (table[i].wait != CW_HOST_WAIT_STORAGE || read_is(r, "still"))
			return 0;
		*ret_moves = true;
		return read_is(r, "moving") ? 0 : read_fail(r, "still or moving storage?", NULL);
	}
	return read_fail(r, "a host sleeps in lock, gil, queue, socket, tty, sync or storage",
			 NULL);
}

int read_family(struct reader *r, uint32_t *ret)
{
	const char *w = read_word(r);

	if (!w)
		return read_fail(r, "a comm is missing", NULL);
	for (uint32_t i = 0; i < r->s->n_families; i++)
		if (strcmp(r->s->families[i].name, w) == 0) {
			*ret = i;
			return 0;
		}
	return read_fail(r, "there is no comm", w);
}
