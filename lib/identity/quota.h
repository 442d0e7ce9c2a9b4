/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: users compete for a fixed number of places. A charge is a place that a user has taken.
 *
 * While there is plenty of room, each user gets all requested places. The last eighth of the places
 * is a reserve. A user may take from it only if the user would be below the quota even with one
 * more user. So a new user finds a place even if we cannot displace any charge.
 *
 * A user may be below the quota (capacity ÷ present users) but find no place by these rules. We
 * then displace the youngest charge of the user with most charges. That user must be above the
 * quota. We never displace pinned charges (of a job with an open incident).
 *
 * So no user at or below the quota loses a charge, and two users never displace each other in
 * turns. Pure: no clock, no memory of its own.
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

/* The reserve is 1/8 of the capacity. */
#define CW_QUOTA_RESERVE 8u

struct cw_quota_count {
	uint32_t capacity;
	uint32_t taken; /* charges of all users */
	uint32_t users; /* users with a charge, and the requesting user */
	uint32_t own;   /* charges of the requesting user */
};

/* Returns capacity ÷ users, at least 1. */
uint32_t cw_quota_per_user(uint32_t capacity, uint32_t users);

/*
 * Decides from counts alone, for callers that keep counts. After CW_QUOTA_DISPLACE the caller still
 * needs a charge to displace: cw_quota_displaced().
 */
enum cw_quota_answer cw_quota_ask(const struct cw_quota_count *count);

/* A place that a user has taken. */
struct cw_quota_charge {
	uint32_t uid;
	bool is_pinned;   /* counts, but we never displace it */
	int64_t since_ns; /* we displace the youngest first */
	void *holder;
};

/*
 * Returns the holder of the charge that we displace when there are `users` users; NULL = none.
 * Sorts the charges.
 */
void *cw_quota_displaced(struct cw_quota_charge *charges, size_t n, uint32_t capacity,
			 uint32_t users);

/*
 * Does cw_quota_ask() and cw_quota_displaced() in one step, from an array of all charges, which it
 * sorts. With CW_QUOTA_DISPLACE it sets *ret_displaced.
 */
enum cw_quota_answer cw_quota_charge_for(uint32_t uid, struct cw_quota_charge *charges, size_t n,
					 uint32_t capacity, void **ret_displaced);
