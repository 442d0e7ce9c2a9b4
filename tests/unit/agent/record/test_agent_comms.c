/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators in the flight record: from init to abort. */
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

#define SYSTEM_ERROR ((ncclResult_t)2) /* ncclSystemError */

/* ---- communicators ---- */

static uint64_t seen_kind, seen_id;
static uint32_t seen_state;

static void look_at_init(void)
{
	seen_kind = cw_record.header->host_call_kind;
	seen_id = cw_record.header->host_call_comm_id;
	seen_state = cw_record.comms[0].state;
	seen_flags = last(&cw_record.comms[0])->flags;
}

Test(agent_comms, shows_a_rank_stuck_in_init)
{
	ncclComm_t comm;

	inside = look_at_init;
	comm = init(1);
	cr_assert_eq(seen_kind, CW_OP_COMM_INIT);
	cr_assert_eq(seen_id, entry(comm)->comm_id);
	cr_assert_eq(seen_state, CW_COMM_INIT);
	cr_assert_not(seen_flags & CW_OPF_RETURNED);
	cr_assert_eq(cw_record.header->host_call_kind, 0);
	cr_assert_eq(entry(comm)->state, CW_COMM_READY);
	cr_assert_eq(entry(comm)->nranks, 4);
	cr_assert_eq(entry(comm)->comm_rank, 1);
}

Test(agent_comms, marks_a_failed_init)
{
	answer = ncclInvalidUsage;
	(void)init(1);
	cr_assert_eq(cw_record.comms[0].state, CW_COMM_FAILED);
	cr_assert_gt(cw_record.comms[0].ended_ns, 0);
}

/* The others wait in the communicator of that id, not in a second one. */
Test(agent_comms, a_repeated_init_takes_the_place_of_the_one_that_failed)
{
	ncclComm_t comm;

	answer = SYSTEM_ERROR;
	(void)init(1);
	(void)init(1);
	answer = ncclSuccess;
	comm = init(1);
	cr_assert_eq(entry(comm), &cw_record.comms[0]);
	cr_assert_eq(entry(comm)->state, CW_COMM_READY);
	cr_assert_eq(entry(comm)->instance, 0);
	cr_assert_eq(entry(comm)->last_result, 0);
	cr_assert_eq(entry(comm)->generation, 3);
	cr_assert_eq(cw_record.header->comms_used, 1);
}

/* NCCL was still at it when the call came back: the program learns of the failure when it asks. */
Test(agent_comms, a_making_that_fails_while_the_program_asks_has_failed)
{
	const struct cw_rec_op *making;
	struct cw_rec_comm *rc;
	ncclResult_t state;
	ncclComm_t comm;

	answer = ncclInProgress;
	comm = init(1);
	rc = entry(comm);
	making = last(rc);
	cr_assert_eq(rc->state, CW_COMM_INIT);
	answer = SYSTEM_ERROR;
	cw_impl_ncclCommGetAsyncError(&fake, NULL, comm, &state);
	cr_assert_eq(rc->state, CW_COMM_FAILED);
	cr_assert_eq(rc->last_result, SYSTEM_ERROR);
	cr_assert_str_eq(rc->last_error, "the cable is out");
	cr_assert_eq(making->result, SYSTEM_ERROR);
	cr_assert(making->flags & CW_OPF_DROPPED);
	cr_assert_not(making->flags & CW_OPF_IN_PROGRESS);
	cr_assert_gt(rc->ended_ns, 0);
	/* Its abort does not turn it into a communicator that existed. */
	answer = ncclSuccess;
	cw_impl_ncclCommAbort(&fake, NULL, comm);
	cr_assert_eq(rc->state, CW_COMM_FAILED);
	cr_assert_lt(cw_comm_find(comm), 0);
}

Test(agent_comms, a_split_that_fails_while_the_program_asks_has_failed)
{
	ncclComm_t parent = init(1), child = NULL;
	const struct cw_rec_op *making;
	ncclResult_t state;

	has_handle = false;
	answer = ncclInProgress;
	(void)cw_impl_ncclCommSplit(&fake, NULL, parent, 0, 0, &child, NULL);
	making = last(entry(parent));
	cr_assert_eq(cw_record.comms[1].state, CW_COMM_INIT);
	answer = SYSTEM_ERROR;
	cw_impl_ncclCommGetAsyncError(&fake, NULL, parent, &state);
	cr_assert_eq(cw_record.comms[1].state, CW_COMM_FAILED);
	cr_assert_eq(making->kind, CW_OP_COMM_SPLIT);
	cr_assert_eq(making->result, SYSTEM_ERROR);
	cr_assert_eq(entry(parent)->state, CW_COMM_READY);
}

Test(agent_comms, takes_an_id_from_all_bytes_of_the_unique_id)
{
	ncclUniqueId a = uid(1), b = uid(1), two[2] = { uid(1), uid(2) };

	cr_assert_eq(cw_comm_id_of(&a, 1), cw_comm_id_of(&b, 1));
	b.internal[126] ^= 1;
	cr_assert_neq(cw_comm_id_of(&a, 1), cw_comm_id_of(&b, 1));
	cr_assert_neq(cw_comm_id_of(&a, 1), cw_comm_id_of(two, 2));
}

Test(agent_comms, tells_comms_of_one_id_apart)
{
	ncclComm_t a = init(1), b;

	cr_assert_eq(entry(a)->instance, 0);
	cw_impl_ncclCommDestroy(&fake, NULL, a);
	b = init(1);
	cr_assert_eq(entry(b)->instance, 1);
}

static ncclComm_t split(ncclComm_t parent, int color)
{
	ncclComm_t child = NULL;

	(void)cw_impl_ncclCommSplit(&fake, NULL, parent, color, 0, &child, NULL);
	return child;
}

Test(agent_comms, gives_a_child_the_same_id_on_every_rank)
{
	ncclComm_t a = init(1), b = init(2), ca, cb;
	uint64_t first;

	/* Two ranks of one communicator: the same parent id, the same calls. */
	entry(b)->comm_id = entry(a)->comm_id;
	ca = split(a, 3);
	cb = split(b, 3);
	cr_assert_eq(entry(ca)->comm_id, entry(cb)->comm_id);
	cr_assert_eq(entry(ca)->parent_id, entry(a)->comm_id);
	cr_assert_eq(entry(ca)->split_ordinal, 1);
	cr_assert_eq(entry(ca)->split_color, 3);
	first = entry(ca)->comm_id;
	cr_assert_neq(entry(split(a, 3))->comm_id, first, "the second split is another comm");
	/* A rank that stands aside still makes the call. */
	cr_assert_null(split(b, NCCL_SPLIT_NOCOLOR));
	ca = split(a, 5);
	cb = split(b, 5);
	cr_assert_eq(entry(ca)->comm_id, entry(cb)->comm_id);
	cr_assert_eq(last(entry(a))->kind, CW_OP_COMM_SPLIT, "the split is an op of the parent");
}

Test(agent_comms, finds_the_handle_of_a_grouped_split_at_the_groups_end)
{
	ncclComm_t parent = init(1), child = NULL;

	start();
	has_handle = false;
	(void)cw_impl_ncclCommSplit(&fake, NULL, parent, 0, 0, &child, NULL);
	cr_assert_eq(cw_record.comms[1].state, CW_COMM_INIT);
	child = (ncclComm_t)&handles[200];
	end();
	cr_assert_eq(entry(child)->state, CW_COMM_READY);
	all_reduce(child, 1);
	cr_assert_eq(entry(child)->coll_returned, 1);
}

Test(agent_comms, finds_the_handle_of_a_non_blocking_split_when_it_is_there)
{
	ncclComm_t parent = init(1), child = NULL;
	ncclResult_t state;

	has_handle = false;
	answer = ncclInProgress;
	(void)cw_impl_ncclCommSplit(&fake, NULL, parent, 0, 0, &child, NULL);
	cw_impl_ncclCommGetAsyncError(&fake, NULL, parent, &state);
	cr_assert_eq(cw_record.comms[1].state, CW_COMM_INIT);
	child = (ncclComm_t)&handles[200];
	answer = ncclSuccess;
	cw_impl_ncclCommGetAsyncError(&fake, NULL, parent, &state);
	cr_assert_eq(entry(child)->state, CW_COMM_READY);
	cr_assert(entry(child)->flags & CW_REC_COMM_NONBLOCKING);
}

Test(agent_comms, gives_each_rank_of_init_all_an_entry_with_one_id)
{
	ncclComm_t comms[4];

	cr_assert_eq(cw_impl_ncclCommInitAll(&fake, NULL, comms, 4, NULL), ncclSuccess);
	for (int i = 1; i < 4; i++)
		cr_assert_eq(entry(comms[i])->comm_id, entry(comms[0])->comm_id);
}

Test(agent_comms, takes_the_name_only_from_a_config_that_has_one)
{
	ncclConfig_t config = { .size = sizeof(config),
				.magic = NCCL_CONFIG_MAGIC,
				.version = 22809,
				.blocking = NCCL_CONFIG_UNDEF_INT,
				.commName = "tp_group" };
	ncclComm_t comm;

	cw_impl_ncclCommInitRankConfig(&fake, NULL, &comm, ranks, uid(1), 0, &config);
	cr_assert_str_eq(entry(comm)->name, "tp_group");
	config.size = offsetof(ncclConfig_t, commName);
	cw_impl_ncclCommInitRankConfig(&fake, NULL, &comm, ranks, uid(2), 0, &config);
	cr_assert_str_eq(entry(comm)->name, "");
}

Test(agent_comms, tells_torchs_names_like_those_of_its_dumps)
{
	ncclConfig_t config = { .size = sizeof(config),
				.magic = NCCL_CONFIG_MAGIC,
				.version = 22809,
				.blocking = NCCL_CONFIG_UNDEF_INT,
				.commName = "mesh_dp_shard:12" };
	ncclComm_t comm;

	cw_impl_ncclCommInitRankConfig(&fake, NULL, &comm, ranks, uid(1), 0, &config);
	cr_expect_str_eq(entry(comm)->name, "mesh_dp_shard (12)");
}

Test(agent_comms, reuses_the_entry_that_ended_longest_ago)
{
	ncclComm_t comms[CW_REC_COMMS], extra;

	for (unsigned i = 0; i < CW_REC_COMMS; i++)
		comms[i] = init(i);
	extra = init(1000);
	cr_assert_lt(cw_comm_find(extra), 0);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_COMMS], 1);
	cr_assert_eq(all_reduce(extra, 1), ncclSuccess);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_OPS], 1);
	cw_impl_ncclCommDestroy(&fake, NULL, comms[7]);
	cw_impl_ncclCommDestroy(&fake, NULL, comms[3]);
	cr_assert_eq(cw_record.comms[7].state, CW_COMM_DESTROYED);
	cr_assert_eq(cw_comm_find(init(2000)), 7);
	cr_assert_eq(cw_record.comms[7].generation, 2);
	cr_assert_eq(cw_comm_find(init(2001)), 3);
	cr_assert_eq(cw_record.comms[7].seqlock % 2, 0);
}

Test(agent_comms, notes_an_async_error_and_an_abort)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	ncclResult_t state;

	answer = 6;
	cw_impl_ncclCommGetAsyncError(&fake, NULL, comm, &state);
	cr_assert_eq(rc->async_error, 6);
	cr_assert_str_eq(rc->last_error, "the cable is out");
	answer = ncclSuccess;
	cw_impl_ncclCommAbort(&fake, NULL, comm);
	cr_assert_eq(rc->state, CW_COMM_ABORTED);
	cr_assert_lt(cw_comm_find(comm), 0);
}

Test(agent_comms, answers_for_a_function_nccl_lacks)
{
	static const struct cw_real empty;

	cr_assert_eq(cw_impl_ncclAllReduce(&empty, NULL, NULL, NULL, 1, 0, 0, NULL, NULL),
		     ncclInvalidUsage);
	cr_assert_eq(cw_impl_ncclCommCount(&empty, NULL, NULL, NULL), ncclInvalidUsage);
	cr_assert_not_null(cw_impl_ncclGetErrorString(&empty, NULL, 0));
	cr_assert_eq(cw_impl_ncclTeamWorld(&empty, NULL, NULL).nRanks, 0);
}

Test(agent_comms, ignores_calls_from_inside_nccl)
{
	ncclComm_t comm = init(1);

	fake.code_start = 0x1000;
	fake.code_end = 0x2000;
	cw_impl_ncclAllReduce(&fake, (void *)0x1800, NULL, NULL, 1, 7, 0, comm, NULL);
	cr_assert_eq(entry(comm)->coll_returned, 0);
	cw_impl_ncclAllReduce(&fake, (void *)0x2000, NULL, NULL, 1, 7, 0, comm, NULL);
	cr_assert_eq(entry(comm)->coll_returned, 1);
}
