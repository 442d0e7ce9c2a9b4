/* SPDX-License-Identifier: Apache-2.0 */
/* The text of an alert, class by class, as the engineer on call reads it. */
#include <criterion/criterion.h>
#include <string.h>

#include "model/cause.h"
#include "record/record_layout.h"
#include "tests/support/report/for_people.h"
#include "tests/support/snapshot/said_text.h"
#include "tests/support/snapshot/verdict_fixture.h"

TestSuite(sentences, .init = verdict_setup, .fini = verdict_teardown);

static void says(unsigned verdict_class, const char *sentence)
{
	cr_expect_eq(v.verdict_class, verdict_class, "%s: %s", cw_class_name(v.verdict_class),
		     said_text(&v.said));
	cr_expect_str_eq(said_text(&v.said), sentence);
	for_people(said_text(&v.said));
	cr_expect(said_text(&v.said)[strlen(said_text(&v.said)) - 1] == '.', "%s",
		  said_text(&v.said));
	for (uint32_t i = 0; i < v.n_culprits; i++)
		for_people(said_text(&v.culprits[i].said));
	for (uint32_t i = 0; i < v.n_ruled_out; i++)
		for_people(said_text(&v.ruled_out_said[i]));
}

static void again(void)
{
	cw_verdict_fini(&v);
	cr_assert_eq(cw_verdict_compute(snap, &v), 0);
}

Test(sentences, of_a_rank_that_never_came)
{
	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 10 * SB_S);
	judge();
	says(CW_CLASS_NEVER_ENTERED,
	     "rank 3 (node-a, pid 803) never reached all_reduce #31 on tp. The other 7 ranks have "
	     "been waiting for it for 10 s.");
}

Test(sentences, of_a_rank_in_a_pod)
{
	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 10 * SB_S);
	b->ranks[3].pod = "train-3";
	b->ranks[3].pod_namespace = "ml";
	b->ranks[3].own_pid = 17;
	judge();
	says(CW_CLASS_NEVER_ENTERED,
	     "rank 3 (pod ml/train-3, pid 17 there; node-a, pid 803) never reached all_reduce #31 "
	     "on tp. The other 7 ranks have been waiting for it for 10 s.");
}

Test(sentences, of_a_rank_that_some_wait_for)
{
	sb_all_wait_but(sb_comm(b, "tp", 2, 2, 1, 30), 1, 10 * SB_S);
	judge();
	says(CW_CLASS_NEVER_ENTERED, "rank 3 (node-a, pid 803) never reached all_reduce #31 on tp. "
				     "Rank 2 has been waiting for it for 10 s.");
}

static void share_a_process(uint32_t rank, uint32_t other)
{
	b->ranks[other].pid = b->ranks[rank].pid;
	b->ranks[other].start_ticks = b->ranks[rank].start_ticks = 7;
}

/* Two devices of one process that does not go on: each is waited for in a comm of its own. */
Test(sentences, of_ranks_of_a_process_that_are_missing_in_several_comms)
{
	sb_all_wait_but(sb_comm(b, "tp0", 0, 2, 2, 30), 1, 10 * SB_S);
	sb_all_wait_but(sb_comm(b, "tp1", 1, 2, 2, 30), 1, 10 * SB_S);
	share_a_process(2, 3);
	judge();
	says(CW_CLASS_NEVER_ENTERED,
	     "rank 2 (node-a, pid 802) never reached all_reduce #31 on tp0; rank 3 is missing "
	     "from a call on another communicator. Ranks 0-1 have been waiting for them for 10 s.");
}

Test(sentences, of_a_stopped_rank)
{
	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 10 * SB_S);
	b->ranks[3].liveness = CW_LIVE_STOPPED;
	b->ranks[3].cause = "stopped by SIGSTOP sent by bash (pid 31224, root)";
	judge();
	says(CW_CLASS_NEVER_ENTERED,
	     "rank 3 (node-a, pid 803) is stopped by SIGSTOP sent by bash (pid 31224, root) and "
	     "never reached all_reduce #31 on tp. The other 7 ranks have been waiting for it for "
	     "10 s.");
}

Test(sentences, of_what_a_rank_last_did)
{
	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 10 * SB_S);
	b->ranks[3].host_activity_ns = SB_NOW - 98 * SB_S / 10;
	b->ranks[3].host_activity_by = "cpu";
	judge();
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "; last used CPU 9.8 s ago"),
			   "%s", said_text(&v.culprits[0].said));
	for_people(said_text(&v.culprits[0].said));
}

/* Its daemon began after it did: its earlier activity is unknown. */
Test(sentences, of_a_rank_that_was_never_seen_at_work)
{
	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 84 * SB_S);
	b->ranks[3].host_activity_ns = SB_NOW - 60 * SB_S;
	b->ranks[3].host_activity_by = "";
	judge();
	cr_expect_not_null(strstr(said_text(&v.culprits[0].said), "; has been idle for 60 s"), "%s",
			   said_text(&v.culprits[0].said));
	for_people(said_text(&v.culprits[0].said));
}

/* The kind of its sleep decides when we page, so the sentence names it. */
Test(sentences, of_what_a_rank_sleeps_in)
{
	static const struct {
		unsigned wait;
		const char *says;
	} cases[] = {
		{ CW_HOST_WAIT_LOCK,
		  "; it waits for another of its threads, and no thread is running" },
		{ CW_HOST_WAIT_GIL, "; it waits for Python's interpreter lock (GIL)" },
		{ CW_HOST_WAIT_QUEUE, "; it waits for a pipe, a condition variable or a timer" },
		{ CW_HOST_WAIT_SOCKET, "; it waits for a socket" },
		{ CW_HOST_WAIT_TTY, "; it waits for input from a terminal" },
		{ CW_HOST_WAIT_STORAGE, "; it waits for storage, and no data is moving" },
	};

	sb_all_wait_but(sb_comm(b, "tp", 0, 8, 1, 30), 3, 84 * SB_S);
	b->ranks[3].host_activity_ns = SB_NOW - 60 * SB_S;
	b->ranks[3].host_activity_by = "";
	judge();
	cr_expect_null(strstr(said_text(&v.culprits[0].said), "waits for"), "%s",
		       said_text(&v.culprits[0].said));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		b->ranks[3].host_wait = cases[i].wait;
		judge();
		cr_expect_not_null(strstr(said_text(&v.culprits[0].said), cases[i].says), "%s",
				   said_text(&v.culprits[0].said));
		for_people(said_text(&v.culprits[0].said));
	}
	b->ranks[3].host_activity_ns = SB_NOW;
	b->ranks[3].host_activity_by = "cpu";
	judge();
	cr_expect_null(strstr(said_text(&v.culprits[0].said), "waits for"), "it works: %s",
		       said_text(&v.culprits[0].said));
}

Test(sentences, of_a_dead_rank)
{
	sb_all_wait_but(sb_comm(b, "dp", 0, 8, 1, 120), 3, 4 * SB_S);
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].term_signal = 9;
	b->ranks[3].cause = "OOM-killed (cgroup limit of 256 MiB reached, 250 MiB resident)";
	judge();
	says(CW_CLASS_PROCESS_DEAD,
	     "rank 3 (node-a, pid 803) was OOM-killed (cgroup limit of 256 MiB reached, 250 MiB "
	     "resident) before it could enter all_reduce #121 on dp. The other 7 ranks have been "
	     "waiting for it for 4.0 s.");
}

Test(sentences, of_a_rank_that_killed_itself)
{
	sb_all_wait_but(sb_comm(b, "dp", 0, 8, 1, 120), 3, 4 * SB_S);
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].term_signal = 9;
	b->ranks[3].cause_kind = CW_CAUSE_KILLED;
	b->ranks[3].cause_by = CW_END_BY_ITSELF;
	b->ranks[3].cause_signal = 9;
	judge();
	says(CW_CLASS_PROCESS_DEAD,
	     "rank 3 (node-a, pid 803) killed itself (SIGKILL sent by its own pid) before it could "
	     "enter all_reduce #121 on dp. The other 7 ranks have been waiting for it for 4.0 s.");
}

Test(sentences, of_several_dead_ranks)
{
	struct sb_comm *c = sb_comm(b, "dp", 0, 8, 1, 120);

	sb_all_wait_but(c, 3, 4 * SB_S);
	c->members[5] = c->members[3];
	c->members[5].rank = 5;
	b->ranks[3].liveness = b->ranks[5].liveness = CW_LIVE_KILLED;
	b->ranks[3].term_signal = b->ranks[5].term_signal = 9;
	judge();
	says(CW_CLASS_PROCESS_DEAD, "ranks 3,5 were killed by SIGKILL before they could enter "
				    "all_reduce #121 on dp. The other 6 ranks have "
				    "been waiting for them for 4.0 s.");
	b->ranks[3].cause = b->ranks[5].cause =
		"killed by SIGKILL sent by slurmstepd (pid 7, root)";
	judge();
	cr_expect_not_null(strstr(said_text(&v.said),
				  "ranks 3,5 were killed by SIGKILL sent by slurmstepd "
				  "(pid 7, root) before they could"),
			   "%s", said_text(&v.said));
	b->ranks[5].cause = "killed by SIGKILL sent by bash (pid 8, root)";
	judge();
	cr_expect_not_null(strstr(said_text(&v.said), "ranks 3,5 ended before they could"), "%s",
			   said_text(&v.said));
	b->ranks[3].cause_kind = b->ranks[5].cause_kind = CW_CAUSE_KILLED;
	b->ranks[3].cause_by = b->ranks[5].cause_by = CW_END_BY_ITSELF;
	b->ranks[3].cause_signal = b->ranks[5].cause_signal = 6;
	judge();
	cr_expect_not_null(strstr(said_text(&v.said), "ranks 3,5 ended before they could"), "%s",
			   said_text(&v.said));
}

Test(sentences, of_a_lost_node)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 132);

	for (uint32_t m = 4; m < 8; m++)
		sb_waits(c, m, 17 * SB_S);
	b->node_state[0] = CW_NODE_UNREACHABLE;
	judge();
	snap->nodes[0].last_digest_ns = SB_NOW - 18 * SB_S;
	again();
	says(CW_CLASS_NODE_UNREACHABLE,
	     "node-a (ranks 0-3) has not been heard from for 18 s. The other 4 ranks have been "
	     "waiting in all_reduce #133 on world for 17 s.");
}

Test(sentences, of_ranks_that_wait_behind_those_who_wait_for_a_lost_node)
{
	struct sb_comm *stage = sb_comm(b, "stage", 0, 6, 1, 132);
	struct sb_comm *row = sb_comm(b, "row", 5, 3, 1, 50);

	sb_waits(stage, 4, 17 * SB_S);
	sb_waits(stage, 5, 17 * SB_S);
	sb_waits(row, 1, 16 * SB_S);
	sb_waits(row, 2, 16 * SB_S);
	b->node_state[0] = CW_NODE_UNREACHABLE;
	judge();
	snap->nodes[0].last_digest_ns = SB_NOW - 18 * SB_S;
	again();
	says(CW_CLASS_NODE_UNREACHABLE,
	     "node-a (ranks 0-3) has not been heard from for 18 s. The other 4 ranks have been "
	     "waiting in all_reduce #133 on stage or behind it for 17 s.");
}

Test(sentences, of_ranks_that_wait_for_a_lost_node_each_in_a_pair_of_its_own)
{
	for (uint32_t first = 0; first < 4; first++)
		sb_waits(sb_comm(b, "pair", first, 2, 4, 132), 1, 17 * SB_S);
	b->node_state[0] = CW_NODE_UNREACHABLE;
	judge();
	snap->nodes[0].last_digest_ns = SB_NOW - 18 * SB_S;
	again();
	says(CW_CLASS_NODE_UNREACHABLE,
	     "node-a (ranks 0-3) has not been heard from for 18 s. The other 4 ranks have been "
	     "waiting in all_reduce #133 on pair or on another communicator for 17 s.");
}

/* The last of the others got out 4 s ago: until then the call moved, and rank 0 was in it for 20 s.
 */
Test(sentences, of_a_call_that_moved_after_its_members_had_come)
{
	struct sb_comm *c = sb_comm(b, "dp", 0, 4, 1, 121);

	c->members[0].entered = c->members[0].returned = c->members[0].completed = 120;
	c->members[0].reached = 120;
	sb_waits(c, 0, 20 * SB_S);
	judge();
	for (uint32_t m = 1; m < 4; m++)
		snap->comms[0].members[m].progress_ns = SB_NOW - (3 + m) * SB_S;
	again();
	says(CW_CLASS_IN_COLLECTIVE, "rank 0 has not finished all_reduce #121 on dp; 3 of its 4 "
				     "members have completed this "
				     "call, and it has made no progress for 4.0 s. Not the "
				     "program: check network, GPUs and "
				     "NCCL on node-a (rank 0).");
}

/* Its call came back, and the device had not done it. */
Test(sentences, of_a_rank_that_died_with_the_call_on_its_way)
{
	struct sb_comm *c = sb_comm(b, "dp", 0, 8, 1, 120);

	sb_all_wait_but(c, 3, 4 * SB_S);
	sb_waits(c, 3, 4 * SB_S);
	c->members[3].reached = 120;
	b->ranks[3].liveness = CW_LIVE_KILLED;
	b->ranks[3].term_signal = 9;
	judge();
	says(CW_CLASS_PROCESS_DEAD,
	     "rank 3 (node-a, pid 803) was killed by SIGKILL before it could finish all_reduce "
	     "#121 on dp. The other 7 ranks have been waiting for it for 4.0 s.");
}

static void differs(void (*change)(struct cw_op *op), const char *sentence)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 63);

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	change(sb_odd(c, 3, 64));
	judge();
	says(CW_CLASS_MISMATCH, sentence);
}

static void other_kind(struct cw_op *op)
{
	op->kind = CW_OP_ALL_GATHER;
}

static void other_count(struct cw_op *op)
{
	op->count = 999;
	op->bytes = 3996;
}

static void other_type(struct cw_op *op)
{
	op->dtype = CW_DTYPE_INT32;
}

static void other_operator(struct cw_op *op)
{
	op->redop = CW_REDOP_MAX;
}

Test(sentences, of_another_call)
{
	differs(other_kind, "rank 3 (node-a, pid 803) called all_gather as #64 on world; the other "
			    "7 ranks called all_reduce.");
}

Test(sentences, of_another_count)
{
	differs(other_count, "rank 3 (node-a, pid 803) called all_reduce #64 on world with count "
			     "999; the other 7 ranks called it with count 1024.");
}

Test(sentences, of_another_type)
{
	differs(other_type, "rank 3 (node-a, pid 803) called all_reduce #64 on world with type "
			    "int32; the other 7 ranks called it with type fp32.");
}

Test(sentences, of_another_operator)
{
	differs(other_operator, "rank 3 (node-a, pid 803) called all_reduce #64 on world with "
				"operator max; the other 7 ranks called it with operator sum.");
}

Test(sentences, of_a_split_vote)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 63);

	sb_all_wait_but(c, SB_MAX_RANKS, 2 * SB_S);
	for (uint32_t m = 4; m < 8; m++)
		other_operator(sb_odd(c, m, 64));
	judge();
	says(CW_CLASS_MISMATCH,
	     "the ranks of world disagree on call #64: ranks 0-3 called all_reduce #64 fp32 x 1024 "
	     "sum, ranks 4-7 called all_reduce #64 fp32 x 1024 max (redop differs).");
}

Test(sentences, of_a_deadlock)
{
	sb_waits(sb_comm(b, "dp", 0, 2, 1, 10), 0, 5 * SB_S);
	sb_waits(sb_comm(b, "tp", 0, 2, 1, 20), 1, 5 * SB_S);
	judge();
	says(CW_CLASS_DEADLOCK, "deadlock: rank 0 waits in all_reduce #11 on dp for rank 1, which "
				"waits in all_reduce #21 on tp for rank 0.");
}

static struct cw_op *posts(struct sb_comm *c, uint32_t member, unsigned kind, uint32_t peer)
{
	struct cw_op *op = sb_call(c, member, kind, 24 * SB_S / 10);
	struct sb_member *m = &c->members[member];

	op->peer = (int32_t)peer;
	op->p2p_seq = 31;
	op->progress = CW_PROGRESS_REACHED;
	op->flags = CW_OPF_RETURNED;
	m->p2p[m->n_p2p++] = (struct cw_p2p_peer){ .peer = peer,
						   .sends = kind == CW_OP_SEND ? 31 : 0,
						   .recvs = kind == CW_OP_RECV ? 31 : 0 };
	return op;
}

Test(sentences, of_a_send_without_its_receive)
{
	(void)posts(sb_comm(b, "pp", 0, 4, 1, 0), 2, CW_OP_SEND, 3);
	judge();
	says(CW_CLASS_P2P_UNMATCHED, "rank 2 has been sending to rank 3 (node-a, pid 803) on pp "
				     "(#31) for 2.4 s, but rank 3 "
				     "never posted the matching recv.");
}

Test(sentences, of_a_receive_without_its_send)
{
	(void)posts(sb_comm(b, "pp", 0, 4, 1, 0), 2, CW_OP_RECV, 3);
	judge();
	says(CW_CLASS_P2P_UNMATCHED,
	     "rank 2 has been receiving from rank 3 (node-a, pid 803) on pp (#31) for 2.4 s, but "
	     "rank 3 never posted the matching send.");
}

/* We know the group by its send; the wait is for the peer of its receive. */
Test(sentences, of_a_group_with_a_receive_without_its_send)
{
	struct sb_comm *pp = sb_comm(b, "pp", 0, 4, 1, 0);
	struct cw_op *op = posts(pp, 2, CW_OP_SEND, 1);
	struct sb_member *m = &pp->members[2];

	(void)posts(pp, 1, CW_OP_RECV, 2);
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	m->newest = *op;
	m->newest.kind = CW_OP_RECV;
	m->newest.peer = 3;
	m->newest.op_index++;
	m->p2p[m->n_p2p++] = (struct cw_p2p_peer){ .peer = 3, .recvs = 31 };
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_P2P_UNMATCHED);
	cr_expect_not_null(strstr(said_text(&v.said), "rank 2 has been receiving from rank 3 "),
			   "%s", said_text(&v.said));
	for_people(said_text(&v.said));
}

/* The oldest message of the group has its counterpart: the rank waits for another one's. */
Test(sentences, of_a_deadlock_with_a_group_of_messages)
{
	struct sb_comm *pp = sb_comm(b, "pp", 0, 4, 1, 0);
	struct cw_op *op = posts(pp, 2, CW_OP_SEND, 1);
	struct sb_member *m = &pp->members[2];

	(void)posts(pp, 1, CW_OP_RECV, 2);
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	m->newest = *op;
	m->newest.kind = CW_OP_RECV;
	m->newest.peer = 3;
	m->newest.op_index++;
	m->p2p[m->n_p2p++] = (struct cw_p2p_peer){ .peer = 3, .recvs = 31 };
	sb_waits(sb_comm(b, "world", 2, 2, 1, 63), 1, 2 * SB_S);
	judge();
	says(CW_CLASS_DEADLOCK,
	     "deadlock: rank 2 waits in recv #31 from rank 3 on pp for rank 3, which waits in "
	     "all_reduce #64 on world for rank 2.");
}

/* One group has both halves with the same peer, which has posted the counterpart of the send. */
Test(sentences, of_a_group_whose_peer_receives_and_sends_nothing)
{
	struct sb_comm *pp = sb_comm(b, "pp", 0, 4, 1, 0);
	struct cw_op *op = posts(pp, 2, CW_OP_SEND, 3);
	struct sb_member *m = &pp->members[2];

	pp->members[3].p2p[pp->members[3].n_p2p++] =
		(struct cw_p2p_peer){ .peer = 2, .recvs = 31, .sends = 30 };
	op->flags |= CW_OPF_GROUPED;
	op->group_id = 7;
	m->newest = *op;
	m->newest.kind = CW_OP_RECV;
	m->newest.op_index++;
	m->p2p[0].recvs = 31;
	judge();
	says(CW_CLASS_P2P_UNMATCHED,
	     "rank 2 has been receiving from rank 3 (node-a, pid 803) on pp (#31) for 2.4 s, but "
	     "rank 3 never posted the matching send.");
}

Test(sentences, of_a_receive_that_went_elsewhere)
{
	struct sb_comm *pp = sb_comm(b, "pp", 0, 4, 1, 0);

	(void)posts(pp, 2, CW_OP_SEND, 3);
	sb_waits(sb_comm(b, "world", 0, 4, 1, 63), 3, 2 * SB_S);
	judge();
	cr_expect_not_null(strstr(said_text(&v.said), "all_reduce #64 on world"), "%s",
			   said_text(&v.said));
	for_people(said_text(&v.said));
}

Test(sentences, of_different_sizes)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	posts(c, 1, CW_OP_SEND, 2)->bytes = 4096;
	posts(c, 2, CW_OP_RECV, 1)->bytes = 8192;
	judge();
	says(CW_CLASS_P2P_UNMATCHED, "ranks 1-2 disagree on the size of send #31 to rank 2 on "
				     "pp.");
}

/* People know the ranks of the job; numbers within a communicator are others. */
Test(sentences, of_a_message_number_its_peer_like_all_ranks)
{
	struct sb_comm *c = sb_comm(b, "pp", 4, 4, 1, 0);

	posts(c, 1, CW_OP_SEND, 2)->bytes = 4096;
	posts(c, 2, CW_OP_RECV, 1)->bytes = 8192;
	judge();
	says(CW_CLASS_P2P_UNMATCHED, "ranks 5-6 disagree on the size of send #31 to rank 6 on pp.");
}

/* Not all ranks of the communicator are in it. */
Test(sentences, of_a_message_whose_progress_is_unknown)
{
	struct sb_comm *c = sb_comm(b, "pp", 0, 4, 1, 0);

	for (uint32_t m = 1; m < 3; m++) {
		struct cw_op *op = posts(c, m, m == 1 ? CW_OP_SEND : CW_OP_RECV, m == 1 ? 2 : 1);

		op->flags |= CW_OPF_RETURNED;
		op->progress = CW_PROGRESS_UNKNOWN;
		c->members[m].known &= ~(uint32_t)(CW_KNOWN_REACHED | CW_KNOWN_COMPLETED);
	}
	judge();
	cr_expect_eq(v.detail, CW_DETAIL_PROGRESS_UNKNOWN, "%s", said_text(&v.said));
	cr_expect_null(strstr(said_text(&v.said), "all ranks"), "%s", said_text(&v.said));
	cr_expect_not_null(strstr(said_text(&v.said), "no missing rank was seen in this call"),
			   "%s", said_text(&v.said));
}

static struct sb_comm *making(int64_t age_ns)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 0);

	for (uint32_t m = 0; m < 8; m++) {
		c->members[m].state = CW_COMM_INIT;
		(void)sb_call(c, m, CW_OP_COMM_INIT, age_ns);
	}
	return c;
}

Test(sentences, of_a_rank_that_does_not_join)
{
	making(130 * SB_S)->members[3].rank = CW_SNAP_NONE;
	judge();
	says(CW_CLASS_INIT_STUCK, "rank 3 (node-a, pid 803) has not called ncclCommInitRank for "
				  "world. The other 7 ranks have been waiting in it for 130 s.");
}

/* No process of it has been seen at all: its number is known, for the communicator is the job's. */
Test(sentences, of_a_rank_that_nobody_has_seen)
{
	making(130 * SB_S)->members[7].rank = CW_SNAP_NONE;
	b->n_ranks = 7;
	judge();
	snap->ranks_expected = 8;
	again();
	says(CW_CLASS_INIT_STUCK,
	     "rank 7 of world has not been seen in ncclCommInitRank; ranks 0-6 "
	     "have been waiting in it for 130 s.");
}

/* Ranks 0 and 1 make two communicators in two orders, and all others wait for them. */
Test(sentences, of_makings_in_two_orders_that_others_wait_behind)
{
	struct sb_comm *world = sb_comm(b, "world", 0, 8, 1, 41), *made;

	for (uint32_t m = 0; m < 2; m++) {
		made = sb_comm(b, m ? "b" : "a", 0, 2, 1, 0);
		made->members[m].state = CW_COMM_INIT;
		(void)sb_call(made, m, CW_OP_COMM_INIT, 130 * SB_S);
		made->members[!m].rank = CW_SNAP_NONE;
	}
	for (uint32_t m = 2; m < 8; m++)
		sb_waits(world, m, 129 * SB_S);
	judge();
	cr_expect_not_null(strstr(said_text(&v.said),
				  ". Ranks 0-1 wait in one of 2 such calls, all other "
				  "ranks of the job wait behind them, and no rank is left "
				  "to enter any of these calls."),
			   "%s", said_text(&v.said));
	for (uint32_t i = 0; i < v.n_ruled_out; i++)
		cr_expect_null(strstr(said_text(&v.ruled_out_said[i]), "no deadlock"), "%s",
			       said_text(&v.ruled_out_said[i]));
}

Test(sentences, of_an_init_that_all_are_in)
{
	(void)making(130 * SB_S);
	judge();
	says(CW_CLASS_INIT_STUCK, "all ranks of world are inside ncclCommInitRank, which has not "
				  "finished for 130 s.");
}

Test(sentences, of_a_stuck_device)
{
	struct sb_comm *c = sb_comm(b, "world", 0, 8, 1, 41);

	sb_all_wait_but(c, 3, 20 * SB_S);
	c->members[3].entered = c->members[3].returned = 42;
	c->members[3].age_ns = 20 * SB_S;
	judge();
	says(CW_CLASS_DEVICE_STALLED,
	     "rank 3 (node-a, pid 803) enqueued all_reduce #42 on world, but its device is stuck "
	     "in "
	     "earlier work. The other 7 ranks have been waiting for it for 20 s.");
}

Test(sentences, of_a_call_that_all_are_in)
{
	sb_all_wait_but(sb_comm(b, "dp", 1, 4, 2, 132), SB_MAX_RANKS, 15 * SB_S);
	judge();
	says(CW_CLASS_IN_COLLECTIVE,
	     "all 4 ranks of dp entered all_reduce #133 and none has finished for 15 s. Not the "
	     "program: check network, GPUs and NCCL on node-a (ranks 1,3) and node-b (ranks 5,7).");
}

Test(sentences, of_a_job_that_is_well)
{
	(void)sb_comm(b, "world", 0, 8, 1, 41);
	judge();
	cr_expect_eq(v.verdict_class, CW_CLASS_HEALTHY);
	cr_expect_str_eq(said_text(&v.said), "no rank is blocked on a call that cannot complete");
}
