/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas from an array of charges. We sort the charges by user. The charges of a user that we may
 * displace come first, beginning with the youngest. One pass then counts the users and finds the
 * user with most charges.
 */
#include "identity/quota.h"

#include <stdlib.h>

uint32_t cw_quota_per_user(uint32_t capacity, uint32_t users)
{
	uint32_t fair = users ? capacity / users : capacity;

	return fair ? fair : 1;
}

enum cw_quota_answer cw_quota_ask(const struct cw_quota_count *count)
{
	uint32_t reserve = count->capacity / CW_QUOTA_RESERVE;

	if (count->taken < count->capacity - reserve)
		return CW_QUOTA_ADMIT;
	if (count->taken < count->capacity &&
	    count->own < cw_quota_per_user(count->capacity, count->users + 1))
		return CW_QUOTA_ADMIT;
	return count->own < cw_quota_per_user(count->capacity, count->users) ? CW_QUOTA_DISPLACE
									     : CW_QUOTA_REFUSE;
}

/*
 * Orders charges by user. The charges of a user that we may displace come first, beginning with the
 * youngest.
 */
static int by_user(const void *pa, const void *pb)
{
	const struct cw_quota_charge *a = pa, *b = pb;

	if (a->uid != b->uid)
		return a->uid < b->uid ? -1 : 1;
	if (a->is_pinned != b->is_pinned)
		return a->is_pinned ? 1 : -1;
	return (a->since_ns < b->since_ns) - (a->since_ns > b->since_ns);
}

void *cw_quota_displaced(struct cw_quota_charge *charges, size_t n, uint32_t capacity,
			 uint32_t users)
{
	size_t most = cw_quota_per_user(capacity, users), end;
	void *displaced = NULL;

	if (n == 0)
		return NULL;
	qsort(charges, n, sizeof(*charges), by_user);
	for (size_t i = 0; i < n; i = end) {
		for (end = i; end < n && charges[end].uid == charges[i].uid;)
			end++;
		if (end - i <= most || charges[i].is_pinned)
			continue;
		most = end - i;
		displaced = charges[i].holder;
	}
	return displaced;
}

enum cw_quota_answer cw_quota_charge_for(uint32_t uid, struct cw_quota_charge *charges, size_t n,
					 uint32_t capacity, void **ret_displaced)
{
	struct cw_quota_count count = { .capacity = capacity, .taken = (uint32_t)n, .users = 1 };
	enum cw_quota_answer answer;

	/* While more than the reserve is free, we admit every user, and need no counts. */
	if (n < capacity - capacity / CW_QUOTA_RESERVE)
		return CW_QUOTA_ADMIT;
	qsort(charges, n, sizeof(*charges), by_user);
	for (size_t i = 0; i < n; i++) {
		count.own += charges[i].uid == uid;
		count.users +=
			charges[i].uid != uid && (i == 0 || charges[i].uid != charges[i - 1].uid);
	}
	answer = cw_quota_ask(&count);
	if (answer != CW_QUOTA_DISPLACE)
		return answer;
	*ret_displaced = cw_quota_displaced(charges, n, capacity, count.users);
	return *ret_displaced ? CW_QUOTA_DISPLACE : CW_QUOTA_REFUSE;
}
