/* SPDX-License-Identifier: Apache-2.0 */
/* Groups and point to point in the flight record. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/hooks/wrap.h"
#include "agent/ops/group.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/signature.h"
#include "tests/support/agent/agent_fake_nccl.h"

/* ---- groups ---- */

Test(agent_groups, queues_grouped_ops_until_the_outermost_end)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);

	start();
	start();
	all_reduce(comm, 1);
	all_reduce(comm, 2);
	cr_assert_eq(last(rc)->seq, 2);
	cr_assert_eq(last(rc)->flags & (CW_OPF_GROUPED | CW_OPF_QUEUED),
		     CW_OPF_GROUPED | CW_OPF_QUEUED);
	end();
	cr_assert_eq(rc->coll_returned, 0, "the inner end launches nothing");
	cr_assert(last(rc)->flags & CW_OPF_QUEUED);
	cr_assert_eq(rc->coll_entered, 0);
	watched = rc;
	inside = look;
	end();
	cr_assert_eq(seen_entered, 2);
	cr_assert_eq(seen_returned, 0);
	cr_assert_not(seen_flags & (CW_OPF_QUEUED | CW_OPF_RETURNED));
	cr_assert_eq(rc->coll_returned, 2);
	cr_assert(last(rc)->flags & CW_OPF_RETURNED);
	cr_assert_gt(last(rc)->return_ns, 0);
}

static char sim_info; /* NCCL's alone to look at */

static ncclResult_t simulate(void)
{
	return cw_impl_ncclGroupSimulateEnd(&fake, NULL, (ncclSimInfo_t *)&sim_info);
}

static void drops(bool is_simulated)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);

	send_to(comm, 2, 8);
	start();
	all_reduce(comm, 1);
	send_to(comm, 2, 8);
	if (is_simulated) {
		(void)simulate();
	} else {
		answer = ncclInvalidUsage;
		cr_assert_eq(end(), ncclInvalidUsage);
	}
	answer = ncclSuccess;
	cr_assert_eq(rc->coll_entered, 0);
	cr_assert_eq(rc->coll_returned, 0);
	cr_assert_eq(rc->hash, CW_HASH_INIT);
	cr_assert_eq(rc->p2p_total[0], 1);
	cr_assert(last(rc)->flags & CW_OPF_DROPPED);
	all_reduce(comm, 1);
	cr_assert_eq(last(rc)->seq, 1);
	send_to(comm, 2, 8);
	cr_assert_eq(last(rc)->seq, 2);
	cr_assert_eq(cw_tls.group_depth, 0);
	cr_assert_null(cw_tls.group);
}

Test(agent_groups, drops_a_simulated_group)
{
	drops(true);
}

Test(agent_groups, drops_a_failed_group)
{
	drops(false);
}

Test(agent_groups, launches_a_group_simulated_into_nothing)
{
	ncclComm_t comm = init(1);

	start();
	all_reduce(comm, 1);
	watched = entry(comm);
	inside = look;
	cr_assert_eq(cw_impl_ncclGroupSimulateEnd(&fake, NULL, NULL), ncclSuccess);
	cr_assert_eq(seen_entered, 1, "the end may hang");
	cr_assert_eq(watched->coll_returned, 1);
	cr_assert_not(last(watched)->flags & CW_OPF_DROPPED);
}

Test(agent_groups, launches_a_simulated_group_that_is_in_progress)
{
	ncclComm_t comm = init(1);

	start();
	all_reduce(comm, 1);
	answer = ncclInProgress;
	cr_assert_eq(simulate(), ncclInProgress);
	cr_assert_eq(entry(comm)->coll_returned, 1);
	cr_assert_eq(entry(comm)->coll_entered, 1);
	cr_assert(last(entry(comm))->flags & CW_OPF_IN_PROGRESS);
}

Test(agent_groups, ends_no_group_with_an_inner_simulation)
{
	ncclComm_t comm = init(1);

	start();
	start();
	all_reduce(comm, 1);
	cr_assert_eq(simulate(), ncclSuccess);
	cr_assert(last(entry(comm))->flags & CW_OPF_QUEUED);
	cr_assert_eq(cw_tls.group_depth, 1);
	end();
	cr_assert_eq(entry(comm)->coll_returned, 1);
}

Test(agent_groups, makes_the_communicators_of_a_simulated_group)
{
	ncclComm_t comm;

	start();
	comm = init(1);
	cr_assert_eq(simulate(), ncclSuccess);
	cr_assert_eq(entry(comm)->state, CW_COMM_READY);
	all_reduce(comm, 1);
	cr_assert_eq(entry(comm)->coll_returned, 1);
}

Test(agent_groups, numbers_groups_longer_than_any_ring)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	const unsigned n = 3 * CW_REC_RING_OPS / 2;

	start();
	for (unsigned i = 0; i < n; i++)
		all_reduce(comm, 1);
	end();
	cr_assert_eq(rc->coll_returned, n);
	cr_assert_eq(cw_record.header->ring_ticket, n + 1);
	for (unsigned i = 0; i < CW_REC_RING_OPS; i++) {
		const struct cw_rec_op *op = &cw_record.ring[i];

		cr_assert(op->flags & CW_OPF_RETURNED, "slot %u", i);
		cr_assert_eq((op->publish - 1) % CW_REC_RING_OPS, i);
	}
}

Test(agent_groups, keeps_two_communicators_of_a_group_apart)
{
	ncclComm_t a = init(1), b = init(2);

	start();
	all_reduce(a, 1);
	all_reduce(b, 1);
	all_reduce(a, 1);
	end();
	cr_assert_eq(entry(a)->coll_returned, 2);
	cr_assert_eq(entry(b)->coll_returned, 1);
	cr_assert(last(entry(b))->flags & CW_OPF_RETURNED);
}

/* ---- point to point ---- */

Test(agent_groups, counts_p2p_per_peer_and_direction)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	const struct cw_rec_p2p_peer *peers;

	start();
	send_to(comm, 0, 1);
	send_to(comm, 0, 2);
	receive_from(comm, 0, 3);
	send_to(comm, 3, 4);
	cr_assert_eq(last(rc)->seq, 1);
	end();
	send_to(comm, 0, 5);
	cr_assert_eq(last(rc)->seq, 3);
	cr_assert_eq(rc->coll_returned, 0, "p2p never enters a history");
	cr_assert_eq(rc->hash, CW_HASH_INIT);
	peers = cw_record.p2p[rc->p2p_block - 1].peers;
	cr_assert_eq(peers[0].count[0], 3);
	cr_assert_eq(peers[0].count[1], 1);
	cr_assert_eq(peers[3].count[0], 1);
	cr_assert_eq(rc->p2p_total[0], 4);
	cr_assert_eq(rc->p2p_total[1], 1);
}

Test(agent_groups, hashes_p2p_sizes_alike_for_sender_and_receiver)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	const struct cw_rec_p2p_peer *peers;

	for (size_t i = 1; i < 5; i++)
		send_to(comm, 0, i);
	start();
	for (size_t i = 1; i < 5; i++)
		receive_from(comm, 3, i);
	end();
	peers = cw_record.p2p[rc->p2p_block - 1].peers;
	cr_assert_eq(peers[0].hash[0], peers[3].hash[1]);
	send_to(comm, 0, 9);
	cr_assert_neq(peers[0].hash[0], peers[3].hash[1]);
}

Test(agent_groups, counts_peers_that_find_no_room)
{
	ncclComm_t comm;

	ranks = 4096;
	comm = init(1);
	for (int peer = 0; peer < 1000; peer++)
		send_to(comm, peer, 1);
	cr_assert_gt(entry(comm)->p2p_dropped, 0);
	cr_assert_eq(entry(comm)->p2p_dropped + entry(comm)->p2p_total[0], 1000);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_P2P], entry(comm)->p2p_dropped);
}
