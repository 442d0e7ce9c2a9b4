/* SPDX-License-Identifier: Apache-2.0 */
/* A leader without nodes: the test inspects its requests, and makes the answers by hand. */
#include "leader/incident/stack_collection.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leader/incident/evidence_set.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "record/record_layout.h"
#include "report/json_util.h"
#include "tests/support/cluster/transport_effects.h"

#define MAX_NODES 128u

static int64_t now = 1000 * CW_NS_PER_S;
static struct cw_clock clock_;
static struct cw_transport *transport;
static struct cw_leader_effects effects;
static struct cw_snapshot *snap;
static struct cw_evidence_set taken;
static char names[MAX_NODES][16];
static const char *name_list[MAX_NODES];

/* The last request to each node. */
static struct asked {
	uint64_t id;
	struct cw_msg_evidence_target targets[CW_STACK_COLLECTION_MAX_PER_NODE];
	uint32_t n;
	bool is_open;
} asked[MAX_NODES];
static unsigned n_requests;

static int64_t fake_now(void *user)
{
	return now;
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	const uint8_t *payload;
	struct cw_message *msg = NULL;
	size_t payload_len, used;

	cr_assert_eq(cw_frame_parse(frame, len, &payload, &payload_len, &used), 0);
	cr_assert_eq(cw_message_decode(payload, payload_len, &msg), 0);
	cr_assert_eq(msg->type, CW_MSG_EVIDENCE_REQUEST);
	cr_assert_leq(msg->evidence_request.n_targets, CW_STACK_COLLECTION_MAX_PER_NODE);
	asked[peer].id = msg->evidence_request.id;
	asked[peer].n = msg->evidence_request.n_targets;
	asked[peer].is_open = true;
	memcpy(asked[peer].targets, msg->evidence_request.targets,
	       asked[peer].n * sizeof(asked[peer].targets[0]));
	n_requests++;
	cw_message_free(msg);
	return 0;
}

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	cr_assert_fail("a message of type %u", (*msg)->type);
}

static void answer_one(unsigned peer, uint32_t i, const char *json)
{
	struct cw_message reply = {
		.type = CW_MSG_EVIDENCE_REPLY,
		.evidence_reply = { .id = asked[peer].id,
				    .pid = asked[peer].targets[i].pid,
				    .start_ticks = asked[peer].targets[i].start_ticks,
				    .json = json,
				    .remaining = asked[peer].n - i - 1 },
	};
	uint8_t *frame = NULL;
	size_t len;

	cr_assert_eq(cw_message_encode(&reply, &frame, &len), 0);
	cw_transport_receive(transport, peer, frame + CW_FRAME_HEADER_BYTES,
			     len - CW_FRAME_HEADER_BYTES);
	free(frame);
}

static void answer(unsigned peer)
{
	char json[256];

	asked[peer].is_open = false;
	for (uint32_t i = 0; i < asked[peer].n; i++) {
		int32_t pid = asked[peer].targets[i].pid;

		(void)snprintf(json, sizeof(json),
			       "{\"schema\":\"collwatch.evidence/1\",\"pid\":%d,\"native\":{"
			       "\"status\":\"ok\",\"threads\":[{\"tid\":%d,\"frames\":[{\"symbol\":"
			       "\"%s\",\"module\":\"prog\"}]}]}}",
			       pid, pid, pid % 7 ? "wait" : "load");
		answer_one(peer, i, json);
	}
}

/* per_node ranks on each of n_nodes nodes, pid = 1000 + rank. */
static void make_job(unsigned n_nodes, unsigned per_node)
{
	struct cw_transport_config t = { .clock = &clock_,
					 .self = "leader",
					 .names = name_list,
					 .addresses = name_list,
					 .n_peers = n_nodes,
					 .on_message = on_message };
	static const struct cw_transport_ops ops = { .send = on_send };
	struct cw_snap_comm comm = { .id = 5, .nranks = n_nodes * per_node };
	uint32_t index;

	for (unsigned i = 0; i < n_nodes; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "node-%u", i);
		name_list[i] = names[i];
	}
	cr_assert_eq(cw_transport_new(&t, &transport), 0);
	cw_transport_set_backend(transport, &ops, NULL);
	transport_effects_init(&effects, transport);
	snap = cw_snapshot_new();
	for (unsigned i = 0; i < n_nodes; i++) {
		cw_transport_peer_up(transport, i, 1);
		cr_assert_eq(cw_snapshot_add_node(snap, names[i], &index), 0);
	}
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (unsigned i = 0; i < n_nodes * per_node; i++) {
		struct cw_op op = { .kind = CW_OP_ALL_REDUCE, .coll_seq = 9 };
		struct cw_snap_rank rank = { .rank = (int32_t)i,
					     .node = i / per_node,
					     .pid = 1000 + (int32_t)i,
					     .start_ticks = 5,
					     .liveness = CW_LIVE_ALIVE };
		struct cw_snap_member member = { .rank = i,
						 .state = CW_COMM_READY,
						 .pending = &op };

		cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
		cr_assert_eq(cw_snapshot_set_member(snap, 0, i, &member), 0);
	}
}

static struct cw_stack_collection *make_collection(void)
{
	struct cw_stack_collection_config config = { .clock = &clock_,
						     .effects = &effects,
						     .what = CW_EVIDENCE_NATIVE };
	struct cw_stack_collection *s;

	cr_assert_eq(cw_stack_collection_new(&config, snap, &taken, &s), 0);
	return s;
}

static void set_up(void)
{
	clock_ = (struct cw_clock){ .monotonic_ns = fake_now, .wall_ns = fake_now };
}

static void tear_down(void)
{
	cw_evidence_set_fini(&taken);
	cw_transport_free(transport);
	cw_snapshot_free(snap);
}

TestSuite(stack_collection, .init = set_up, .fini = tear_down);

static void take_elsewhere(uint32_t rank, const char *json)
{
	taken.slots[taken.n_slots++] = (struct cw_evidence_slot){
		.node = strdup(names[snap->ranks[rank].node]),
		.pid = snap->ranks[rank].pid,
		.start_ticks = 5,
		.is_awaited = !json,
		.doc = json ? json_loads(json, 0, NULL) : NULL,
	};
}

static const char *why_of(const json_t *doc, size_t i, const char **ret_ranks)
{
	const json_t *l = json_array_get(json_object_get(doc, "not_collected"), i);

	*ret_ranks = cw_json_str(l, "ranks", "");
	return cw_json_str(l, "why", "");
}

Test(stack_collection, asks_every_living_rank_once_and_merges_the_answers)
{
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(4, 8);
	snap->ranks[9].liveness = CW_LIVE_KILLED;
	take_elsewhere(0,
		       "{\"schema\":\"collwatch.evidence/1\",\"pid\":1000,\"native\":{\"threads\":"
		       "[{\"tid\":1000,\"frames\":[{\"symbol\":\"load\",\"module\":\"prog\"}]}]}}");
	s = make_collection();
	cr_assert_eq(n_requests, 0);
	cw_stack_collection_start(s);
	cw_stack_collection_start(s);
	cr_assert_eq(n_requests, 4);
	cr_assert_eq(asked[0].n, 7);
	cr_assert_eq(asked[1].n, 7);
	cr_assert_eq(asked[2].n, 8);
	cw_stack_collection_take(s, &taken);
	for (unsigned i = 0; i < 4; i++) {
		cr_assert_not(cw_stack_collection_is_complete(s));
		answer(i);
	}
	cr_assert(cw_stack_collection_is_complete(s));
	doc = cw_stack_collection_doc(s);
	cr_assert_eq(cw_json_int(doc, "seen", 0), 31);
	cr_assert_eq(cw_json_int(doc, "awaited", -1), 0);
	cr_assert_str_eq(cw_json_str(doc, "ranks", ""), "0-8,10-31");
	json_decref(doc);
	cw_stack_collection_free(s);
}

/* Rank 1 loads data, and the others wait in a collective that all of them entered. */
Test(stack_collection, shows_the_rank_that_differs_from_its_peers)
{
	struct cw_stack_collection *s;
	const json_t *different;
	json_t *doc;

	make_job(2, 4);
	snap->now_ns = now;
	for (uint32_t i = 0; i < 8; i++) {
		snap->comms[0].members[i].coll_entered = 9;
		snap->comms[0].members[i].progress_ns = now - 60 * CW_NS_PER_S;
	}
	s = make_collection();
	cw_stack_collection_start(s);
	answer(0);
	answer(1);
	doc = cw_stack_collection_doc(s);
	different = json_array_get(json_object_get(doc, "different"), 0);
	cr_expect_eq(json_array_size(json_object_get(doc, "different")), 1);
	cr_expect_str_eq(cw_json_str(different, "ranks", ""), "1");
	cr_expect_str_eq(cw_json_str(different, "thread", ""), "main");
	cr_expect_str_eq(cw_json_str(different, "where", ""), "load");
	cr_expect_str_eq(cw_json_str(different, "usual", ""), "wait");
	cr_expect_str_eq(cw_json_str(different, "confidence", ""), "likely");
	cr_expect_eq(cw_json_int(different, "peers", 0), 8);
	cr_expect_eq(cw_json_int(different, "usual_n", 0), 7);
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, shows_no_different_rank_of_a_job_that_moves)
{
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(2, 4);
	snap->now_ns = now;
	for (uint32_t i = 0; i < 8; i++) {
		snap->comms[0].members[i].coll_entered = 9;
		snap->comms[0].members[i].progress_ns = now - CW_NS_PER_S;
	}
	s = make_collection();
	cw_stack_collection_start(s);
	answer(0);
	answer(1);
	doc = cw_stack_collection_doc(s);
	cr_expect_eq(json_array_size(json_object_get(doc, "different")), 0);
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, looks_closely_at_one_rank_of_each_state)
{
	struct cw_op other = { .kind = CW_OP_BROADCAST, .coll_seq = 9 };
	unsigned close_looks = 0;
	struct cw_stack_collection *s;
	json_t *evidence = json_array();

	make_job(3, 8);
	take_elsewhere(0, NULL); /* stands for those in the all_reduce */
	for (unsigned i = 20; i < 23; i++)
		*snap->comms[0].members[i].pending = other;
	s = make_collection();
	cw_stack_collection_start(s);
	for (unsigned n = 0; n < 3; n++)
		for (uint32_t i = 0; i < asked[n].n; i++) {
			if (asked[n].targets[i].what & CW_EVIDENCE_BRIEF)
				continue;
			close_looks++;
			cr_assert_eq(asked[n].targets[i].pid, 1020);
			cr_assert_eq(i, 0, "representatives come first");
		}
	cr_assert_eq(close_looks, 1);
	for (unsigned n = 0; n < 3; n++)
		answer(n);
	cr_assert_eq(cw_stack_collection_add_evidence(s, evidence), 0);
	cr_assert_eq(json_array_size(evidence), 1);
	cr_assert_eq(cw_json_int(json_array_get(evidence, 0), "pid", 0), 1020);
	json_decref(evidence);
	cw_stack_collection_free(s);
}

/* One of its ranks is in a state of its own: then the leader requests full evidence. */
Test(stack_collection, asks_a_process_once_that_is_several_ranks)
{
	struct cw_op other = { .kind = CW_OP_BROADCAST, .coll_seq = 9 };
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(2, 8);
	for (unsigned i = 0; i < 16; i++)
		snap->ranks[i].pid = i < 2 ? 1000 : i < 8 ? 1002 : 1008;
	*snap->comms[0].members[15].pending = other;
	take_elsewhere(0,
		       "{\"schema\":\"collwatch.evidence/1\",\"pid\":1000,\"native\":{\"threads\":"
		       "[{\"tid\":1000,\"frames\":[{\"symbol\":\"load\",\"module\":\"prog\"}]}]}}");
	s = make_collection();
	cw_stack_collection_start(s);
	for (unsigned n = 0; n < 2; n++) {
		cr_assert_eq(asked[n].n, 1);
		cr_expect_eq(asked[n].targets[0].pid, n ? 1008 : 1002);
		cr_expect_eq(!(asked[n].targets[0].what & CW_EVIDENCE_BRIEF), n == 1);
		answer(n);
	}
	cw_stack_collection_take(s, &taken);
	cr_assert(cw_stack_collection_is_complete(s));
	doc = cw_stack_collection_doc(s);
	cr_expect_eq(cw_json_int(doc, "seen", 0), 16);
	cr_expect_str_eq(cw_json_str(doc, "ranks", ""), "0-15");
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, asks_64_nodes_at_a_time)
{
	struct cw_stack_collection *s;

	make_job(100, 2);
	s = make_collection();
	cw_stack_collection_start(s);
	cr_assert_eq(n_requests, CW_STACK_COLLECTION_MAX_ASKED);
	for (unsigned done = 0; done < 100; done++) {
		unsigned open = 0;

		for (unsigned i = 0; i < 100; i++)
			open += asked[i].is_open;
		cr_assert_leq(open, CW_STACK_COLLECTION_MAX_ASKED);
		for (unsigned i = 0; i < 100; i++)
			if (asked[i].is_open) {
				answer(i);
				break;
			}
	}
	cr_assert_eq(n_requests, 100);
	cr_assert(cw_stack_collection_is_complete(s));
	cw_stack_collection_free(s);
}

Test(stack_collection, says_who_is_beyond_its_limits)
{
	const char *ranks;
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(1, 100);
	s = make_collection();
	cw_stack_collection_start(s);
	cr_assert_eq(asked[0].n, 64);
	answer(0);
	cr_assert(cw_stack_collection_is_complete(s));
	doc = cw_stack_collection_doc(s);
	cr_assert_eq(cw_json_int(doc, "processes", 0), 100);
	cr_assert_str_eq(why_of(doc, 0, &ranks), "beyond the limit of 64 on one node");
	cr_assert_str_eq(ranks, "64-99");
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, looks_at_4096_ranks_and_no_more)
{
	struct cw_stack_collection *s;
	const char *ranks;
	json_t *doc;

	make_job(128, 33);
	s = make_collection();
	cw_stack_collection_start(s);
	for (unsigned round = 0; round < 128; round++)
		for (unsigned i = 0; i < 128; i++)
			if (asked[i].is_open)
				answer(i);
	cr_assert(cw_stack_collection_is_complete(s));
	doc = cw_stack_collection_doc(s);
	cr_assert_eq(cw_json_int(doc, "processes", 0), 128 * 33);
	cr_assert_eq(cw_json_int(doc, "seen", 0), 4096);
	cr_assert_str_eq(why_of(doc, 0, &ranks), "beyond the limit of 4096 in all");
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, does_without_a_node_that_is_gone_and_one_that_is_silent)
{
	const char *ranks;
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(3, 2);
	cw_transport_peer_down(transport, 1, false);
	s = make_collection();
	cw_stack_collection_start(s);
	answer(2);
	for (int64_t end = now + 40 * CW_NS_PER_S; now < end; now += CW_NS_PER_S) {
		cw_transport_peer_seen(transport, 0);
		cw_transport_run(transport);
		cw_stack_collection_tick(s);
	}
	cr_assert(cw_stack_collection_is_complete(s));
	doc = cw_stack_collection_doc(s);
	cr_assert_str_eq(cw_json_str(doc, "ranks", ""), "4-5");
	cr_assert_str_eq(why_of(doc, 0, &ranks), "its node cannot be asked");
	cr_assert_str_eq(ranks, "2-3");
	cr_assert_str_eq(why_of(doc, 1, &ranks), "its node did not answer in time");
	cr_assert_str_eq(ranks, "0-1");
	json_decref(doc);
	cw_stack_collection_free(s);
}

Test(stack_collection, ends_when_it_is_told_to_or_its_time_is_over)
{
	struct cw_stack_collection *s;
	json_t *doc;

	make_job(2, 2);
	s = make_collection();
	cr_assert_null(cw_stack_collection_doc(s));
	cw_stack_collection_start(s);
	answer_one(0, 0, "{}"); /* no evidence: left out */
	now += CW_STACK_COLLECTION_NS;
	cw_stack_collection_tick(s);
	cr_assert(cw_stack_collection_is_complete(s));
	answer(1); /* too late: the collection is over */
	doc = cw_stack_collection_doc(s);
	cr_assert_eq(cw_json_int(doc, "seen", -1), 0);
	cr_assert_eq(cw_json_int(doc, "processes", 0), 4);
	json_decref(doc);
	cw_stack_collection_free(s);
}
