/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_retention.h"

#include <stddef.h>

struct cw_store_entry *cw_store_retention_oldest(struct cw_store_entry *index, bool is_held,
						 const struct cw_store_entry *except)
{
	struct cw_store_entry *e, *next, *found = NULL;

	HASH_ITER (hh, index, e, next) {
		if (e == except || e->is_held != is_held)
			continue;
		if (!found || e->wall_ns < found->wall_ns)
			found = e;
	}
	return found;
}

static int by_user_oldest_first(const struct cw_store_entry *a, const struct cw_store_entry *b)
{
	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	return (a->wall_ns > b->wall_ns) - (a->wall_ns < b->wall_ns);
}

struct cw_store_entry *cw_store_retention_displaced(struct cw_store_entry **index,
						    enum cw_store_measure measure, bool is_held,
						    const struct cw_store_entry *except)
{
	struct cw_store_entry *e, *next, *first = NULL, *found = NULL;
	uint64_t sum = 0, most = 0;
	const struct cw_store_entry *last = NULL;

	HASH_SORT(*index, by_user_oldest_first); /* makes the bundles of each user adjacent */
	HASH_ITER (hh, *index, e, next) {
		if (e->is_held != is_held)
			continue;
		if (!last || last->uid != e->uid) {
			sum = 0;
			first = NULL;
		}
		last = e;
		sum += measure == CW_STORE_BY_BYTES ? e->bytes : 1;
		if (!first && e != except)
			first = e;
		if (first && (!found || sum > most)) {
			found = first;
			most = sum;
		}
	}
	return found;
}

uint64_t cw_store_retention_bytes(struct cw_store_entry *index, bool is_held)
{
	struct cw_store_entry *e, *next;
	uint64_t sum = 0;

	HASH_ITER (hh, index, e, next) {
		if (e->is_held == is_held)
			sum += e->bytes;
	}
	return sum;
}

unsigned cw_store_retention_number(struct cw_store_entry *index, bool is_held)
{
	struct cw_store_entry *e, *next;
	unsigned n = 0;

	HASH_ITER (hh, index, e, next) {
		n += e->is_held == is_held;
	}
	return n;
}
