/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who gets a place where several users compete for a fixed number of them.
 *
 * While there is plenty of room everybody gets what they ask for. The last eighth of the places is
 * a reserve, for users who would be below a fair share if one more user came: so who comes next
 * finds a place even where none can be taken away. Where neither helps, a user below a fair share,
 * capacity ÷ users present, displaces the youngest place of the user who holds most, if that one is
 * above a fair share. Pinned places (of a job with an open incident) are never taken away.
 *
 * So nobody at or below a fair share loses a place, and two users never displace each other in
 * turns. Pure: no clock, no memory of its own.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cw_share_answer {
	CW_SHARE_ADMIT = 0,
	CW_SHARE_DISPLACE = 1, /* admit, once a place has been taken away from somebody */
	CW_SHARE_REFUSE = 2,
};

/* 1/8 of a capacity is the reserve. */
#define CW_SHARE_RESERVE 8u

struct cw_share_count {
	uint32_t capacity;
	uint32_t taken; /* places, of all users */
	uint32_t users; /* who hold a place, and the one who asks */
	uint32_t own;   /* places of the one who asks */
};

/* capacity ÷ users, at least 1. */
uint32_t cw_share_fair(uint32_t capacity, uint32_t users);

/*
 * The answer by numbers alone, for owners who keep count. CW_SHARE_DISPLACE still needs somebody to
 * displace: cw_share_displaced().
 */
enum cw_share_answer cw_share_ask(const struct cw_share_count *count);

/* A place that is taken. */
struct cw_share_place {
	uint32_t uid;
	bool is_pinned;   /* is counted, but not taken away */
	int64_t since_ns; /* the youngest goes first */
	void *holder;
};

/*
 * Whose place goes to one of `users` users; NULL = nobody's. Sorts the places.
 */
void *cw_share_displaced(struct cw_share_place *places, size_t n, uint32_t capacity,
			 uint32_t users);

/*
 * Both in one, from all places that are taken: sorts them. *ret_displaced is set with
 * CW_SHARE_DISPLACE.
 */
enum cw_share_answer cw_share_place_for(uint32_t uid, struct cw_share_place *places, size_t n,
					uint32_t capacity, void **ret_displaced);
