/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster whose daemons are replaced one after the other by daemons of an invented later version,
 * whose messages have unknown fields: one job, one leader, one incident, in any mixture.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "lab/vnet/newer_version.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/cluster/cluster.h"

#define NODES 4u

static struct cluster c;

static void set_up(unsigned newer_nodes)
{
	cluster_init(&c, NODES, 8);
	for (unsigned i = 0; i < NODES; i++)
		if (newer_nodes >> i & 1)
			network_set_newer(c.net, i);
}

static void tear_down(void)
{
	cluster_fini(&c);
}

static unsigned n_named_leaders(void)
{
	const char *first = cluster_elected(&c, 0);
	unsigned others = 0;

	for (unsigned i = 0; i < NODES; i++)
		others += strcmp(cluster_elected(&c, i), first) != 0;
	return 1 + others;
}

/* The premise of the tests below: this version reads everything but the fields of the later one. */
Test(upgrade, messages_of_a_later_version_lose_only_what_it_added)
{
	struct cw_msg_member member = { .comm_id = 7 };
	struct cw_msg_rank rank = { .rank = 3, .members = &member, .n_members = 1 };
	struct cw_message *back, m = {
		.type = CW_MSG_DIGEST,
		.digest = { .label = "4711", .node = "node-0", .ranks = &rank, .n_ranks = 1 }
	};
	uint8_t *today, *later, *again;
	size_t today_len, later_len, again_len;

	cr_assert_eq(cw_message_encode(&m, &today, &today_len), 0);
	cr_assert_eq(newer_version_frame(today, today_len, &later, &later_len), 0);
	cr_assert_geq(later_len, today_len + 4 * 4 * 4, "in envelope, digest, rank and member");
	cr_assert_eq(cw_message_decode(later + CW_FRAME_HEADER_BYTES,
				       later_len - CW_FRAME_HEADER_BYTES, &back),
		     0);
	cr_assert_eq(back->version, CW_WIRE_VERSION + 1);
	cr_assert_eq(cw_message_make_whole(back), 0);
	cr_assert_eq(cw_message_encode(back, &again, &again_len), 0);
	cr_assert_eq(again_len, today_len);
	cr_assert_arr_eq(again, today, today_len);
	cw_message_free(back);
	free(today);
	free(later);
	free(again);
}

/* Longer than it takes to give up a leader whose answers are not understood. */
Test(upgrade, any_mixture_of_versions_has_one_leader_and_one_incident)
{
	for (unsigned newer_nodes = 0; newer_nodes < 1u << NODES; newer_nodes++) {
		set_up(newer_nodes);
		cluster_run(&c, 2 + 2.0 * CW_LEADER_SILENT_NS / CW_NS_PER_S);
		cr_assert_geq(cluster_leader(&c), 0, "newer: %#x", newer_nodes);
		cr_assert_eq(cluster_job(&c, (unsigned)cluster_leader(&c))->view.ranks, 8);
		cr_assert_eq(n_named_leaders(), 1, "newer: %#x", newer_nodes);
		cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
		cr_assert(cluster_run_until_alert(&c, 30), "newer: %#x", newer_nodes);
		cluster_run(&c, 60);
		cr_assert_eq(c.n_alerts, 1, "newer: %#x", newer_nodes);
		cr_assert_eq(c.alerts[0].culprit, 5);
		cr_assert_eq(n_named_leaders(), 1, "newer: %#x", newer_nodes);
		tear_down();
	}
}

Test(upgrade, a_proof_by_the_windows_of_any_mixture_names_the_call)
{
	for (unsigned newer_nodes = 0; newer_nodes < 1u << NODES; newer_nodes++) {
		set_up(newer_nodes);
		cluster_run(&c, 5);
		cluster_fault(&c, FAULT_MISMATCH, 2);
		cr_assert(cluster_run_until_alert(&c, 30), "newer: %#x", newer_nodes);
		cr_assert_str_eq(c.alerts[0].verdict_class, "mismatch", "newer: %#x", newer_nodes);
		cr_assert_eq(c.alerts[0].culprit, 2, "newer: %#x", newer_nodes);
		cluster_run(&c, 30);
		cr_assert_eq(c.n_alerts, 1, "newer: %#x", newer_nodes);
		tear_down();
	}
}

Test(upgrade, daemons_replaced_one_by_one_during_a_hang_tell_of_it_once)
{
	set_up(0);
	cluster_run(&c, 20);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 5);
	for (unsigned i = 0; i < NODES; i++) {
		cluster_run(&c, 7);
		cluster_upgrade(&c, i);
	}
	cluster_run(&c, 60);
	cr_assert_eq(c.n_alerts, 1);
	cr_assert_eq(c.alerts[0].culprit, 5);
	cr_assert_eq(n_named_leaders(), 1);
	cr_assert_geq(cluster_leader(&c), 0);
	tear_down();
}
