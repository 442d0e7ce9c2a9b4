/* SPDX-License-Identifier: Apache-2.0 */
#include "suite/cluster/seat.h"

#include <criterion/criterion.h>
#include <string.h>

static const char text[] = "scenario s\nranks 12 per-node 4\ncomms tp size 3\n"
			   "comms dp size rest stride 3\ncomm odd odd\ncomms bad size 5\n"
			   "program\nall_reduce tp\nend\nexpect silence\nend\n";

static struct suite_seat seat;

static void look(const struct suite_scenario *s)
{
	cr_expect_eq(cw_suite_family_comms(s, 0), 4);
	cr_expect_eq(cw_suite_family_comms(s, 1), 3);
	cr_expect_eq(cw_suite_family_comms(s, 2), 1);
	cr_expect_eq(cw_suite_family_comms(s, 3), 0, "12 ranks in fives");

	cr_assert(suite_seat(s, 0, 7, &seat));
	cr_expect(seat.comm == 2 && seat.place == 1 && seat.nranks == 3);
	cr_assert(suite_seat(s, 1, 7, &seat));
	cr_expect(seat.comm == 1 && seat.place == 2 && seat.nranks == 4);
	cr_assert(suite_seat(s, 2, 7, &seat));
	cr_expect(seat.comm == 0 && seat.place == 3 && seat.nranks == 6);
	cr_expect_not(suite_seat(s, 2, 6, &seat));
}

static int on_scenario(void *user, const struct suite_scenario *s)
{
	look(s);
	++*(int *)user;
	return 0;
}

Test(suite_seat, ranks_sit_where_families_put_them)
{
	struct cw_err err = { "" };
	int n = 0;

	cr_assert_eq(cw_suite_read_text(text, strlen(text), "t", 100, on_scenario, &n, &err), 0,
		     "%s", err.text);
	cr_assert_eq(n, 1);
}

Test(suite_seat, peers_are_named_from_the_seat)
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

		seat = (struct suite_seat){ .place = cases[i].place, .nranks = 4 };
		cr_expect_eq(suite_peer(&call, &seat), cases[i].peer, "case %zu", i);
	}
}
