/* SPDX-License-Identifier: Apache-2.0 */
#include "report_fixture.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/record_layout.h"
#include "report/doc/incident_facts.h"

static const struct cw_op waiting_op = {
	.kind = CW_OP_ALL_REDUCE,
	.dtype = CW_DTYPE_BF16,
	.redop = CW_REDOP_SUM,
	.progress = CW_PROGRESS_REACHED,
	.flags = CW_OPF_RETURNED,
	.root = CW_PEER_NONE,
	.peer = CW_PEER_NONE,
	.count = 1048576,
	.bytes = 2097152,
	.coll_seq = 42,
	.op_index = 97,
	.stream = 0x7f0000001000,
	.tid = 812,
	.enter_ns = 1000,
	.return_ns = 2000,
};

const struct cw_incident_info fixture_info = {
	.id = "0123456789abcdef",
	.confidence = CW_CONFIDENCE_CERTAIN,
	.severity = CW_SEVERITY_PAGE,
	.last_progress_wall_ns = INT64_C(1795247613000000000),
	.stall_wall_ns = INT64_C(1795247623000000000),
	.confirmed_wall_ns = INT64_C(1795247625500000000),
	.leader = "node-a",
	.bundle = "/var/lib/collwatch/incidents/0123456789abcdef",
};

static void add_rank(struct cw_snapshot *snap, uint32_t label)
{
	struct cw_snap_rank rank = {
		.rank = (int32_t)label,
		.node = label / 4,
		.pid = 800 + (int32_t)label,
		.device = (int32_t)label % 4,
		.start_ticks = 1000 + label,
		.liveness = CW_LIVE_ALIVE,
		.flags = CW_RANKF_HAS_RECORD | CW_RANKF_PYTHON,
		.sampled_ns = 5000,
		.host_activity_ns = 4000,
		.host_activity_by = "cpu",
		.command = "python3 train_loop.py",
	};
	uint32_t index;

	cr_assert_eq(cw_snapshot_add_rank(snap, &rank, &index), 0);
	cr_assert_eq(index, label);
}

static void set_member(struct cw_snapshot *snap, uint32_t comm, uint32_t label)
{
	struct cw_op op = waiting_op;
	struct cw_p2p_peer p2p = { .peer = 1, .sends = 3, .recvs = 4, .send_hash = 5 };
	struct cw_snap_member member = {
		.rank = label,
		.state = CW_COMM_READY,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED |
			 CW_KNOWN_COMPLETED | CW_KNOWN_HASH,
		.coll_entered = label == FIXTURE_CULPRIT ? 41 : 42,
		.coll_returned = label == FIXTURE_CULPRIT ? 41 : 42,
		.coll_reached = label == FIXTURE_CULPRIT ? 41 : 42,
		.coll_completed = 41,
		.hash_seq = 41,
		.hash = UINT64_MAX - label,
		.checkpoints = { { .coll_seq = 64, .hash = UINT64_MAX } },
		.pending = label == FIXTURE_CULPRIT ? NULL : &op,
		.last = &op,
		.window = &op,
		.n_window = 1,
		.window_lost = 41,
		.window_ns = 4900,
		.p2p = &p2p,
		.n_p2p = 1,
		.last_error = label == 5 ? "remote process exited" : NULL,
	};

	cr_assert_eq(cw_snapshot_set_member(snap, comm, label, &member), 0);
}

struct cw_snapshot *fixture_snapshot(void)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	struct cw_snap_comm comm = {
		.id = FIXTURE_COMM,
		.instance = 1,
		.nranks = FIXTURE_RANKS,
		.name = "tp_group",
		.split_color = -1,
	};
	uint32_t index;

	cr_assert_not_null(snap);
	snap->now_ns = 6000;
	snap->wall_ns = fixture_info.confirmed_wall_ns;
	snap->ranks_expected = FIXTURE_RANKS + 2;
	snap->thresholds = cw_thresholds_default();
	cr_assert_eq(cw_snapshot_set_job(snap, "name:4711", "RANK"), 0);
	cr_assert_eq(cw_snapshot_add_note(snap, "node-c does not answer"), 0);
	cr_assert_eq(cw_snapshot_add_node(snap, "node-a", &index), 0);
	cr_assert_eq(cw_snapshot_add_node(snap, "node-b", &index), 0);
	for (uint32_t i = 0; i < FIXTURE_RANKS; i++)
		add_rank(snap, i);
	cr_assert_eq(cw_snapshot_add_comm(snap, &comm, &index), 0);
	for (uint32_t i = 0; i < FIXTURE_RANKS; i++)
		set_member(snap, index, i);
	return snap;
}

static uint32_t *all_but_culprit(void)
{
	uint32_t *ranks = calloc(FIXTURE_RANKS, sizeof(*ranks)), n = 0;

	cr_assert_not_null(ranks);
	for (uint32_t i = 0; i < FIXTURE_RANKS; i++)
		if (i != FIXTURE_CULPRIT)
			ranks[n++] = i;
	return ranks;
}

static struct cw_arena arena;

struct cw_clause fixture_said(const char *text)
{
	struct cw_clause clause = { .arena = &arena };

	cw_say(&clause, text,
	       (struct cw_arg){ .kind = CW_ARG_TEXT, .text = cw_arena_strdup(&arena, text) });
	return clause;
}

/* The engine's allocations, except the parts that cw_verdict_fini() would free: see below. */
void fixture_verdict(struct cw_verdict *ret)
{
	static struct cw_culprit culprit = { .rank = FIXTURE_CULPRIT };
	static struct cw_side sides[2];
	static struct cw_wait chain[2];
	static uint32_t culprit_index = FIXTURE_CULPRIT;
	static struct cw_clause ruled_out;

	sides[0] = (struct cw_side){ .ranks = all_but_culprit(),
				     .n_ranks = FIXTURE_RANKS - 1,
				     .has_op = true,
				     .op = waiting_op };
	sides[1] = (struct cw_side){ .ranks = &culprit_index, .n_ranks = 1 };
	chain[0] = (struct cw_wait){ .rank = 0, .op = waiting_op, .waits_for = 2 };
	chain[1] = (struct cw_wait){ .rank = 2, .op = waiting_op, .waits_for = FIXTURE_CULPRIT };
	*ret = (struct cw_verdict){
		.verdict_class = CW_CLASS_NEVER_ENTERED,
		.detail = CW_DETAIL_OUTSIDE_NCCL,
		.confidence = CW_CONFIDENCE_CERTAIN,
		.culprits = &culprit,
		.n_culprits = 1,
		.victims = sides[0].ranks,
		.n_victims = FIXTURE_RANKS - 1,
		.coll_seq = 42,
		.sides = sides,
		.n_sides = 2,
		.chain = chain,
		.n_chain = 2,
		.ruled_out_said = &ruled_out,
		.n_ruled_out = 1,
	};
	culprit.said = fixture_said("outside NCCL, sleeps in pipe_read");
	ruled_out = fixture_said("not a mismatch: all windows agree");
	ret->said = (struct cw_clause){ .arena = &arena };
	cw_say(&ret->said, never_reached,
	       (struct cw_arg){ .kind = CW_ARG_PROCESS,
				.process = { .label = FIXTURE_CULPRIT,
					     .pid = 803,
					     .host = "node-a",
					     .pod = "",
					     .pod_namespace = "" } },
	       (struct cw_arg){ .kind = CW_ARG_CALL,
				.call = { .kind = CW_OP_ALL_REDUCE, .seq = 42, .peer = -1 } },
	       (struct cw_arg){ .kind = CW_ARG_COMM, .comm = { .name = "tp_group", .id = 7 } });
	cw_say(&ret->said, end);
}

static const char culprit_evidence[] =
	"{\"schema\":\"collwatch.evidence/1\",\"host\":\"node-a\",\"pid\":803,\"rank\":3,"
	"\"proc\":{\"status\":\"ok\",\"reason\":\"\",\"command\":\"python3 train_loop.py\","
	" \"threads\":[{\"tid\":803,\"name\":\"python3\",\"state\":\"S\",\"wchan\":\"pipe_read\","
	"  \"syscall\":\"read\"}]},"
	"\"native\":{\"status\":\"ok\",\"reason\":\"\",\"threads\":["
	" {\"tid\":803,\"name\":\"python3\",\"frames\":["
	"  {\"pc\":\"0x1\",\"symbol\":\"read\",\"offset\":14,\"module\":\"/lib/libc.so.6\"},"
	"  {\"pc\":\"0x2\",\"symbol\":\"os_read\",\"offset\":3,\"module\":\"/usr/bin/python3.11\"},"
	"  "
	"{\"pc\":\"0x3\",\"symbol\":\"_PyEval_EvalFrameDefault\",\"module\":\"/usr/bin/"
	"python3.11\"},"
	"  {\"pc\":\"0x4\",\"symbol\":\"__libc_start_main\",\"module\":\"/lib/libc.so.6\"},"
	"  {\"pc\":\"0x5\",\"symbol\":\"_start\",\"module\":\"/usr/bin/python3.11\"}]},"
	" {\"tid\":804,\"name\":\"helper\",\"frames\":[{\"pc\":\"0x6\",\"symbol\":\"poll\"}]}]},"
	"\"python\":{\"status\":\"ok\",\"reason\":\"\",\"threads\":[{\"id\":\"0x7\",\"current\":"
	"true,"
	" \"frames\":[{\"file\":\"/usr/lib/python3.11/"
	"socket.py\",\"line\":5,\"function\":\"readinto\"},"
	"  {\"file\":\"/job/train_loop.py\",\"line\":88,\"function\":\"read_sample\"},"
	"  {\"file\":\"/job/train_loop.py\",\"line\":120,\"function\":\"main\"}]}]}}";

static const char victim_evidence[] =
	"{\"schema\":\"collwatch.evidence/1\",\"host\":\"node-b\",\"pid\":805,\"rank\":5,"
	"\"proc\":null,\"native\":{\"status\":\"refused\",\"reason\":\"not our user\"},"
	"\"python\":{\"status\":\"ok\",\"reason\":\"\",\"threads\":[{\"id\":\"0x8\",\"current\":"
	"true,"
	" \"frames\":[{\"file\":\"/job/"
	"train_loop.py\",\"line\":71,\"function\":\"synchronize\"},"
	"  {\"file\":\"/job/train_loop.py\",\"line\":90,\"function\":\"forward\"}]}]}}";

static const char postmortem[] =
	"{\"schema\":\"collwatch.incident/1\",\"id\":\"ab12\",\"job\":\"name:train\","
	"\"group\":\"\",\"class\":\"process_dead\",\"detail\":\"exited\","
	"\"confidence\":\"certain\",\"blind_spots\":[],\"hang\":\"none\",\"severity\":\"failed\","
	"\"culprits\":[{\"rank\":4,\"host\":\"node-b\",\"pid\":812,"
	"\"reason\":\"killed itself (SIGABRT sent by its own pid)\"}],"
	"\"victims\":{\"count\":0,\"ranks\":\"\"},\"coverage\":{\"ranks_expected\":8,"
	"\"ranks_seen\":8},\"times\":{\"confirmed\":\"2026-11-21T07:53:37.500Z\"},"
	"\"summary\":\"rank 4 on node-b was the first to fail\","
	"\"closed_as\":\"job_ended\",\"ending\":\"rank 4 on node-b was the first to fail\","
	"\"first\":{\"ranks\":\"4\",\"count\":1,\"by\":\"time\",\"together\":1,\"margin_s\":1.25},"
	"\"ends\":[{\"rank\":4,\"host\":\"node-b\",\"how\":\"was killed by SIGABRT\","
	"\"kind\":\"own\",\"cause\":\"killed itself (SIGABRT sent by its own pid)\","
	"\"cause_kind\":\"killed\",\"cause_by\":\"itself\",\"first\":true,"
	"\"ended\":\"2026-11-21T07:53:33.123Z\",\"after_s\":0.0},{\"rank\":5,"
	"\"host\":\"node-b\",\"how\":\"was killed by SIGTERM\",\"kind\":\"asked\",\"cause\":null,"
	"\"first\":false,\"ended\":\"2026-11-21T07:53:34.373Z\",\"after_s\":1.25}],"
	"\"ends_omitted\":2,\"ended\":[{\"ranks\":\"4\",\"count\":1,"
	"\"how\":\"was killed by SIGABRT\"}],\"ranks_ended\":8,"
	"\"first_end\":\"2026-11-21T07:53:33.123Z\","
	"\"last_end\":\"2026-11-21T07:53:34.423Z\",\"waited_for\":{\"for_s\":9.25,"
	"\"summary\":\"rank 4 never came\"},\"open\":[{\"ranks\":\"0-3\",\"members\":4,"
	"\"op\":{\"kind\":\"all_reduce\",\"comm_name\":\"dp\",\"coll_seq\":31,\"done\":false}}],"
	"\"last_calls\":[{\"rank\":4,\"comm_name\":\"dp\",\"calls\":[{\"kind\":\"all_gather\","
	"\"comm_name\":\"dp\",\"coll_seq\":30,\"done\":false}]}],"
	"\"wrong_data\":[\"rank 4 called with another operator\"],"
	"\"end_notes\":[\"ranks 0-3: no kernel evidence\"]}";

json_t *fixture_postmortem(void)
{
	json_t *doc = json_loads(postmortem, 0, NULL);

	cr_assert_not_null(doc);
	return doc;
}

json_t *fixture_evidence(void)
{
	json_t *list = json_array();

	cr_assert_eq(json_array_append_new(list, json_loads(culprit_evidence, 0, NULL)), 0);
	cr_assert_eq(json_array_append_new(list, json_loads(victim_evidence, 0, NULL)), 0);
	return list;
}

json_t *fixture_add_evidence(json_t *incident, const json_t *evidence)
{
	struct cw_incident_facts facts;
	struct cw_arena memory = { 0 };
	json_t *added;

	cr_assert_eq(cw_incident_facts_read(incident, &memory, &facts, NULL, NULL), 0);
	cr_assert_eq(cw_incident_facts_add_evidence(&facts, &memory, evidence), 0);
	added = cw_incident_facts_write(&facts);
	cr_assert_not_null(added);
	cw_arena_fini(&memory);
	json_decref(incident);
	return added;
}
