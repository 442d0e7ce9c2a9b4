/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/peer_rate.h"

#include <criterion/criterion.h>
#include <stdio.h>

static int64_t now_ns;

static int64_t fake_now(void *user)
{
	return now_ns;
}

static const struct cw_clock clock = { fake_now, fake_now, NULL };

static unsigned ask(struct cw_peer_rate *r, const char *peer, enum cw_peer_ask kind, unsigned n)
{
	unsigned admitted = 0;

	while (n--)
		admitted += cw_peer_rate_admits(r, peer, kind);
	return admitted;
}

static struct cw_peer_rate *new_rate(void)
{
	struct cw_peer_rate *rate;

	cr_assert_eq(cw_peer_rate_new(&clock, &rate), 0);
	return rate;
}

/* 147,000 requests for evidence in 14 s were seen from one node. */
Test(peer_rate, one_peer_gets_no_more_than_its_share)
{
	struct cw_peer_rate *r = new_rate();
	unsigned admitted = 0;

	now_ns = CW_NS_PER_S;
	for (unsigned ms = 0; ms < 14000; ms++) {
		now_ns += CW_NS_PER_MS;
		admitted += ask(r, "lost", CW_PEER_ASK_EVIDENCE, 10);
	}
	cr_assert_leq(admitted, 64 + 14 * 8 + 1, "%u", admitted);
	cr_assert_geq(admitted, 64 + 14 * 8 - 1, "%u", admitted);
	cr_assert_eq(cw_peer_rate_refused(r, CW_PEER_ASK_EVIDENCE), 140000 - admitted);
	cr_assert_eq(ask(r, "well", CW_PEER_ASK_EVIDENCE, 64), 64, "the others' stays theirs");
	cr_assert_eq(ask(r, "lost", CW_PEER_ASK_WINDOWS, 1), 1, "each kind has its own");
	cw_peer_rate_free(r);
}

/* Stacks of a node with 64 ranks, of eight incidents, beside windows of a hundred jobs. */
Test(peer_rate, no_leader_reaches_it)
{
	struct cw_peer_rate *r = new_rate();

	for (unsigned s = 0; s < 600; s++) {
		now_ns += 25 * CW_NS_PER_S / 10;
		cr_assert_eq(ask(r, "leader", CW_PEER_ASK_EVIDENCE, 16), 16);
		cr_assert_eq(ask(r, "leader", CW_PEER_ASK_WINDOWS, 100), 100);
	}
	cw_peer_rate_free(r);
}

Test(peer_rate, peers_without_number_share_one_place)
{
	struct cw_peer_rate *r = new_rate();
	unsigned admitted = 0;
	char name[32];

	for (unsigned i = 0; i < CW_PEER_RATE_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		cr_assert_eq(ask(r, name, CW_PEER_ASK_MUTE, 1), 1);
	}
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(name, sizeof(name), "other%u", i);
		admitted += ask(r, name, CW_PEER_ASK_MUTE, 1);
	}
	cr_assert_eq(admitted, 64);
	cw_peer_rate_free(r);
}

/* 32 a second are answered of all nodes together. */
Test(peer_rate, one_peer_does_not_use_up_the_answers_for_users)
{
	struct cw_peer_rate *r = new_rate();
	unsigned admitted = 0;

	now_ns = CW_NS_PER_S;
	cr_assert_leq(ask(r, "lost", CW_PEER_ASK_QUESTION, 1000), 32);
	for (unsigned s = 0; s < 60; s++) {
		now_ns += CW_NS_PER_S;
		admitted += ask(r, "lost", CW_PEER_ASK_QUESTION, 1000);
	}
	cr_assert_leq(admitted, 60 * 8);
	cr_assert_eq(ask(r, "well", CW_PEER_ASK_QUESTION, 32), 32);
	cw_peer_rate_free(r);
}
