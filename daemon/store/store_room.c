/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to go when there is no room. Not simply the oldest: a user whose job hangs every minute
 * (or who makes it look so) would push out the reports of all others. The oldest of whoever takes
 * the most room goes.
 */
#include <string.h>

#include "common/log.h"
#include "daemon/store/sent_ids.h"
#include "daemon/store/store_dir.h"
#include "daemon/store/store_private.h"

/* Bounds of what is kept in memory while the disk refuses: some hangs of a large job. */
#define MAX_HELD 16u
#define MAX_HELD_BYTES (64u << 20)

struct cw_store_entry *cw_store_oldest(struct cw_store *store, bool is_held,
				       const struct cw_store_entry *except)
{
	struct cw_store_entry *e, *next, *found = NULL;

	HASH_ITER (hh, store->table, e, next) {
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

/* What there is too much of. */
enum measure { BY_BYTES, BY_NUMBER };

static struct cw_store_entry *oldest_of_biggest_user(struct cw_store *store, enum measure measure,
						     bool is_held,
						     const struct cw_store_entry *except)
{
	struct cw_store_entry *e, *next, *first = NULL, *found = NULL;
	uint64_t sum = 0, most = 0;
	const struct cw_store_entry *last = NULL;

	HASH_SORT(store->table, by_user_oldest_first); /* those of a user lie together now */
	HASH_ITER (hh, store->table, e, next) {
		if (e->is_held != is_held)
			continue;
		if (!last || last->uid != e->uid) {
			sum = 0;
			first = NULL;
		}
		last = e;
		sum += measure == BY_BYTES ? e->bytes : 1;
		if (!first && e != except)
			first = e;
		if (first && (!found || sum > most)) {
			found = first;
			most = sum;
		}
	}
	return found;
}

static uint64_t total_bytes(struct cw_store *store, bool is_held)
{
	struct cw_store_entry *e, *next;
	uint64_t sum = 0;

	HASH_ITER (hh, store->table, e, next) {
		if (e->is_held == is_held)
			sum += e->bytes;
	}
	return sum;
}

static bool evict(struct cw_store *store, struct cw_store_entry *e)
{
	int r;

	if (!e)
		return false;
	r = cw_store_dir_remove(store->dir_fd, e->id);
	if (r < 0) {
		log_warn("store: bundle %s cannot be removed: %s", e->id, strerror(-r));
		return false;
	}
	log_info("store: bundle %s of job=%s removed", e->id, e->job ? e->job : "");
	store->removed++;
	cw_store_forget(store, e);
	return true;
}

bool cw_store_make_room(struct cw_store *store, const struct cw_store_entry *except)
{
	return evict(store, oldest_of_biggest_user(store, BY_BYTES, false, except));
}

void cw_store_apply_retention(struct cw_store *store, const struct cw_store_entry *newest)
{
	struct cw_store_entry *e;
	int64_t now;
	bool may_age = cw_store_clock_now(&store->age_clock, &now);

	while (may_age && (e = cw_store_oldest(store, false, newest)) &&
	       e->wall_ns < now - store->max_age_ns)
		if (!evict(store, e))
			return;
	while (HASH_COUNT(store->table) > CW_STORE_MAX_ENTRIES)
		if (!evict(store, oldest_of_biggest_user(store, BY_NUMBER, false, newest)))
			return;
	while (total_bytes(store, false) > store->max_bytes)
		if (!cw_store_make_room(store, newest))
			return;
}

unsigned cw_store_count_held(struct cw_store *store)
{
	struct cw_store_entry *e, *next;
	unsigned n = 0;

	HASH_ITER (hh, store->table, e, next) {
		n += e->is_held;
	}
	return n;
}

void cw_store_stats(struct cw_store *store, struct cw_store_stats *ret)
{
	*ret = (struct cw_store_stats){ .waiting = cw_store_count_held(store),
					.lost = store->lost,
					.removed = store->removed,
					.refused =
						store->refused + cw_sent_ids_refused(store->sent),
					.error = store->error };
}

void cw_store_limit_held(struct cw_store *store, const struct cw_store_entry *newest)
{
	while (cw_store_count_held(store) > MAX_HELD || total_bytes(store, true) > MAX_HELD_BYTES) {
		enum measure measure = cw_store_count_held(store) > MAX_HELD ? BY_NUMBER : BY_BYTES;
		struct cw_store_entry *e = oldest_of_biggest_user(store, measure, true, newest);

		if (!e)
			return;
		store->lost++;
		log_err("store: bundle %s of job=%s is lost: disk refuses, memory is full (%llu)",
			e->id, e->job ? e->job : "", (unsigned long long)store->lost);
		cw_store_forget(store, e);
	}
}
