/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We sort the places by user. The places of each user that may be taken away come first, and
 * the youngest of them is at the head. One pass then counts the users and finds the user with
 * most places.
 */
#include "identity/shares.h"

#include <stdlib.h>

uint32_t cw_share_fair(uint32_t capacity, uint32_t users)
{
	uint32_t fair = users ? capacity / users : capacity;

	return fair ? fair : 1;
}

enum cw_share_answer cw_share_ask(const struct cw_share_count *count)
{
	uint32_t reserve = count->capacity / CW_SHARE_RESERVE;

	if (count->taken < count->capacity - reserve)
		return CW_SHARE_ADMIT;
	if (count->taken < count->capacity &&
	    count->own < cw_share_fair(count->capacity, count->users + 1))
		return CW_SHARE_ADMIT;
	return count->own < cw_share_fair(count->capacity, count->users) ? CW_SHARE_DISPLACE
									 : CW_SHARE_REFUSE;
}

/*
 * Groups the places by user. In each group, places that may be taken away come first, the youngest
 * of them at the head.
 */
static int by_user(const void *pa, const void *pb)
{
	const struct cw_share_place *a = pa, *b = pb;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	if (a->is_pinned != b->is_pinned)
		return a->is_pinned ? 1 : -1;
	return (a->since_ns < b->since_ns) - (a->since_ns > b->since_ns);
}

void *cw_share_displaced(struct cw_share_place *places, size_t n, uint32_t capacity, uint32_t users)
{
	size_t most = cw_share_fair(capacity, users), end;
	void *displaced = NULL;

	if (n == 0)
		return NULL;
	qsort(places, n, sizeof(*places), by_user);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && places[end].uid == places[i].uid;)
			end++;
		if (end - i <= most || places[i].is_pinned)
			continue;
		most = end - i;
		displaced = places[i].holder;
	}
	return displaced;
}

enum cw_share_answer cw_share_place_for(uint32_t uid, struct cw_share_place *places, size_t n,
					uint32_t capacity, void **ret_displaced)
{
	struct cw_share_count count = { .capacity = capacity, .taken = (uint32_t)n, .users = 1 };
	enum cw_share_answer answer;

	/* Outside the reserve we need no counts. */
	if (n < capacity - capacity / CW_SHARE_RESERVE)
		return CW_SHARE_ADMIT;
	qsort(places, n, sizeof(*places), by_user);
	for (size_t i = 0; i < n; i++) {
		count.own += places[i].uid == uid;
		count.users +=
			places[i].uid != uid && (i == 0 || places[i].uid != places[i - 1].uid);
	}
	answer = cw_share_ask(&count);
	if (answer != CW_SHARE_DISPLACE)
		return answer;
	*ret_displaced = cw_share_displaced(places, n, capacity, count.users);
	return *ret_displaced ? CW_SHARE_DISPLACE : CW_SHARE_REFUSE;
}
