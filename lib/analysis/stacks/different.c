/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We compare the samples of one role in one group of peers. If nearly all peers have the same
 * stack, this stack is the usual one.
 *
 * We compare functions first. Peers in the same functions are often at different lines of a loop.
 * So a different line counts only if the peers also differ in their use of the CPU.
 *
 * Threads other than the main thread often run loops of their own. Such a thread counts only if its
 * host is idle, because then the thread stays in its place.
 */
#include "analysis/stacks/different.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/snapshot.h"
#include "model/verdict_types.h"

/* At least this many peers must have the same stack. Fewer peers do not show what is usual. */
#define USUAL_MIN 3u
/* At most one in FEW_SHARE peers may differ. In a smaller group one peer may differ. */
#define FEW_SHARE 8u
/* The confidence is "likely" if at least this many peers have the same stack. */
#define LIKELY_MIN 7u

struct entry {
	const struct cw_stack_sample *sample;
	uint64_t stack; /* the compared hash of the stack */
};

struct search {
	const struct cw_stack_sample *samples;
	struct cw_stack_difference *found;
	size_t n_found;
	bool moves;
};

static int by_role(const void *a, const void *b)
{
	const struct cw_stack_sample *x = ((const struct entry *)a)->sample;
	const struct cw_stack_sample *y = ((const struct entry *)b)->sample;

	if (x->is_main != y->is_main)
		return x->is_main ? -1 : 1;
	if (x->peers != y->peers)
		return x->peers < y->peers ? -1 : 1;
	if (x->role != y->role)
		return x->role < y->role ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int by_stack(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->sample->rank < y->sample->rank ? -1 : x->sample->rank > y->sample->rank;
}

/*
 * Sorts the entries by stack. Returns the size of the largest set of equal stacks, and the index of
 * its first entry.
 */
static size_t find_usual(struct entry *entries, size_t n, size_t *ret_begin)
{
	size_t first = 0, most = 0;

	qsort(entries, n, sizeof(*entries), by_stack);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && entries[i].stack == entries[first].stack)
			continue;
		if (i - first > most) {
			most = i - first;
			*ret_begin = first;
		}
		first = i;
	}
	return most;
}

static bool is_nearly_all(size_t usual, size_t n)
{
	size_t few = n / FEW_SHARE ? n / FEW_SHARE : 1;

	return usual >= USUAL_MIN && usual < n && n - usual <= few;
}

/* The usual stack of some peers. */
struct usual {
	const struct entry *entry; /* the first of these peers */
	size_t n, n_peers;
	bool peers_wait;     /* their hosts are idle, so they wait for the other rank */
	uint32_t confidence; /* confidence of each difference from this stack */
};

/*
 * Adds the difference if the stack is more than a moment of a running program. A rank is named only
 * once.
 */
static void add(struct search *s, const struct entry *e, const struct usual *usual)
{
	bool is_lasting = e->sample->host == CW_STACK_HOST_IDLE ||
			  (e->sample->is_main && (!s->moves || usual->peers_wait));

	if (!is_lasting)
		return;
	for (size_t i = 0; i < s->n_found; i++)
		if (s->samples[s->found[i].sample].rank == e->sample->rank)
			return;
	s->found[s->n_found++] = (struct cw_stack_difference){
		.sample = (uint32_t)(e->sample - s->samples),
		.usual = (uint32_t)(usual->entry->sample - s->samples),
		.n_peers = (uint32_t)usual->n_peers,
		.n_usual = (uint32_t)usual->n,
		.confidence = usual->confidence,
	};
}

/* True if all n hosts are in the state `host`. */
static bool all_hosts_are(const struct entry *entries, size_t n, uint32_t host)
{
	for (size_t i = 0; i < n; i++)
		if (entries[i].sample->host != host)
			return false;
	return true;
}

static void compare_functions(struct search *s, struct entry *entries, size_t n)
{
	struct usual usual = { .n_peers = n };
	size_t begin = 0;

	for (size_t i = 0; i < n; i++)
		entries[i].stack = entries[i].sample->functions;
	usual.n = find_usual(entries, n, &begin);
	if (!is_nearly_all(usual.n, n))
		return;
	usual.entry = &entries[begin];
	usual.peers_wait = all_hosts_are(usual.entry, usual.n, CW_STACK_HOST_IDLE);
	usual.confidence = usual.entry->sample->is_main && usual.n >= LIKELY_MIN &&
					   (!s->moves || usual.peers_wait)
				   ? CW_CONFIDENCE_LIKELY
				   : CW_CONFIDENCE_POSSIBLE;
	for (size_t i = 0; i < n; i++)
		if (entries[i].stack != usual.entry->stack)
			add(s, &entries[i], &usual);
}

/* Compares the lines of main threads that are in the same functions. */
static void compare_lines(struct search *s, struct entry *entries, size_t n)
{
	struct usual usual = { .n_peers = n, .confidence = CW_CONFIDENCE_POSSIBLE };
	size_t begin = 0;
	uint32_t host;

	for (size_t i = 0; i < n; i++)
		entries[i].stack = entries[i].sample->lines;
	usual.n = find_usual(entries, n, &begin);
	usual.entry = &entries[begin];
	host = usual.entry->sample->host;
	usual.peers_wait = host == CW_STACK_HOST_IDLE;
	if (!is_nearly_all(usual.n, n) || host == CW_STACK_HOST_UNKNOWN ||
	    !all_hosts_are(usual.entry, usual.n, host))
		return;
	for (size_t i = 0; i < n; i++)
		if (entries[i].stack != usual.entry->stack &&
		    entries[i].sample->host != CW_STACK_HOST_UNKNOWN &&
		    entries[i].sample->host != host)
			add(s, &entries[i], &usual);
}

/* Compares the threads of one role in one group of peers. */
static void compare(struct search *s, struct entry *entries, size_t n)
{
	size_t before = s->n_found;

	if (entries[0].sample->peers == CW_SNAP_NONE || n <= USUAL_MIN)
		return;
	/* Threads of a pool, several of one rank, are in different places by chance. */
	for (size_t i = 1; i < n; i++)
		if (entries[i].sample->rank == entries[i - 1].sample->rank)
			return;
	compare_functions(s, entries, n);
	if (s->n_found == before && entries[0].sample->is_main)
		compare_lines(s, entries, n);
}

int cw_stack_differences_find(const struct cw_stack_sample *samples, size_t n, bool moves,
			      struct cw_stack_difference **ret_list, size_t *ret_n)
{
	struct search s = { .samples = samples, .moves = moves };
	struct entry *entries = calloc(n ? n : 1, sizeof(*entries));
	size_t first = 0;

	s.found = calloc(n ? n : 1, sizeof(*s.found));
	if (!entries || !s.found) {
		free(entries);
		free(s.found);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		entries[i].sample = &samples[i];
	qsort(entries, n, sizeof(*entries), by_role);
	for (size_t i = 1; i <= n; i++) {
		const struct cw_stack_sample *a = entries[first].sample;
		const struct cw_stack_sample *b = i < n ? entries[i].sample : NULL;

		if (b && a->is_main == b->is_main && a->peers == b->peers && a->role == b->role)
			continue;
		compare(&s, entries + first, i - first);
		first = i;
	}
	free(entries);
	*ret_list = s.found;
	*ret_n = s.n_found;
	return 0;
}
