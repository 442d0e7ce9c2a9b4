/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each user has a purse of CPU time, which fills over time up to the burst. We know the cost of a
 * reading only afterwards, so a purse may become negative. The user must then wait until it is
 * above zero again.
 */
#include "daemon/node/reading_budget.h"

#include <errno.h>
#include <stdlib.h>

#include "common/htable.h"

struct purse {
	uid_t uid;
	int64_t left_ns;   /* CPU time that the user may still spend; may be negative */
	int64_t filled_ns; /* monotonic time of the last filling */
	UT_hash_handle hh;
};

struct cw_reading_budget {
	const struct cw_clock *clock;
	struct purse *purses;
	int64_t swept_ns;
	uint64_t postponed;
};

static void fill(struct cw_reading_budget *b, struct purse *p, int64_t now_ns)
{
	int64_t share = (int64_t)CW_READING_SHARE * HASH_COUNT(b->purses);

	p->left_ns += (now_ns - p->filled_ns) / share;
	if (p->left_ns > CW_READING_BURST_NS)
		p->left_ns = CW_READING_BURST_NS;
	p->filled_ns = now_ns;
}

/* Drops purses that are full. A new purse would be full, too. */
static void sweep(struct cw_reading_budget *b, int64_t now_ns)
{
	struct purse *p, *tmp;

	if (now_ns - b->swept_ns < CW_NS_PER_S)
		return;
	b->swept_ns = now_ns;
	HASH_ITER (hh, b->purses, p, tmp) {
		fill(b, p, now_ns);
		if (p->left_ns < CW_READING_BURST_NS)
			continue;
		HASH_DEL(b->purses, p);
		free(p);
	}
}

/* Returns the user's purse; NULL = out of memory. */
static struct purse *purse_of(struct cw_reading_budget *b, uid_t uid)
{
	int64_t now_ns = cw_clock_now_ns(b->clock);
	struct purse *p;

	sweep(b, now_ns);
	HASH_FIND(hh, b->purses, &uid, sizeof(uid), p);
	if (p) {
		fill(b, p, now_ns);
		return p;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	*p = (struct purse){ .uid = uid, .left_ns = CW_READING_BURST_NS, .filled_ns = now_ns };
	HASH_ADD(hh, b->purses, uid, sizeof(uid), p);
	if (cw_htable_added(p))
		return p;
	free(p);
	return NULL;
}

bool cw_reading_budget_allows(struct cw_reading_budget *b, uid_t uid)
{
	const struct purse *p = purse_of(b, uid);

	if (!p || p->left_ns > 0)
		return true;
	b->postponed++;
	return false;
}

void cw_reading_budget_charge(struct cw_reading_budget *b, uid_t uid, int64_t cpu_ns)
{
	struct purse *p = purse_of(b, uid);

	if (!p)
		return;
	p->left_ns -= cpu_ns;
}

uint64_t cw_reading_budget_postponed(const struct cw_reading_budget *b)
{
	return b->postponed;
}

int cw_reading_budget_new(const struct cw_clock *clock, struct cw_reading_budget **ret)
{
	struct cw_reading_budget *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->clock = clock;
	*ret = b;
	return 0;
}

struct cw_reading_budget *cw_reading_budget_free(struct cw_reading_budget *b)
{
	struct purse *p, *tmp;

	if (!b)
		return NULL;
	HASH_ITER (hh, b->purses, p, tmp) {
		HASH_DEL(b->purses, p);
		free(p);
	}
	free(b);
	return NULL;
}
