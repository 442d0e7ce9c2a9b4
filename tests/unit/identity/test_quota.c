/* SPDX-License-Identifier: Apache-2.0 */
/* Places that several users compete for. */
#include <criterion/criterion.h>

#include <stdint.h>
#include <string.h>

#include "identity/quota.h"

#define MAX_PLACES 64u
#define MAX_USERS 80u

struct table {
	struct cw_quota_charge charges[MAX_PLACES];
	unsigned char holders[MAX_PLACES]; /* their addresses are the holders; 1 = in use */
	uint32_t n, capacity;
	int64_t now;
};

static void enter(struct table *t, uint32_t uid, bool is_pinned)
{
	unsigned h = 0;

	while (t->holders[h])
		h++;
	t->holders[h] = 1;
	t->charges[t->n++] = (struct cw_quota_charge){
		.uid = uid, .is_pinned = is_pinned, .since_ns = ++t->now, .holder = &t->holders[h]
	};
}

static struct cw_quota_charge take_out(struct table *t, const void *holder)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct cw_quota_charge p = t->charges[i];

		if (p.holder != holder)
			continue;
		*(unsigned char *)p.holder = 0;
		t->charges[i] = t->charges[--t->n];
		return p;
	}
	cr_assert(false, "the holder has no place");
	return (struct cw_quota_charge){ 0 };
}

static uint32_t held_by(const struct table *t, uint32_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		n += t->charges[i].uid == uid;
	return n;
}

static uint32_t users_with(const struct table *t, uint32_t newcomer)
{
	uint32_t n = held_by(t, newcomer) == 0;

	for (uint32_t uid = 0; uid < MAX_USERS; uid++)
		n += held_by(t, uid) > 0;
	return n;
}

static enum cw_quota_answer arrive(struct table *t, uint32_t uid, struct cw_quota_charge *ret_out)
{
	void *displaced = NULL;
	enum cw_quota_answer answer =
		cw_quota_charge_for(uid, t->charges, t->n, t->capacity, &displaced);

	if (answer == CW_QUOTA_DISPLACE)
		*ret_out = take_out(t, displaced);
	if (answer != CW_QUOTA_REFUSE)
		enter(t, uid, false);
	return answer;
}

static void fill(struct table *t, uint32_t uid, unsigned n)
{
	struct cw_quota_charge out;

	for (unsigned i = 0; i < n; i++)
		(void)arrive(t, uid, &out);
}

Test(quota, one_user_gets_all_but_the_reserve)
{
	struct table t = { .capacity = 64 };

	fill(&t, 1, 100);
	cr_expect_eq(t.n, 56);
}

Test(quota, reserve_takes_nothing_away_from_anybody)
{
	struct table t = { .capacity = 64 };
	struct cw_quota_charge out;

	fill(&t, 1, 100);
	for (unsigned i = 0; i < 8; i++)
		cr_expect_eq(arrive(&t, 2, &out), CW_QUOTA_ADMIT);
	cr_expect_eq(t.n, 64);
	cr_expect_eq(held_by(&t, 1), 56);
}

Test(quota, newcomer_displaces_the_youngest_of_the_greediest)
{
	struct table t = { .capacity = 64 };
	struct cw_quota_charge out = { 0 };
	int64_t youngest;

	fill(&t, 1, 20);
	fill(&t, 2, 36);
	youngest = t.now;
	fill(&t, 3, 8);
	cr_assert_eq(t.n, 64);
	cr_expect_eq(arrive(&t, 4, &out), CW_QUOTA_DISPLACE);
	cr_expect_eq(out.uid, 2);
	cr_expect_eq(out.since_ns, youngest);
	cr_expect_eq(t.n, 64);
}

Test(quota, users_end_up_with_equal_quotas)
{
	struct table t = { .capacity = 60 };

	for (uint32_t uid = 1; uid <= 4; uid++)
		fill(&t, uid, 60);
	for (uint32_t uid = 1; uid <= 4; uid++)
		cr_expect_eq(held_by(&t, uid), 15, "uid %u has %u", uid, held_by(&t, uid));
}

Test(quota, user_at_its_quota_displaces_nobody)
{
	struct table t = { .capacity = 60 };
	struct cw_quota_charge out;

	for (uint32_t uid = 1; uid <= 4; uid++)
		fill(&t, uid, 60);
	for (uint32_t uid = 1; uid <= 4; uid++)
		cr_expect_eq(arrive(&t, uid, &out), CW_QUOTA_REFUSE);
}

Test(quota, pinned_charge_stays_and_the_next_greediest_gives)
{
	struct table t = { .capacity = 60 };
	struct cw_quota_charge out = { 0 };

	for (unsigned i = 0; i < 30; i++)
		enter(&t, 1, true);
	for (unsigned i = 0; i < 25; i++)
		enter(&t, 2, false);
	for (unsigned i = 0; i < 5; i++)
		enter(&t, 3, false);
	cr_expect_eq(arrive(&t, 4, &out), CW_QUOTA_DISPLACE);
	cr_expect_eq(out.uid, 2);
}

Test(quota, nobody_is_displaced_where_all_are_pinned)
{
	struct table t = { .capacity = 16 };
	struct cw_quota_charge out;

	for (unsigned i = 0; i < 16; i++)
		enter(&t, 1, true);
	cr_expect_eq(arrive(&t, 2, &out), CW_QUOTA_REFUSE);
}

Test(quota, more_users_than_places_keep_one_each)
{
	struct table t = { .capacity = 16 };
	struct cw_quota_charge out;

	fill(&t, 0, 16);
	for (uint32_t uid = 1; uid < 16; uid++)
		cr_expect_neq(arrive(&t, uid, &out), CW_QUOTA_REFUSE, "uid %u", uid);
	for (uint32_t uid = 0; uid < 16; uid++)
		cr_expect_eq(held_by(&t, uid), 1);
	cr_expect_eq(arrive(&t, 16, &out), CW_QUOTA_REFUSE);
}

/* xorshift64: the same sequence everywhere. */
static uint32_t next(uint64_t *state, uint32_t range)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 33) % range;
}

static void expect_fair_arrival(struct table *t, uint32_t uid, unsigned step)
{
	uint32_t held[MAX_USERS], users = users_with(t, uid), n = t->n;
	uint32_t fair = cw_quota_per_user(t->capacity, users);
	struct cw_quota_charge out = { .uid = UINT32_MAX };
	bool has_pinned = false;
	enum cw_quota_answer answer;

	for (uint32_t i = 0; i < MAX_USERS; i++)
		held[i] = held_by(t, i);
	for (uint32_t i = 0; i < n; i++)
		has_pinned |= t->charges[i].is_pinned;
	answer = arrive(t, uid, &out);
	cr_assert_leq(t->n, t->capacity, "step %u", step);
	switch (answer) {
	case CW_QUOTA_ADMIT:
		cr_assert_lt(n, t->capacity, "step %u", step);
		break;
	case CW_QUOTA_DISPLACE:
		cr_assert_gt(held[out.uid], fair, "step %u: at or below the quota", step);
		cr_assert_lt(held[uid], fair, "step %u: the newcomer has its quota", step);
		cr_assert_neq(out.uid, uid, "step %u", step);
		cr_assert_not(out.is_pinned, "step %u: pinned", step);
		for (uint32_t i = 0; i < t->n; i++)
			cr_assert(t->charges[i].uid != out.uid || t->charges[i].is_pinned ||
					  t->charges[i].since_ns < out.since_ns,
				  "step %u: not the youngest", step);
		break;
	case CW_QUOTA_REFUSE:
		cr_assert_geq(n, t->capacity - t->capacity / CW_QUOTA_RESERVE, "step %u", step);
		/* Else only pins, or fewer places than users, stand in the way. */
		cr_assert(held[uid] >= cw_quota_per_user(t->capacity, users + 1) || has_pinned ||
				  users > t->capacity,
			  "step %u", step);
		break;
	}
}

static void run_random(uint64_t seed, uint32_t capacity, uint32_t n_users)
{
	struct table t = { .capacity = capacity };
	uint64_t state = seed;

	for (unsigned step = 0; step < 4000; step++) {
		uint32_t what = next(&state, 16);

		if (what < 11) {
			/* A few users are greedier than the others. */
			expect_fair_arrival(&t, next(&state, 2) ? next(&state, n_users) : step % 3,
					    step);
		} else if (t.n && what < 14) {
			(void)take_out(&t, t.charges[next(&state, t.n)].holder);
		} else if (t.n && (what == 14 || seed % 3)) {
			t.charges[next(&state, t.n)].is_pinned = what == 14;
		}
	}
}

Test(quota, hold_for_random_arrivals_ends_and_pins)
{
	for (uint64_t seed = 1; seed <= 60; seed++)
		run_random(seed * 0x9e3779b97f4a7c15u, 1 + (uint32_t)(seed % MAX_PLACES),
			   3 + (uint32_t)(seed * 7 % (MAX_USERS - 3)));
}
