/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair shares: users compete for a fixed number of places.
 *
 * While there is plenty of room, each user gets all requested places. The last eighth of the places
 * is a reserve. Only users who would be below a fair share if one more user came may take from it.
 * So a new user finds a place even if we cannot displace any.
 *
 * If neither rule admits a user below a fair share (capacity ÷ present users), we displace the
 * youngest place of the user with most places. That user must be above a fair share. We never
 * displace pinned places (of a job with an open incident).
 *
 * So no user at or below a fair share loses a place, and two users never displace each other in
 * turns. Pure: no clock, no memory of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_share_answer {
	CW_SHARE_ADMIT = 0,
	CW_SHARE_DISPLACE = 1, /* admit, after the caller has taken a place from another user */
	CW_SHARE_REFUSE = 2,
};

/* The reserve is 1/8 of the capacity. */
#define CW_SHARE_RESERVE 8u

struct cw_share_count {
	uint32_t capacity;
	uint32_t taken; /* taken places of all users */
	uint32_t users; /* users with a place, and the requesting user */
	uint32_t own;   /* places of the requesting user */
};

/* capacity ÷ users, at least 1. */
uint32_t cw_share_fair(uint32_t capacity, uint32_t users);

/*
 * The answer from counts alone, for callers that keep them. After CW_SHARE_DISPLACE the caller
 * still needs a place to displace: cw_share_displaced().
 */
enum cw_share_answer cw_share_ask(const struct cw_share_count *count);

/* A taken place. */
struct cw_share_place {
	uint32_t uid;
	bool is_pinned;   /* we count it, but never displace it */
	int64_t since_ns; /* we displace the youngest first */
	void *holder;
};

/*
 * Returns the holder of the place to displace for one of `users` users; NULL = none. Sorts
 * the places.
 */
void *cw_share_displaced(struct cw_share_place *places, size_t n, uint32_t capacity,
			 uint32_t users);

/*
 * Both steps in one, from an array of all taken places: sorts them. With CW_SHARE_DISPLACE
 * *ret_displaced is set.
 */
enum cw_share_answer cw_share_place_for(uint32_t uid, struct cw_share_place *places, size_t n,
					uint32_t capacity, void **ret_displaced);
