/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stale dumps. A hung run leaves a file per rank, and the next run overwrites these files. If a
 * rank writes no file this time, or no longer exists, its old file stays. We would then compare old
 * calls with current calls of the same numbers. We recognise a stale file by its time: it is older
 * than every call in the younger dumps.
 */
#include "import/fr_stale.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/or_exit/or_exit.h"
#include "model/rankset.h"

/*
 * A file must be older than the calls by more than this. The clocks of a job's nodes differ by
 * less.
 */
#define STALE_NS (600 * CW_NS_PER_S)

struct span {
	int64_t file_ns;
	int64_t oldest_ns; /* time of the dump's oldest call */
	uint32_t source;
};

static int64_t oldest_call(const struct cw_fr_dump *dump)
{
	int64_t oldest_ns = 0;

	for (uint32_t i = 0; i < dump->n_ops; i++) {
		int64_t t_ns = dump->ops[i].created_ns;

		if (t_ns && (!oldest_ns || t_ns < oldest_ns))
			oldest_ns = t_ns;
	}
	return oldest_ns;
}

/* Compares two spans for sorting: the youngest file comes first. */
static int compare_spans(const void *a, const void *b)
{
	const struct span *sa = a, *sb = b;

	return (sa->file_ns < sb->file_ns) - (sa->file_ns > sb->file_ns);
}

/*
 * Lists the spans of the dumps whose calls and file have consistent times. The clocks of other
 * dumps are unreliable. Returns the number of spans.
 */
static uint32_t find_spans(const struct cw_fr_set *set, struct span *spans)
{
	uint32_t n = 0;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		const struct cw_fr_source *src = &set->sources[s];
		int64_t oldest_ns = oldest_call(&src->dump);

		if (oldest_ns && src->file_ns > 0 && src->dump.newest_ns - src->file_ns < STALE_NS)
			spans[n++] = (struct span){ src->file_ns, oldest_ns, s };
	}
	if (n > 1)
		qsort(spans, n, sizeof(*spans), compare_spans);
	return n;
}

/*
 * Marks the stale sources. *ret_ns is the time from the youngest stale file to the oldest call in
 * the other dumps. Returns the number of stale sources.
 */
static uint32_t mark_stale(const struct span *spans, uint32_t n, bool *is_stale, int64_t *ret_ns)
{
	int64_t oldest_ns = INT64_MAX;
	uint32_t younger = 0, n_stale = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (; younger < i && spans[younger].file_ns - spans[i].file_ns > STALE_NS;
		     younger++)
			if (!is_stale[spans[younger].source] &&
			    spans[younger].oldest_ns < oldest_ns)
				oldest_ns = spans[younger].oldest_ns;
		if (oldest_ns == INT64_MAX || oldest_ns - spans[i].file_ns <= STALE_NS)
			continue;
		if (!n_stale++)
			*ret_ns = oldest_ns - spans[i].file_ns;
		is_stale[spans[i].source] = true;
	}
	return n_stale;
}

static void say_stale(struct cw_fr_set *set, int32_t *ranks, uint32_t n, int64_t before_ns)
{
	long long minutes = before_ns / (60 * CW_NS_PER_S);
	char list[160];

	cw_fr_set_note(
		set,
		"the dump%s of rank%s %s %s written %lld %s before the oldest call of the other "
		"dumps, probably by an earlier run: %s not compared",
		n == 1 ? "" : "s", n == 1 ? "" : "s",
		cw_rankset_format(ranks, n, list, sizeof(list)), n == 1 ? "was" : "were",
		minutes < 120 ? minutes : minutes / 60, minutes < 120 ? "minutes" : "hours",
		n == 1 ? "it is" : "they are");
}

static void take_out(struct cw_fr_set *set, const bool *is_stale, int32_t *ret_ranks)
{
	uint32_t n = 0, n_stale = 0;

	for (uint32_t s = 0; s < set->n_sources; s++) {
		if (!is_stale[s]) {
			set->sources[n++] = set->sources[s];
			continue;
		}
		ret_ranks[n_stale++] = set->sources[s].rank;
		cw_fr_dump_fini(&set->sources[s].dump);
	}
	set->n_sources = n;
}

void fr_drop_stale(struct cw_fr_set *set)
{
	_cleanup_(freep) struct span *spans =
		cw_or_exit(calloc(set->n_sources + 1u, sizeof(*spans)));
	_cleanup_(freep) bool *is_stale =
		cw_or_exit(calloc(set->n_sources + 1u, sizeof(*is_stale)));
	_cleanup_(freep) int32_t *ranks = cw_or_exit(calloc(set->n_sources + 1u, sizeof(*ranks)));
	int64_t before_ns = 0;
	uint32_t n = mark_stale(spans, find_spans(set, spans), is_stale, &before_ns);

	if (!n)
		return;
	take_out(set, is_stale, ranks);
	say_stale(set, ranks, n, before_ns);
}
