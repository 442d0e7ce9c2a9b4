/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the agent writes into the flight record, with a NCCL made of a few functions that answer
 * what the test tells them. Every test runs in a process of its own.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/comms.h"
#include "agent/group.h"
#include "agent/record.h"
#include "agent/wrap.h"
#include "common/signature.h"

static ncclResult_t answer;
static int ranks = 4, my_rank = 1;
static bool has_handle = true;
static void (*inside)(void); /* called from within the fake NCCL */
static char handles[256];
static unsigned next_handle;

static ncclResult_t respond(void)
{
	if (inside)
		inside();
	errno = 4711; /* NCCL does as it likes */
	return answer;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_broadcast(const void *s, void *r, size_t n, int dt, int root, ncclComm_t c,
				   cudaStream_t st)
{
	return respond();
}

static struct cw_real fake;

/* As NCCL does: a public function calls another, through the wrapper. */
static ncclResult_t fake_bcast(void *b, size_t n, int dt, int root, ncclComm_t c, cudaStream_t st)
{
	return cw_impl_ncclBroadcast(&fake, NULL, b, b, n, dt, root, c, st);
}

static ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
			      cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_recv(void *s, size_t n, int dt, int peer, ncclComm_t c, cudaStream_t st)
{
	return respond();
}

static ncclResult_t fake_group(void)
{
	return ncclSuccess;
}

static ncclResult_t fake_group_end(void)
{
	return respond();
}

static ncclResult_t fake_simulate(ncclSimInfo_t *info)
{
	return respond();
}

static void hand_out(ncclComm_t *comm)
{
	*comm = has_handle ? (ncclComm_t)&handles[next_handle++] : NULL;
}

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	hand_out(comm);
	return respond();
}

static ncclResult_t fake_init_config(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
				     ncclConfig_t *config)
{
	return fake_init(comm, nranks, id, rank);
}

static ncclResult_t fake_init_all(ncclComm_t *comms, int n, const int *devices)
{
	for (int i = 0; i < n; i++)
		hand_out(&comms[i]);
	return respond();
}

static ncclResult_t fake_split(ncclComm_t comm, int color, int key, ncclComm_t *child,
			       ncclConfig_t *config)
{
	*child = NULL;
	if (color >= 0)
		hand_out(child);
	return respond();
}

static ncclResult_t fake_one(ncclComm_t comm)
{
	return respond();
}

static ncclResult_t fake_async(ncclComm_t comm, ncclResult_t *state)
{
	*state = answer;
	return ncclSuccess;
}

static ncclResult_t fake_count(const ncclComm_t comm, int *n)
{
	*n = ranks;
	return ncclSuccess;
}

static ncclResult_t fake_rank(const ncclComm_t comm, int *n)
{
	*n = my_rank;
	return ncclSuccess;
}

static const char *fake_error(ncclComm_t comm)
{
	return "the cable is out";
}

static struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclBroadcast = fake_broadcast,
	.ncclBcast = fake_bcast,
	.ncclSend = fake_send,
	.ncclRecv = fake_recv,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group_end,
	.ncclGroupSimulateEnd = fake_simulate,
	.ncclCommInitRank = fake_init,
	.ncclCommInitRankConfig = fake_init_config,
	.ncclCommInitAll = fake_init_all,
	.ncclCommSplit = fake_split,
	.ncclCommFinalize = fake_one,
	.ncclCommDestroy = fake_one,
	.ncclCommAbort = fake_one,
	.ncclCommGetAsyncError = fake_async,
	.ncclCommCount = fake_count,
	.ncclCommUserRank = fake_rank,
	.ncclGetLastError = fake_error,
};

/* ---- short names for calls ---- */

static ncclUniqueId uid(unsigned n)
{
	ncclUniqueId id = { { 0 } };

	memcpy(id.internal, &n, sizeof(n));
	id.internal[127] = 1;
	return id;
}

static ncclComm_t init(unsigned n)
{
	ncclComm_t comm = NULL;

	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, ranks, uid(n), my_rank);
	return comm;
}

static ncclResult_t all_reduce(ncclComm_t comm, size_t count)
{
	return cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, count, CW_DTYPE_FP32, CW_REDOP_SUM,
				     comm, NULL);
}

static void send_to(ncclComm_t comm, int peer, size_t count)
{
	(void)cw_impl_ncclSend(&fake, NULL, NULL, count, CW_DTYPE_INT64, peer, comm, NULL);
}

static void receive_from(ncclComm_t comm, int peer, size_t count)
{
	(void)cw_impl_ncclRecv(&fake, NULL, NULL, count, CW_DTYPE_INT64, peer, comm, NULL);
}

static void start(void)
{
	(void)cw_impl_ncclGroupStart(&fake, NULL);
}

static ncclResult_t end(void)
{
	return cw_impl_ncclGroupEnd(&fake, NULL);
}

static struct cw_rec_comm *entry(ncclComm_t comm)
{
	int c = cw_comm_find(comm);

	cr_assert_geq(c, 0);
	return &cw_record.comms[c];
}

static const struct cw_rec_op *last(const struct cw_rec_comm *rc)
{
	return &rc->ops[(rc->ring_ticket - 1) % CW_REC_COMM_OPS];
}

static uint64_t signature_of(size_t count)
{
	return cw_signature(CW_OP_ALL_REDUCE, CW_DTYPE_FP32, CW_REDOP_SUM, CW_PEER_NONE, count,
			    4 * count);
}

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

static struct cw_rec_comm *watched;
static uint64_t seen_entered, seen_returned, seen_seq;
static unsigned seen_flags;

static void look(void)
{
	seen_entered = watched->coll_entered;
	seen_returned = watched->coll_returned;
	seen_seq = last(watched)->seq;
	seen_flags = last(watched)->flags;
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

/* ---- history ---- */

Test(agent, stores_a_checkpoint_at_the_first_commit_past_64)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	uint64_t h = CW_HASH_INIT, sum = 0;

	for (int i = 0; i < 62; i++) {
		all_reduce(comm, 3);
		h = cw_hash_commit(h, signature_of(3));
	}
	cr_assert_eq(rc->checkpoint_ticket, 0);
	start();
	for (size_t i = 1; i <= 4; i++) {
		all_reduce(comm, i);
		sum += signature_of(i);
	}
	end();
	h = cw_hash_commit(h, sum);
	cr_assert_eq(rc->checkpoint_ticket, 1);
	cr_assert_eq(rc->checkpoints[0].coll_seq, 66);
	cr_assert_eq(rc->checkpoints[0].hash, h);
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

/* ---- groups ---- */

Test(agent, queues_grouped_ops_until_the_outermost_end)
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

static void drops(bool is_simulated)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);

	send_to(comm, 2, 8);
	start();
	all_reduce(comm, 1);
	send_to(comm, 2, 8);
	if (is_simulated) {
		(void)cw_impl_ncclGroupSimulateEnd(&fake, NULL, NULL);
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

Test(agent, drops_a_simulated_group)
{
	drops(true);
}

Test(agent, drops_a_failed_group)
{
	drops(false);
}

Test(agent, numbers_groups_longer_than_any_ring)
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

Test(agent, keeps_two_communicators_of_a_group_apart)
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

Test(agent, counts_p2p_per_peer_and_direction)
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

Test(agent, hashes_p2p_sizes_alike_for_sender_and_receiver)
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

Test(agent, counts_peers_that_find_no_room)
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

Test(agent, shows_a_rank_stuck_in_init)
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

Test(agent, marks_a_failed_init)
{
	answer = ncclInvalidUsage;
	(void)init(1);
	cr_assert_eq(cw_record.comms[0].state, CW_COMM_FAILED);
	cr_assert_gt(cw_record.comms[0].ended_ns, 0);
}

Test(agent, takes_an_id_from_all_bytes_of_the_unique_id)
{
	ncclUniqueId a = uid(1), b = uid(1), two[2] = { uid(1), uid(2) };

	cr_assert_eq(cw_comm_id_of(&a, 1), cw_comm_id_of(&b, 1));
	b.internal[126] ^= 1;
	cr_assert_neq(cw_comm_id_of(&a, 1), cw_comm_id_of(&b, 1));
	cr_assert_neq(cw_comm_id_of(&a, 1), cw_comm_id_of(two, 2));
}

Test(agent, tells_comms_of_one_id_apart)
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

Test(agent, gives_a_child_the_same_id_on_every_rank)
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

Test(agent, finds_the_handle_of_a_grouped_split_at_the_groups_end)
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

Test(agent, finds_the_handle_of_a_non_blocking_split_when_it_is_there)
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

Test(agent, gives_each_rank_of_init_all_an_entry_with_one_id)
{
	ncclComm_t comms[4];

	cr_assert_eq(cw_impl_ncclCommInitAll(&fake, NULL, comms, 4, NULL), ncclSuccess);
	for (int i = 1; i < 4; i++)
		cr_assert_eq(entry(comms[i])->comm_id, entry(comms[0])->comm_id);
}

Test(agent, takes_the_name_only_from_a_config_that_has_one)
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

Test(agent, reuses_the_entry_that_ended_longest_ago)
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

Test(agent, notes_an_async_error_and_an_abort)
{
	ncclComm_t comm = init(1);
	struct cw_rec_comm *rc = entry(comm);
	ncclResult_t state;

	answer = 6;
	cw_impl_ncclCommGetAsyncError(&fake, NULL, comm, &state);
	cr_assert_eq(rc->async_error, 6);
	answer = ncclSuccess;
	cw_impl_ncclCommAbort(&fake, NULL, comm);
	cr_assert_eq(rc->state, CW_COMM_ABORTED);
	cr_assert_lt(cw_comm_find(comm), 0);
}

Test(agent, answers_for_a_function_nccl_lacks)
{
	static const struct cw_real empty;

	cr_assert_eq(cw_impl_ncclAllReduce(&empty, NULL, NULL, NULL, 1, 0, 0, NULL, NULL),
		     ncclInvalidUsage);
	cr_assert_eq(cw_impl_ncclCommCount(&empty, NULL, NULL, NULL), ncclInvalidUsage);
	cr_assert_not_null(cw_impl_ncclGetErrorString(&empty, NULL, 0));
	cr_assert_eq(cw_impl_ncclTeamWorld(&empty, NULL, NULL).nRanks, 0);
}

Test(agent, ignores_calls_from_inside_nccl)
{
	ncclComm_t comm = init(1);

	fake.code_start = 0x1000;
	fake.code_end = 0x2000;
	cw_impl_ncclAllReduce(&fake, (void *)0x1800, NULL, NULL, 1, 7, 0, comm, NULL);
	cr_assert_eq(entry(comm)->coll_returned, 0);
	cw_impl_ncclAllReduce(&fake, (void *)0x2000, NULL, NULL, 1, 7, 0, comm, NULL);
	cr_assert_eq(entry(comm)->coll_returned, 1);
}
