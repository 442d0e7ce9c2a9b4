/* SPDX-License-Identifier: Apache-2.0 */
/* What the network connections of a collective tell that all have entered and none can finish. */
#include <criterion/criterion.h>

#include "analysis/connections/connection_judge.h"
#include "analysis/verdict.h"
#include "model/facts.h"
#include "say/english.h"
#include "tests/support/snapshot/snap_builder.h"

#define N 4
#define STEPS 48

static struct sb *b;
static struct cw_snapshot *snap;
static struct cw_verdict verdict;
static struct cw_snap_connection rows[N][2]; /* of a ring: to the next rank, from the one before */

static void set_edge(uint32_t from, uint32_t posted, uint32_t ready, uint32_t handed, uint32_t done)
{
	struct cw_snap_connection *row = &rows[from][0];

	row->posted = posted;
	row->ready = ready;
	row->handed = handed;
	row->done = done;
}

static void set_received(uint32_t by, uint32_t posted, uint32_t received, uint32_t done)
{
	struct cw_snap_connection *row = &rows[by][1];

	row->posted = posted;
	row->ready = received;
	row->handed = received;
	row->done = done;
}

/* An edge whose data have all been consumed, and whose receiver waits for more. */
static void set_idle(uint32_t from, uint32_t n)
{
	set_edge(from, n + 8, n, n, n);
	set_received((from + 1) % N, n + 8, n, n);
}

/* A ring of four ranks on four nodes stands in an all_reduce that all have entered. */
static void set_up(void)
{
	struct sb_comm *c;

	b = sb_new(N, N);
	sb_clear_comms(b);
	c = sb_comm(b, "dp", 0, N, 1, 41);
	sb_all_wait_but(c, SB_MAX_RANKS, 30 * SB_S);
	snap = sb_snapshot(b);
	for (uint32_t m = 0; m < N; m++) {
		snap->ranks[m].sampled_ns = snap->now_ns;
		for (unsigned side = 0; side < 2; side++)
			rows[m][side] = (struct cw_snap_connection){
				.peer = (m + (side ? N - 1 : 1)) % N,
				.flags = CW_CONNECTION_DETAILED | (side ? 0 : CW_CONNECTION_SEND),
				.seq = 42,
				.open_ops = 1,
				.steps = STEPS,
				.moved_ns = snap->now_ns - 9 * SB_S,
				.same_since_ns = snap->now_ns - 8 * SB_S,
			};
		snap->comms[0].members[m].connections = rows[m];
		snap->comms[0].members[m].n_connections = 2;
	}
	/* Rank 2 is the first that waits for data, and rank 1 the last. */
	for (uint32_t i = 0; i < N; i++)
		set_idle((i + 2) % N, 9 + i);
}

static void tear_down(void)
{
	cw_verdict_fini(&verdict);
	snap = cw_snapshot_free(snap);
	sb_free(b);
}

TestSuite(verdict_connections, .init = set_up, .fini = tear_down);

static const struct cw_verdict *judge(void)
{
	cw_verdict_fini(&verdict);
	cr_assert_eq(cw_verdict_compute(snap, &verdict), 0);
	cr_assert_eq(verdict.verdict_class, CW_CLASS_IN_COLLECTIVE);
	return &verdict;
}

static const char *text(void)
{
	static char buf[CW_VERDICT_TEXT_MAX];

	return cw_say_text(&verdict.said, buf, sizeof(buf));
}

/* Rank 1's socket to rank 2 takes no more: eight steps are handed over and not confirmed. */
static void break_sender(void)
{
	set_edge(1, 16, 16, 16, 8);
	set_received(2, 16, 8, 8);
}

static void assert_edge(uint32_t from, uint32_t to, enum cw_link_side side)
{
	cr_assert_eq(verdict.detail, CW_DETAIL_CONNECTION);
	cr_assert(verdict.link.is_set);
	cr_assert_eq(verdict.link.sender, from);
	cr_assert_eq(verdict.link.receiver, to);
	cr_assert_eq(verdict.link.side, side);
}

Test(verdict_connections, names_the_edge_whose_data_are_not_confirmed)
{
	break_sender();
	cr_assert_eq(judge()->confidence, CW_CONFIDENCE_CERTAIN);
	assert_edge(1, 2, CW_LINK_SIDE_SENDER);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "1-2");
	cr_assert_str_eq(
		text(),
		"the connection rank 1 on node-b → rank 2 on node-c, channel 0, moves no data "
		"of all_reduce #42 on dp. The other 2 ranks have been waiting in it for 30 s. "
		"Not the program: check the network between node-b and node-c, the sender's "
		"side first.");
}

/* Rank 3's socket from rank 2 yields nothing: the sender's kernel took the data. */
Test(verdict_connections, names_the_edge_whose_confirmed_data_do_not_arrive)
{
	set_edge(2, 24, 16, 16, 16);
	set_received(3, 8, 0, 0);
	cr_assert_eq(judge()->confidence, CW_CONFIDENCE_CERTAIN);
	assert_edge(2, 3, CW_LINK_SIDE_RECEIVER);
}

Test(verdict_connections, names_the_edge_whose_credit_is_lost)
{
	set_edge(1, 20, 20, 12, 12);
	(void)judge();
	assert_edge(1, 2, CW_LINK_SIDE_SENDER);
}

Test(verdict_connections, names_the_gpu_that_leaves_data_in_its_buffer)
{
	/* The kernel of rank 2 was not launched: rank 1 has sent what it could. */
	set_edge(1, 11, 3, 3, 3);
	set_received(2, 8, 3, 0);
	set_idle(2, 0);
	set_idle(3, 1);
	set_idle(0, 2);
	cr_assert_eq(judge()->confidence, CW_CONFIDENCE_CERTAIN);
	cr_assert_eq(verdict.detail, CW_DETAIL_GPU_NOT_CONSUMING);
	cr_assert_not(verdict.link.is_set);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "2");
}

/* Sockets confirm at once, and the receiver's buffers are full: the link is sound. */
Test(verdict_connections, does_not_take_a_full_receiver_for_a_broken_link)
{
	set_edge(1, 20, 20, 20, 12);
	set_received(2, 8, 8, 0);
	set_idle(2, 0);
	set_idle(3, 1);
	set_idle(0, 2);
	cr_assert_eq(judge()->detail, CW_DETAIL_GPU_NOT_CONSUMING);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "2");
}

Test(verdict_connections, names_the_gpu_that_does_not_begin)
{
	set_idle(1, 0);
	set_idle(2, 0);
	set_edge(2, 9, 1, 1, 1);
	set_received(3, 9, 1, 1);
	set_edge(3, 10, 2, 2, 2);
	set_received(0, 10, 2, 2);
	set_edge(0, 11, 3, 3, 3);
	set_received(1, 11, 3, 3);
	/* Rank 1 has consumed all that came, and has never sent its own first step. */
	cr_assert_eq(judge()->detail, CW_DETAIL_GPU_NOT_PRODUCING);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "1");
}

Test(verdict_connections, accuse_nobody_after_less_than_two_seconds)
{
	break_sender();
	for (uint32_t m = 0; m < N; m++)
		for (unsigned side = 0; side < 2; side++)
			rows[m][side].same_since_ns = snap->now_ns - CONNECTION_STANDS_NS + 1;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE);
	cr_assert_eq(verdict.n_culprits, 0);
}

Test(verdict_connections, count_only_the_time_between_readings)
{
	break_sender();
	/* The daemon of rank 2 has not read its rank since. */
	snap->ranks[2].sampled_ns = rows[2][1].same_since_ns;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE);
}

Test(verdict_connections, accuse_nobody_while_others_move)
{
	break_sender();
	rows[0][0].same_since_ns = snap->now_ns - SB_S;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE);
}

Test(verdict_connections, are_less_sure_if_some_are_lost)
{
	break_sender();
	snap->ranks[3].connections_lost = 1;
	cr_assert_eq(judge()->confidence, CW_CONFIDENCE_LIKELY);
	assert_edge(1, 2, CW_LINK_SIDE_SENDER);
}

Test(verdict_connections, say_nothing_if_a_member_is_stopped)
{
	break_sender();
	snap->ranks[2].liveness = CW_LIVE_STOPPED;
	cr_assert_eq(judge()->detail, CW_DETAIL_STOPPED);
	cr_assert_not(verdict.link.is_set);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "2");
}

Test(verdict_connections, need_both_ends)
{
	break_sender();
	snap->comms[0].members[2].n_connections = 1;
	cr_assert_eq(judge()->link.is_set, false);
}

Test(verdict_connections, compare_only_one_op)
{
	/* The receiver has finished the op and waits in the next one: the sender does not know. */
	set_edge(1, STEPS, STEPS, STEPS, STEPS - 8);
	rows[2][1].seq = 43;
	set_received(2, 8, 0, 0);
	(void)judge();
	assert_edge(1, 2, CW_LINK_SIDE_SENDER);
}

Test(verdict_connections, ignore_impossible_rows)
{
	break_sender();
	rows[1][0].peer = N;
	rows[2][1].handed = STEPS + 1;
	cr_assert_eq(judge()->link.is_set, false);
}

/* A send that hangs beside the collective has an edge of its own. */
Test(verdict_connections, of_messages_do_not_explain_a_collective)
{
	break_sender();
	rows[1][0].flags |= CW_CONNECTION_P2P;
	rows[2][1].flags |= CW_CONNECTION_P2P;
	cr_assert_eq(judge()->link.is_set, false);
}

/* Puts the member inside its only message. */
static void make_message(uint32_t member, unsigned kind, uint32_t peer, struct cw_p2p_peer *count)
{
	struct cw_snap_member *m = &snap->comms[0].members[member];

	m->pending->kind = (uint8_t)kind;
	m->pending->peer = (int32_t)peer;
	m->pending->coll_seq = 0;
	m->pending->p2p_seq = 1;
	m->pending->progress = CW_PROGRESS_REACHED;
	*m->last = *m->pending;
	*count = (struct cw_p2p_peer){ .peer = peer };
	*(kind == CW_OP_SEND ? &count->sends : &count->recvs) = 1;
	m->known |= CW_KNOWN_P2P;
	m->p2p = count;
	m->n_p2p = 1;
}

Test(verdict_connections, name_the_edge_of_a_message)
{
	struct cw_p2p_peer sends, recvs;

	break_sender();
	for (unsigned side = 0; side < 2; side++) {
		rows[1 + side][side].flags |= CW_CONNECTION_P2P;
		rows[1 + side][side].seq = 1;
	}
	for (uint32_t m = 0; m < N; m++) {
		struct cw_snap_member *member = &snap->comms[0].members[m];

		member->coll_entered = member->coll_reached = 41;
		member->coll_returned = member->coll_completed = 41;
		if (m != 1 && m != 2)
			member->pending = NULL;
	}
	make_message(1, CW_OP_SEND, 2, &sends);
	make_message(2, CW_OP_RECV, 1, &recvs);
	(void)judge();
	assert_edge(1, 2, CW_LINK_SIDE_SENDER);
}

/* One link takes a second for a step, and the others none. */
Test(verdict_connections, name_a_slow_connection)
{
	break_sender();
	for (uint32_t m = 0; m < N; m++) {
		rows[m][0].held_ns = m == 1 ? 8 * SB_S : SB_S / 100;
		for (unsigned side = 0; side < 2; side++)
			rows[m][side].same_since_ns = snap->now_ns - SB_S / 2;
	}
	rows[1][0].bytes_per_s = 524288;
	cr_assert_eq(judge()->detail, CW_DETAIL_SLOW_CONNECTION);
	cr_assert_eq(verdict.confidence, CW_CONFIDENCE_LIKELY);
	cr_assert_eq(verdict.link.sender, 1);
	cr_assert_eq(verdict.link.held_ns, SB_S);
	cr_assert_str_eq(
		text(),
		"the connection rank 1 on node-b → rank 2 on node-c, channel 0, is slow in "
		"all_reduce #42 on dp: a step waits 1.0 s in it, and it carries 524288 "
		"bytes/s. The other 2 ranks have been waiting in it for 30 s. Not the program: "
		"check the network between node-b and node-c.");
	for (uint32_t m = 0; m < N; m++)
		rows[m][0].held_ns = m == 1 ? 8 * SB_S : SB_S / 5;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE, "five times as slow is not ten times");
}

/* Rank 1's link to rank 2 takes a second for a step. All data wait before it, none behind it. */
static void slow_down_alone(void)
{
	break_sender();
	set_edge(0, 24, 24, 24, 24);
	set_received(1, 24, 24, 16);
	set_edge(3, 32, 32, 32, 32);
	set_received(0, 32, 32, 24);
	set_idle(2, 0);
	for (uint32_t m = 0; m < N; m++)
		for (unsigned side = 0; side < 2; side++)
			rows[m][side].same_since_ns = snap->now_ns - SB_S / 2;
	rows[1][0].held_ns = 8 * SB_S;
}

Test(verdict_connections, name_a_slow_connection_that_the_others_wait_for)
{
	slow_down_alone();
	cr_assert_eq(judge()->detail, CW_DETAIL_SLOW_CONNECTION);
	cr_assert_eq(verdict.link.sender, 1);
	rows[1][0].held_ns = 8 * SB_S / 20;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE, "50 ms may be usual in this network");
	slow_down_alone();
	set_idle(3, 0);
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE, "only one connection waits");
}

/* Sockets confirm data that have not arrived. */
Test(verdict_connections, accuse_no_connection_if_another_is_as_slow)
{
	slow_down_alone();
	set_edge(1, 16, 16, 16, 12);
	cr_assert_eq(judge()->detail, CW_DETAIL_SLOW_CONNECTION);
	set_edge(2, 20, 20, 20, 16);
	set_received(3, 20, 12, 12);
	rows[2][0].held_ns = 4 * SB_S;
	cr_assert_eq(judge()->detail, CW_DETAIL_NONE);
}

/* NVIDIA/nccl#2353: the call waits for a place in the proxy's pool. */
Test(verdict_connections, name_the_rank_whose_call_has_not_reached_its_proxy)
{
	for (uint32_t m = 0; m < N; m++)
		set_idle(m, 0);
	set_edge(1, 8, 8, 0, 0);
	snap->comms[0].members[2].pending->flags &= (uint16_t)~CW_OPF_RETURNED;
	snap->comms[0].members[2].n_connections = 0;
	cr_assert_eq(judge()->detail, CW_DETAIL_NOT_IN_PROXY);
	cr_assert_str_eq(sb_culprits(snap, &verdict), "2");
}

/* ---- known hangs: version and signature must fit ---- */

static void set_nccl(uint32_t version, uint32_t machine)
{
	for (uint32_t i = 0; i < N; i++) {
		snap->ranks[i].nccl_version = version;
		snap->ranks[i].machine = machine;
	}
}

static void assert_known(const char *name)
{
	(void)judge();
	if (!name) {
		cr_assert_eq(verdict.n_known_hangs, 0, "%s", verdict.known_hangs[0].name);
		return;
	}
	cr_assert_eq(verdict.n_known_hangs, 1);
	cr_assert_str_eq(verdict.known_hangs[0].name, name);
}

Test(verdict_connections, an_exhausted_pool_is_known_of_some_versions_on_one_machine)
{
	char buf[512];

	for (uint32_t m = 0; m < N; m++)
		set_idle(m, 0);
	set_edge(1, 8, 8, 0, 0);
	snap->comms[0].members[2].pending->flags &= (uint16_t)~CW_OPF_RETURNED;
	snap->comms[0].members[2].n_connections = 0;
	set_nccl(22809, CW_MACHINE_AARCH64);
	assert_known("NVIDIA/nccl#2353");
	cr_assert_str_eq(verdict.known_hangs[0].fixed_in, "2.29.3");
	cr_assert_str_eq(cw_say_text(&verdict.also_said[0], buf, sizeof(buf)),
			 "this hang fits NVIDIA/nccl#2353, a known fault of NCCL 2.28.9, which "
			 "version 2.29.3 fixes");
	set_nccl(22809, CW_MACHINE_X86_64);
	assert_known(NULL);
	set_nccl(22903, CW_MACHINE_AARCH64);
	assert_known(NULL);
	set_nccl(22809, CW_MACHINE_AARCH64);
	snap->ranks[3].nccl_version = 22903;
	assert_known(NULL);
}

/* The version of a known hang alone proves nothing. */
Test(verdict_connections, a_version_without_its_signature_is_not_cited)
{
	set_nccl(22809, CW_MACHINE_AARCH64);
	break_sender();
	assert_known(NULL);
	set_nccl(23102, CW_MACHINE_X86_64);
	assert_known(NULL);
}

Test(verdict_connections, a_receiver_that_posts_nothing_is_known_of_one_version)
{
	set_edge(1, 16, 16, 8, 8);
	set_received(2, 8, 8, 8);
	set_nccl(23102, CW_MACHINE_X86_64);
	assert_known("NVIDIA/nccl#2389");
	assert_edge(1, 2, CW_LINK_SIDE_RECEIVER);
	set_nccl(23207, CW_MACHINE_X86_64);
	assert_known(NULL);
}

Test(verdict_connections, a_graph_of_several_nodes_is_known_of_one_version)
{
	break_sender();
	set_nccl(22809, CW_MACHINE_AARCH64);
	rows[0][0].replay = 7;
	assert_known("vllm-project/vllm#52504");
	for (uint32_t i = 0; i < N; i++)
		snap->ranks[i].node = 0;
	assert_known(NULL);
}

Test(verdict_connections, pxn_is_known_of_some_versions_unless_it_is_disabled)
{
	break_sender();
	set_nccl(22907, CW_MACHINE_X86_64);
	rows[1][0].flags |= CW_CONNECTION_FOREIGN;
	assert_known(NULL);
	for (uint32_t i = 0; i < N; i++)
		snap->ranks[i].nccl_variables = "none";
	assert_known("cuBLASMp's known issues");
	for (uint32_t i = 0; i < N; i++)
		snap->ranks[i].nccl_variables = "NCCL_DEBUG=INFO NCCL_PXN_DISABLE=1";
	assert_known(NULL);
}
