/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: users compete for a fixed number of places. A charge is a place that a user has taken.
 *
 * While there is plenty of room, each user gets all requested places. The last eighth of the places
 * is a reserve. A user may take from the reserve only if the user would be below the quota even
 * with one more user. A new user thereby finds a place even if we cannot displace any charge.
 *
 * The quota is capacity ÷ present users. A user below the quota may find no free place by these
 * rules. We then displace the youngest charge of the user with most charges. That user must be
 * above the quota. We never displace pinned charges (of a job with an open incident).
 *
 * No user at or below the quota therefore loses a charge, and two users never displace each other
 * in turns. Pure: no clock, no memory of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_quota_answer {
	CW_QUOTA_ADMIT = 0,
	CW_QUOTA_DISPLACE = 1, /* admit, once the caller has displaced a charge of another user */
	CW_QUOTA_REFUSE = 2,
};

/* The reserve is 1/8 of the capacity: see the top of this file. */
#define CW_QUOTA_RESERVE 8u

struct cw_quota_count {
	uint32_t capacity;
	uint32_t taken; /* charges of all users */
	uint32_t users; /* users with a charge, plus the requesting user if without one */
	uint32_t own;   /* charges of the requesting user */
};

/* Returns capacity ÷ users, at least 1. */
uint32_t cw_quota_per_user(uint32_t capacity, uint32_t users);

/*
 * Decides from counts alone. Callers that have no array of charges use it. After CW_QUOTA_DISPLACE
 * the caller must still find a charge to displace: see cw_quota_displaced().
 */
enum cw_quota_answer cw_quota_ask(const struct cw_quota_count *count);

/* A place that a user has taken. */
struct cw_quota_charge {
	uint32_t uid;
	bool is_pinned;   /* the charge counts, but we never displace it */
	int64_t since_ns; /* time of the charge; we displace the youngest charge first */
	void *holder;
};

/*
 * Returns the holder of the charge that we displace if there are `users` users; NULL = there is no
 * such charge. Sorts the charges.
 */
void *cw_quota_displaced(struct cw_quota_charge *charges, size_t n, uint32_t capacity,
			 uint32_t users);

/*
 * Decides from an array of all charges, which it sorts. Replaces cw_quota_ask() and
 * cw_quota_displaced(). If the result is CW_QUOTA_DISPLACE, sets *ret_displaced to the holder of
 * the charge to displace.
 */
enum cw_quota_answer cw_quota_charge_for(uint32_t uid, struct cw_quota_charge *charges, size_t n,
					 uint32_t capacity, void **ret_displaced);
