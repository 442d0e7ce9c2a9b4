/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's record of single calls, and the history it keeps. */
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

/* ---- numbers ---- */

Test(agent, counts_collectives_from_one)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);

	for (uint64_t i = 1; i <= 5; i++) {
		cr_assert_eq(all_reduce(comm, 10), ncclSuccess);
		cr_assert_eq(rc->coll_entered, i);
		cr_assert_eq(rc->coll_returned, i);
		cr_assert_eq(last(rc)->seq, i);
		cr_assert_eq(last(rc)->op_index, i + 1, "init was the first op");
	}
	cr_assert(last(rc)->flags & CW_OPF_RETURNED);
	cr_assert_geq(last(rc)->return_ns, last(rc)->enter_ns);
	cr_assert_eq(last(rc)->bytes, 40);
}

Test(agent, shows_a_call_as_entered_while_nccl_has_it)
{
	ncclComm_t comm = init(1);

	watched = entry(comm);
	inside = look;
	all_reduce(comm, 1);
	cr_assert_eq(seen_entered, 1);
	cr_assert_eq(seen_returned, 0);
	cr_assert_eq(seen_seq, 1);
	cr_assert_not(seen_flags & CW_OPF_RETURNED);
}

Test(agent, does_not_count_what_reaches_no_peer)
{
	ncclComm_t comm = init(1), alone;

	all_reduce(comm, 0);
	cr_assert_eq(entry(comm)->coll_returned, 0);
	cr_assert(last(entry(comm))->flags & CW_OPF_NO_COUNT);
	ranks = 1;
	my_rank = 0;
	alone = init(2);
	all_reduce(alone, 10);
	cr_assert_eq(entry(alone)->coll_returned, 0);
}

Test(agent, gives_a_failed_calls_number_to_the_next)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);

	answer = ncclInvalidUsage;
	cr_assert_eq(all_reduce(comm, 10), ncclInvalidUsage);
	cr_assert_eq(rc->coll_entered, 0);
	cr_assert_eq(rc->coll_returned, 0);
	cr_assert_eq(rc->last_result, ncclInvalidUsage);
	cr_assert_str_eq(rc->last_error, "the cable is out");
	cr_assert_eq(last(rc)->result, ncclInvalidUsage);
	answer = ncclSuccess;
	all_reduce(comm, 10);
	cr_assert_eq(last(rc)->seq, 1);
	cr_assert_eq(rc->hash, cw_hash_commit(CW_HASH_INIT, signature_of(10)));
}

Test(agent, counts_a_call_nccl_makes_of_itself_once)
{
	ncclComm_t comm = init(1);

	cw_impl_ncclBcast(&fake, NULL, NULL, 7, CW_DTYPE_FP32, 2, comm, NULL);
	cr_assert_eq(entry(comm)->coll_returned, 1);
	cr_assert_eq(last(entry(comm))->kind, CW_OP_BROADCAST);
	cr_assert_eq(last(entry(comm))->root_or_peer, 2);
}

Test(agent, records_a_users_operator_by_what_it_is)
{
	ncclComm_t comm = init(1);

	cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, 1, CW_DTYPE_FP32, 0x12345, comm, NULL);
	cr_assert_eq(last(entry(comm))->redop, CW_REDOP_PREMULSUM);
}

Test(agent, keeps_the_errno_nccl_left)
{
	ncclComm_t comm = init(1);

	errno = 0;
	all_reduce(comm, 1);
	cr_assert_eq(errno, 4711);
	start();
	errno = 0;
	end();
	cr_assert_eq(errno, 4711);
}

void collwatch_mark_step(int64_t step);

Test(agent, notes_a_step_only_when_there_is_a_record)
{
	collwatch_mark_step(1); /* nothing to write to yet */
	(void)init(1);
	cr_assert_eq(cw_record.header->step_mark, -1);
	collwatch_mark_step(7);
	cr_assert_eq(cw_record.header->step_mark, 7);
	cr_assert_gt(cw_record.header->step_mark_ns, 0);
}

Test(agent, takes_a_name_for_a_communicator_that_nccl_was_given_none_for)
{
	ncclComm_t comm;

	errno = 4711;
	cr_expect_not(collwatch_name_comm(&errno, "mesh_tp:3"), "there is no record yet");
	comm = init(1);
	cr_expect_not(collwatch_name_comm(NULL, "mesh_tp:3"));
	cr_expect_not(collwatch_name_comm(&errno, "mesh_tp:3"), "no communicator");
	cr_expect(collwatch_name_comm(comm, "mesh_tp:3"));
	cr_expect_str_eq(entry(comm)->name, "mesh_tp (3)");
	cr_expect(collwatch_name_comm(comm, "another"));
	cr_expect_str_eq(entry(comm)->name, "mesh_tp (3)", "it has one");
	cr_expect_eq(entry(comm)->seqlock % 2, 0);
	cr_expect_eq(errno, 4711);
}

Test(agent, takes_the_time_out_of_the_frameworks_groups)
{
	const struct cw_rec_header *h;

	collwatch_set_job_timeout(1); /* nothing to write to yet */
	(void)init(1);
	h = cw_record.header;
	cr_expect_eq(h->job_timeout_ns, 0);
	collwatch_set_job_timeout(-1);
	cr_expect_str_eq(h->job_timeout_source, "");
	collwatch_set_job_timeout(INT64_C(1800000000000));
	cr_expect_eq(h->job_timeout_ns, UINT64_C(1800000000000));
	cr_expect_str_eq(h->job_timeout_source, "timeout of its process groups");
	collwatch_set_job_timeout(INT64_C(60000000000));
	cr_expect_eq(h->job_timeout_ns, UINT64_C(60000000000), "set anew");
	collwatch_set_job_timeout(INT64_MAX);
	cr_expect_eq(h->job_timeout_ns, 0, "never");
	cr_expect_str_neq(h->job_timeout_source, "", "and none is assumed");
}

Test(agent, leaves_the_time_out_that_a_person_gave_collwatch)
{
	(void)setenv("COLLWATCH_JOB_TIMEOUT", "10min", 1);
	(void)init(1);
	collwatch_set_job_timeout(INT64_C(60000000000));
	cr_expect_eq(cw_record.header->job_timeout_ns, UINT64_C(600000000000));
}

/* ---- history ---- */

Test(agent, stores_a_checkpoint_at_the_first_commit_past_each_multiple_of_8)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	uint64_t h = CW_HASH_INIT, sum = 0;

	for (int i = 0; i < 62; i++) {
		all_reduce(comm, 3);
		h = cw_hash_commit(h, signature_of(3));
	}
	cr_assert_eq(rc->checkpoint_ticket, 7);
	cr_assert_eq(rc->checkpoints[7 % 4].coll_seq, 56);
	start();
	for (size_t i = 1; i <= 4; i++) {
		all_reduce(comm, i);
		sum += signature_of(i);
	}
	end();
	h = cw_hash_commit(h, sum);
	/* Past 64, which has slots of its own. */
	cr_assert_eq(rc->checkpoint_ticket, 8);
	cr_assert_eq(rc->checkpoints[4 + 1].coll_seq, 66);
	cr_assert_eq(rc->checkpoints[4 + 1].hash, h);
	cr_assert_eq(rc->checkpoints[7 % 4].coll_seq, 56);
	cr_assert_eq(rc->hash, h);
}

Test(agent, hashes_a_group_in_any_order_and_a_group_of_one_as_none)
{
	ncclComm_t a = init(1), b = init(2), c = init(3), d = init(4);

	start();
	all_reduce(a, 1);
	all_reduce(a, 2);
	end();
	start();
	all_reduce(b, 2);
	all_reduce(b, 1);
	end();
	cr_assert_eq(entry(a)->hash, entry(b)->hash);
	start();
	all_reduce(c, 5);
	end();
	all_reduce(d, 5);
	cr_assert_eq(entry(c)->hash, entry(d)->hash);
	cr_assert_neq(entry(a)->hash, entry(c)->hash);
}
