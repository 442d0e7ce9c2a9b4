/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We choose the user whose records together take the most memory. We drop this user's costliest
 * record first.
 */
#include "daemon/process/process_memory.h"

#include <stdlib.h>

#include "common/cleanup.h"

struct cost {
	struct cw_process *process;
	size_t bytes;
};

size_t cw_process_memory(const struct cw_process *p)
{
	return sizeof(*p) + p->sampler.cap * sizeof(*p->sampler.tracks) +
	       (p->record ? cw_record_memory(p->record) : 0);
}

static int by_user_costliest_first(const void *pa, const void *pb)
{
	const struct cost *a = pa, *b = pb;

	if (a->process->uid != b->process->uid)
		return a->process->uid < b->process->uid ? -1 : 1;
	return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

static struct cw_process *choose(struct cost *costs, size_t n)
{
	struct cw_process *found = NULL;
	size_t most = 0, end;

	qsort(costs, n, sizeof(*costs), by_user_costliest_first);
	for (size_t i = 0; i < n; i = end) {
		size_t sum = 0;

		for (end = i; end < n && costs[end].process->uid == costs[i].process->uid; end++)
			sum += costs[end].bytes;
		if (sum > most) {
			most = sum;
			found = costs[i].process;
		}
	}
	return found;
}

struct cw_process *cw_processes_largest_memory_user(struct cw_process *table, size_t max_bytes)
{
	_cleanup_(freep) struct cost *costs = NULL;
	size_t total = 0, n = 0;

	for (struct cw_process *p = table; p; p = p->hh.next)
		total += cw_process_memory(p);
	if (total <= max_bytes)
		return NULL;
	costs = calloc(HASH_COUNT(table), sizeof(*costs));
	if (!costs)
		return NULL;
	for (struct cw_process *p = table; p; p = p->hh.next)
		costs[n++] = (struct cost){ p, cw_process_memory(p) };
	return choose(costs, n);
}
