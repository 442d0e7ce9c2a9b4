/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of newer NCCLs: per-call configurations, one-sided ops, communicators that grow. */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "model/op.h"
#include "tests/support/agent/agent_fake_nccl.h"

static ncclWaitSignalDesc_t descs[100];
static const ncclCollConfig_t *seen_config;

static ncclResult_t fake_config(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				cudaStream_t st, const ncclCollConfig_t *config)
{
	seen_config = config;
	return answer;
}

static ncclResult_t fake_put(const void *b, size_t n, int dt, int peer, ncclWindow_t w, size_t at,
			     int sig, int ctx, unsigned int flags, ncclComm_t c, cudaStream_t st)
{
	return answer;
}

static ncclResult_t fake_signal(int peer, int sig, int ctx, unsigned int flags, ncclComm_t c,
				cudaStream_t st)
{
	return answer;
}

static ncclResult_t fake_wait(int n, ncclWaitSignalDesc_t *d, ncclComm_t c, cudaStream_t st)
{
	return answer;
}

static ncclResult_t fake_grow(ncclComm_t comm, int n, const ncclUniqueId *id, int rank,
			      ncclComm_t *child, ncclConfig_t *config)
{
	*child = answer == ncclSuccess ? (ncclComm_t)&handles[200] : NULL;
	return answer;
}

static int fake_version_number;

static ncclResult_t fake_version(int *version)
{
	*version = fake_version_number;
	return ncclSuccess;
}

static void add_newer_functions(void)
{
	fake.ncclAllReduceConfig = fake_config;
	fake.ncclPutSignal = fake_put;
	fake.ncclSignal = fake_signal;
	fake.ncclWaitSignal = fake_wait;
	fake.ncclCommGrow = fake_grow;
}

Test(agent_calls, records_a_configured_collective_as_the_plain_one, .init = add_newer_functions)
{
	const ncclCollConfig_t *config = (const void *)&handles[99];
	ncclComm_t a = init(1), b = init(2);

	all_reduce(a, 10);
	cr_assert_eq(cw_impl_ncclAllReduceConfig(&fake, NULL, NULL, NULL, 10, CW_DTYPE_FP32,
						 CW_REDOP_SUM, b, NULL, config),
		     ncclSuccess);
	cr_assert_eq(seen_config, config);
	cr_assert_eq(entry(a)->hash, entry(b)->hash);
	cr_assert_eq(last(entry(b))->kind, CW_OP_ALL_REDUCE);
	cr_assert_eq(last(entry(b))->seq, 1);
}

Test(agent_calls, records_one_sided_ops_without_a_sequence_number, .init = add_newer_functions)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	uint64_t before = rc->op_index;

	(void)cw_impl_ncclPutSignal(&fake, NULL, handles, 8, CW_DTYPE_INT64, 3, NULL, 64, 0, 0, 0,
				    comm, NULL);
	cr_assert_eq(last(rc)->kind, CW_OP_PUT_SIGNAL);
	cr_assert_eq(last(rc)->root_or_peer, 3);
	cr_assert_eq(last(rc)->bytes, 64);
	cr_assert_eq(last(rc)->send_addr, (uint64_t)(uintptr_t)handles);
	(void)cw_impl_ncclSignal(&fake, NULL, 2, 0, 0, 0, comm, NULL);
	cr_assert_eq(last(rc)->kind, CW_OP_SIGNAL);
	cr_assert_eq(last(rc)->root_or_peer, 2);
	cr_assert_eq(last(rc)->bytes, 0);
	cr_assert_eq(rc->op_index, before + 2);
	cr_assert_eq(last(rc)->seq, 0);
	cr_assert_eq(rc->coll_returned, 0);
	cr_assert_eq(rc->p2p_total[0] + rc->p2p_total[1], 0);
	cr_assert(last(rc)->flags & CW_OPF_RETURNED);
}

static const struct cw_rec_op *wait_for(ncclComm_t comm, int count, ncclWaitSignalDesc_t *d)
{
	cr_assert_eq(cw_impl_ncclWaitSignal(&fake, NULL, count, d, comm, NULL), ncclSuccess);
	cr_assert_eq(last(entry(comm))->kind, CW_OP_WAIT_SIGNAL);
	return last(entry(comm));
}

Test(agent_calls, names_the_peer_of_a_wait_only_when_there_is_one, .init = add_newer_functions)
{
	ncclComm_t comm = init(1);

	descs[0] = (ncclWaitSignalDesc_t){ .opCnt = 2, .peer = 3 };
	descs[1] = (ncclWaitSignalDesc_t){ .opCnt = 5, .peer = 3 };
	cr_assert_eq(wait_for(comm, 2, descs)->root_or_peer, 3);
	cr_assert_eq(wait_for(comm, 2, descs)->count, 7);
	descs[1].peer = 1;
	cr_assert_eq(wait_for(comm, 2, descs)->root_or_peer, CW_PEER_NONE);
	/* Calls that NCCL will refuse, and one with more entries than the agent reads. */
	cr_assert_eq(wait_for(comm, 100, descs)->count, 0);
	cr_assert_eq(wait_for(comm, 2, NULL)->root_or_peer, CW_PEER_NONE);
	cr_assert_eq(wait_for(comm, -1, descs)->count, 0);
}

Test(agent_calls, takes_one_sided_ops_into_groups, .init = add_newer_functions)
{
	ncclComm_t comm = init(1);

	start();
	(void)cw_impl_ncclSignal(&fake, NULL, 2, 0, 0, 0, comm, NULL);
	cr_assert(last(entry(comm))->flags & CW_OPF_QUEUED);
	all_reduce(comm, 4);
	end();
	cr_assert(last(entry(comm))->flags & CW_OPF_RETURNED);
	cr_assert_eq(entry(comm)->coll_returned, 1);
}

Test(agent_calls, shows_growth_as_an_op_of_the_parent, .init = add_newer_functions)
{
	ncclComm_t comm = init(1), grown = NULL;
	struct cw_rec_comm *child;

	cr_assert_eq(cw_impl_ncclCommGrow(&fake, NULL, comm, 6, NULL, -1, &grown, NULL),
		     ncclSuccess);
	cr_assert_eq(last(entry(comm))->kind, CW_OP_COMM_GROW);
	cr_assert(last(entry(comm))->flags & CW_OPF_RETURNED);
	child = entry(grown);
	cr_assert_eq(child->state, CW_COMM_READY);
	cr_assert_eq(child->parent_id, entry(comm)->comm_id);
	cr_assert_eq(child->split_ordinal, 1);
	all_reduce(grown, 4);
	cr_assert_eq(child->coll_returned, 1);
}

Test(agent_calls, records_a_rank_that_joins, .init = add_newer_functions)
{
	ncclUniqueId id = uid(7);
	ncclComm_t grown = NULL;

	cr_assert_eq(cw_impl_ncclCommGrow(&fake, NULL, NULL, 6, &id, 5, &grown, NULL), ncclSuccess);
	cr_assert_eq(entry(grown)->state, CW_COMM_READY);
	cr_assert_eq(entry(grown)->comm_id, cw_comm_id_of(&id, 1));
	cr_assert_eq(last(entry(grown))->kind, CW_OP_COMM_GROW);
}

Test(agent_calls, ends_the_entry_of_a_growth_that_fails, .init = add_newer_functions)
{
	ncclUniqueId id = uid(7);
	ncclComm_t comm = init(1), grown = NULL;

	answer = ncclInvalidUsage;
	cr_assert_eq(cw_impl_ncclCommGrow(&fake, NULL, comm, 6, &id, -1, &grown, NULL), answer);
	cr_assert_eq(cw_record.comms[1].state, CW_COMM_FAILED);
	/* Neither a member nor an id: NCCL's to refuse, nothing is recorded. */
	cr_assert_eq(cw_impl_ncclCommGrow(&fake, NULL, NULL, 6, NULL, 0, &grown, NULL), answer);
	cr_assert_eq(cw_record.header->comms_used, 2);
}

Test(agent_calls, refuses_what_the_loaded_nccl_lacks)
{
	ncclComm_t comm = init(1), grown = NULL;

	cr_assert_eq(cw_impl_ncclCommGrow(&fake, NULL, comm, 6, NULL, -1, &grown, NULL),
		     ncclInvalidUsage);
	cr_assert_eq(cw_impl_ncclSignal(&fake, NULL, 2, 0, 0, 0, comm, NULL), ncclInvalidUsage);
	cr_assert_eq(entry(comm)->op_index, 1, "init alone");
}

Test(agent_calls, says_when_nccl_is_newer_than_the_table)
{
	fake.ncclGetVersion = fake_version;
	fake_version_number = CW_NCCL_NEWEST + 1;
	(void)init(1);
	(void)init(2);
	cr_assert_eq(cw_record.header->nccl_version, CW_NCCL_NEWEST + 1);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_UNKNOWN_CALLS], 1);
}

Test(agent_calls, has_nothing_to_say_about_an_nccl_it_knows)
{
	fake.ncclGetVersion = fake_version;
	fake_version_number = CW_NCCL_NEWEST;
	(void)init(1);
	cr_assert_eq(cw_record.header->drops[CW_REC_DROP_UNKNOWN_CALLS], 0);
}
