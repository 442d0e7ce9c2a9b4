/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vjob/comm_slot.h"

#include <criterion/criterion.h>
#include <string.h>

static const char text[] = "scenario s\nranks 12 per-node 4\ncomms tp size 3\n"
			   "comms dp size rest stride 3\ncomm odd odd\ncomms bad size 5\n"
			   "program\nall_reduce tp\nend\nexpect silence\nend\n";

static struct suite_comm_slot slot;

static void look(const struct suite_scenario *s)
{
	cr_expect_eq(cw_suite_family_comms(s, 0), 4);
	cr_expect_eq(cw_suite_family_comms(s, 1), 3);
	cr_expect_eq(cw_suite_family_comms(s, 2), 1);
	cr_expect_eq(cw_suite_family_comms(s, 3), 0, "12 ranks in fives");

	cr_assert(suite_comm_slot(s, 0, 7, &slot));
	cr_expect(slot.comm == 2 && slot.place == 1 && slot.nranks == 3);
	cr_assert(suite_comm_slot(s, 1, 7, &slot));
	cr_expect(slot.comm == 1 && slot.place == 2 && slot.nranks == 4);
	cr_assert(suite_comm_slot(s, 2, 7, &slot));
	cr_expect(slot.comm == 0 && slot.place == 3 && slot.nranks == 6);
	cr_expect_not(suite_comm_slot(s, 2, 6, &slot));
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	look(s);
	++*(int *)user;
	return 0;
}

Test(suite_comm_slot, ranks_are_where_families_put_them)
{
	struct cw_err err = { "" };
	int n = 0;

	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 100, on_scenario, &n, &err), 0,
		     "%s", err.text);
	cr_assert_eq(n, 1);
}

Test(suite_comm_slot, peers_are_named_from_the_slot)
{
	static const struct {
		uint8_t kind;
		int32_t number;
		uint32_t place;
		int64_t peer;
	} cases[] = {
		{ SUITE_PEER_NEXT, 0, 1, 2 },      { SUITE_PEER_NEXT, 0, 3, -1 },
		{ SUITE_PEER_PREV, 0, 0, -1 },     { SUITE_PEER_RING_NEXT, 0, 3, 0 },
		{ SUITE_PEER_RING_PREV, 0, 0, 3 }, { SUITE_PEER_PAIR, 0, 2, 3 },
		{ SUITE_PEER_NUMBER, 2, 0, 2 },    { SUITE_PEER_NUMBER, 4, 0, -1 },
		{ SUITE_PEER_NUMBER, 1, 1, -1 },   { SUITE_PEER_EACH, 0, 1, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct suite_call call = { .peer_kind = cases[i].kind, .peer = cases[i].number };

		slot = (struct suite_comm_slot){ .place = cases[i].place, .nranks = 4 };
		cr_expect_eq(suite_peer(&call, &slot), cases[i].peer, "case %zu", i);
	}
}
