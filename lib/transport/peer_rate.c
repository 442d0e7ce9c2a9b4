/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each peer has one token bucket per kind of request. A request takes one token, and tokens return
 * over time up to the size of a burst. If the table is full, all further peers share one entry. An
 * attacker therefore gains nothing by using many names.
 */
#include "transport/peer_rate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/htable.h"
#include "common/log.h"

#define SAID_EVERY_NS (600 * CW_NS_PER_S)

/* The size of a burst of requests, and the time after which a token returns. */
static const struct limit {
	const char *what;
	double burst;
	int64_t every_ns;
} limits[CW_PEER_ASK__MAX] = {
	[CW_PEER_ASK_EVIDENCE] = { "evidence", 64, CW_NS_PER_S / 8 },
	[CW_PEER_ASK_WINDOWS] = { "windows", 512, CW_NS_PER_S / 64 },
	[CW_PEER_ASK_SEARCH] = { "searches for ranks", 256, CW_NS_PER_S / 32 },
	[CW_PEER_ASK_MUTE] = { "mutes", 64, 60 * CW_NS_PER_S },
	[CW_PEER_ASK_ANNOUNCE] = { "announcements", 256, CW_NS_PER_S / 4 },
	[CW_PEER_ASK_QUESTION] = { "answers for users", 32, CW_NS_PER_S / 8 },
};

struct peer {
	UT_hash_handle hh;
	char name[CW_NODE_NAME_MAX + 1];
	struct bucket {
		double left;
		/* Monotonic times of the last refill and of the last log line; 0 = never. */
		int64_t at_ns, said_ns;
	} of[CW_PEER_ASK__MAX];
};

struct cw_peer_rate {
	const struct cw_clock *clock;
	struct peer *peers;
	struct peer others;
	uint64_t refused[CW_PEER_ASK__MAX];
};

static void fill(struct peer *p, int64_t now)
{
	for (unsigned k = 0; k < CW_PEER_ASK__MAX; k++)
		p->of[k] = (struct bucket){ .left = limits[k].burst, .at_ns = now };
}

int cw_peer_rate_new(const struct cw_clock *clock, struct cw_peer_rate **ret)
{
	struct cw_peer_rate *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->clock = clock;
	fill(&r->others, cw_clock_now_ns(clock));
	*ret = r;
	return 0;
}

struct cw_peer_rate *cw_peer_rate_free(struct cw_peer_rate *r)
{
	struct peer *p, *tmp;

	if (!r)
		return NULL;
	HASH_ITER (hh, r->peers, p, tmp) {
		HASH_DEL(r->peers, p);
		free(p);
	}
	free(r);
	return NULL;
}

static struct peer *find_or_add(struct cw_peer_rate *r, const char *name, int64_t now)
{
	size_t len = strlen(name);
	struct peer *p;

	HASH_FIND(hh, r->peers, name, len, p);
	if (p || len >= sizeof(p->name) || HASH_COUNT(r->peers) >= CW_PEER_RATE_MAX)
		return p ? p : &r->others;
	p = calloc(1, sizeof(*p));
	if (!p)
		return &r->others;
	memcpy(p->name, name, len + 1);
	fill(p, now);
	HASH_ADD(hh, r->peers, name[0], len, p);
	if (!cw_htable_added(p)) {
		free(p);
		return &r->others;
	}
	return p;
}

bool cw_peer_rate_admits(struct cw_peer_rate *r, const char *peer, enum cw_peer_ask kind)
{
	const struct limit *limit = &limits[kind];
	int64_t now = cw_clock_now_ns(r->clock);
	struct bucket *b = &find_or_add(r, peer, now)->of[kind];

	b->left += (double)(now - b->at_ns) / (double)limit->every_ns;
	if (b->left > limit->burst)
		b->left = limit->burst;
	b->at_ns = now;
	if (b->left >= 1) {
		b->left -= 1;
		return true;
	}
	r->refused[kind]++;
	if (!b->said_ns || now - b->said_ns > SAID_EVERY_NS) {
		b->said_ns = now;
		log_warn("%s asks for %s more often than any leader does: refused, counted", peer,
			 limit->what);
	}
	return false;
}

uint64_t cw_peer_rate_refused(const struct cw_peer_rate *r, enum cw_peer_ask kind)
{
	return r->refused[kind];
}
