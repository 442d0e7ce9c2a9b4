/* SPDX-License-Identifier: Apache-2.0 */
/*
 * These messages check the tables of the codec, so we write them by hand, field by field. A fact
 * about the rank or its first member that has no value here gets the number of its field.
 */
#include <stddef.h>
#include <string.h>

#include "model/facts.h"
#include "proto/codec_map.h"
#include "record/record_layout.h"
#include "tests/support/messages/messages.h"

static const struct cw_msg_op op_pending = {
	.kind = CW_OP_ALL_REDUCE,
	.dtype = CW_DTYPE_BF16,
	.redop = CW_REDOP_PREMULSUM,
	.progress = CW_PROGRESS_REACHED,
	.flags = CW_OPF_RETURNED | CW_OPF_GROUPED,
	.result = -3,
	.root = CW_PEER_NONE,
	.peer = CW_PEER_NONE,
	.count = 1048576,
	.bytes = 2097152,
	.coll_seq = 40213,
	.p2p_seq = 7,
	.op_index = 80001,
	.group_id = 9,
	.stream = 0x55aa55aa55aa55aa,
	.tid = 4711,
	.enter_age_ns = 61000000001,
	.return_age_ns = 60999999000,
};

static const struct cw_msg_op op_last = {
	.kind = CW_OP_SEND,
	.dtype = CW_DTYPE_INT64,
	.redop = CW_REDOP_NONE,
	.progress = CW_PROGRESS_ENQUEUED,
	.flags = CW_OPF_IN_PLACE,
	.result = 7,
	.root = 2,
	.peer = 5,
	.count = 10,
	.bytes = 80,
	.coll_seq = 3,
	.p2p_seq = 4,
	.op_index = 80002,
	.group_id = 10,
	.stream = 1,
	.tid = 4712,
	.enter_age_ns = -1,
	.return_age_ns = INT64_MIN,
};

static struct cw_checkpoint checkpoints[] = { { 40192, 0x0123456789abcdef }, { 40128, 1 } };

static struct cw_checkpoint last_hashes[] = { { 40211, 3 }, { 40212, 0x1032547698badcfe } };

static struct cw_p2p_peer p2p[] = {
	{ .peer = 5, .sends = 40, .recvs = 41, .send_hash = 0xfedcba9876543210, .recv_hash = 2 },
};

static struct cw_msg_connection connections[] = {
	{
		.peer = 5,
		.channel = 1,
		.flags = CW_CONNECTION_SEND | CW_CONNECTION_DETAILED,
		.seq = 40213,
		.replay = 2,
		.open_ops = 3,
		.steps = 260,
		.posted = 24,
		.ready = 20,
		.handed = 18,
		.done = 16,
		.moved_age_ns = 60000000001,
		.same_since_age_ns = 59000000001,
		.held_ns = 1500000,
		.bytes = 1048576,
		.bytes_per_s = 250000000,
	},
	{ .peer = 2, .moved_age_ns = -1, .same_since_age_ns = INT64_MIN },
};

static struct cw_msg_member members[] = {
	{
		.comm_id = 0xc0117a7c00000001,
		.parent_id = 0xc0117a7c00000002,
		.nccl_hash = 0xc0117a7c00000003,
		.instance = 1,
		.split_ordinal = 2,
		.split_color = -4,
		.name = "tp_group",
		.nranks = 8,
		.comm_rank = 3,
		.device = 2,
		.state = CW_COMM_READY,
		.coll_entered = 40213,
		.coll_returned = 40212,
		.coll_reached = 40211,
		.coll_completed = 40210,
		.known = 63,
		.hash_seq = 40209,
		.hash = 0x1122334455667788,
		.checkpoints = checkpoints,
		.n_checkpoints = 2,
		.last_hashes = last_hashes,
		.n_last_hashes = 2,
		.pending = &op_pending,
		.last = &op_last,
		.pending_count = 12,
		.progress_age_ns = 61000000002,
		.interval_ns = 250000000,
		.async_error = -6,
		.last_result = -7,
		.last_error = "remote process exited",
		.sends = 44,
		.recvs = 45,
		.op_index = 80003,
		.p2p = p2p,
		.n_p2p = 1,
		.connections = connections,
		.n_connections = 2,
	},
	{ .comm_id = 5, .name = "", .last_error = "" },
};

static struct cw_msg_rank ranks[] = {
	{
		.rank = 17,
		.world_size = 64,
		.local_rank = 1,
		.rank_source = "RANK",
		.pid = 812,
		.start_ticks = 0x0102030405060708,
		.device = 1,
		.uid = 1000,
		.liveness = 5,
		.exit_code = -2,
		.term_signal = 9,
		.flags = 0x41,
		.ended_age_ns = 5000000001,
		.host_activity_age_ns = -1,
		.sampled_age_ns = 20000001,
		.nccl_version = 22809,
		.env_hash = 0x2233445566778899,
		.dropped = 3,
		.command = "python train.py",
		.cause_kind = 3,
		.cause_by = 3,
		.cause_command = "python3",
		.cause_group = "/docker/4f1c",
		.end_by = 3,
		.end_sender = 7,
		.nonfinite_input =
			"rank 17 fed 1 NaN and 0 Inf among 256 fp32 into all_reduce #3 on dp",
		.nonfinite_input_age_ns = 14000000001,
		.host_activity_by = "cpu",
		.host_wait = 4,
		.job_timeout_ns = 600000000000,
		.net_retry_ns = 34359738368,
		.job_timeout_source = "--distributed-timeout-minutes 10 in its arguments",
		.nccl_variables = "NCCL_ALGO=Ring NCCL_SOCKET_IFNAME=eth0",
		.nccl_variables_omitted = 2,
		.machine = 2,
		.pod = "train-0",
		.pod_namespace = "ml",
		.container = "trainer",
		.own_pid = 17,
		.host_call = &op_last,
		.host_call_comm_id = 0xc0117a7c00000004,
		.members = members,
		.n_members = 2,
	},
};

static const char *nodes[] = { "node-a", "node-b" };
static uint64_t comm_ids[] = { 0xc0117a7c00000001, 1 };
static struct cw_msg_op window_ops[2];
static struct cw_msg_window windows[] = {
	{
		.comm_id = 0xc0117a7c00000001,
		.instance = 1,
		.pid = 812,
		.start_ticks = 99,
		.comm_rank = 3,
		.ops = window_ops,
		.n_ops = 2,
		.lost = 40000,
	},
};
static const char *stacks[] = { "model.py:41 in forward\ntrain.py:7 in <module>" };
static struct cw_msg_evidence_target targets[] = { { .pid = 812, .start_ticks = 99, .what = 7 } };

/* The key of the job slurm:4711 of uid 1000, as identity/job_label.h makes it. */
#define JOB_KEY                                                                                    \
	{                                                                                          \
		{                                                                                  \
			0x54, 0x09, 0x72, 0xbc, 0xcf, 0x17, 0xd3, 0xd1, 0x77, 0x3b, 0x75, 0x08,    \
				0xc4, 0x6c, 0x79, 0x58                                             \
		}                                                                                  \
	}

static const struct cw_message samples[CW_MSG__MAX] = {
	[CW_MSG_AGENT_HELLO] = { .agent_hello = { .version_min = 1,
						  .version_max = 2,
						  .record_bytes = 2097152 } },
	[CW_MSG_AGENT_WELCOME] = { .agent_welcome = { .version = 1, .daemon = "0.1.0" } },
	[CW_MSG_AGENT_REFUSED] = { .agent_refused = { .reason = "no seals" } },
	[CW_MSG_PYTHON_STACKS_REQUEST] = { .python_stacks_request = { .id = 77 } },
	[CW_MSG_PYTHON_STACKS_REPLY] = { .python_stacks_reply = { .id = 77,
								  .status = CW_PYTHON_FAILED,
								  .text = "File \"a.py\"\n" } },
	[CW_MSG_PEER_HELLO] = { .peer_hello = { .node = "node-a",
						.version_min = 1,
						.version_max = 2,
						.epoch = 1795247613123000000 } },
	[CW_MSG_PEER_GOODBYE] = { .peer_goodbye = { .reason = "restart" } },
	[CW_MSG_DIGEST] = { .digest = { .job_hash = 0xabcdef0123456789,
					.job_key = JOB_KEY,
					.label = "slurm:4711",
					.uid = 1000,
					.node = "node-b",
					.epoch = 1795247613123000000,
					.number = 321,
					.policy = "training",
					.ranks = ranks,
					.n_ranks = 1 } },
	[CW_MSG_DIGEST_COPY] = { .digest = { .job_hash = 0xabcdef0123456789,
					     .job_key = JOB_KEY,
					     .label = "slurm:4711",
					     .uid = 1000,
					     .node = "node-b",
					     .epoch = 1795247613123000000,
					     .number = 322,
					     .muted_until_ns = 1795251213123000000,
					     .sent_ns = 86400123456789,
					     .policy = "training",
					     .ranks = ranks,
					     .n_ranks = 1 } },
	[CW_MSG_RANK_SEARCH] = { .rank_search = { .job_hash = 0xabcdef0123456789,
						  .job_key = JOB_KEY,
						  .label = "slurm:4711",
						  .uid = 1000 } },
	[CW_MSG_MEMBERS] = { .members = { .job_hash = 0xabcdef0123456789,
					  .job_key = JOB_KEY,
					  .uid = 1000,
					  .label = "slurm:4711",
					  .number = 321,
					  .leader = "node-a",
					  .nodes = nodes,
					  .n_nodes = 2 } },
	[CW_MSG_WINDOW_REQUEST] = { .window_request = { .id = 5,
							.job_hash = 0xabcdef0123456789,
							.job_key = JOB_KEY,
							.uid = 1000,
							.label = "slurm:4711",
							.comm_ids = comm_ids,
							.n_comm_ids = 2,
							.max_ops = 256,
							.from_seq = 65,
							.to_seq = 128 } },
	[CW_MSG_WINDOW_REPLY] = { .window_reply = { .id = 5,
						    .job_hash = 0xabcdef0123456789,
						    .windows = windows,
						    .n_windows = 1,
						    .stacks = stacks,
						    .n_stacks = 1 } },
	[CW_MSG_EVIDENCE_REQUEST] = { .evidence_request = { .id = 6,
							    .job_hash = 0xabcdef0123456789,
							    .job_key = JOB_KEY,
							    .uid = 1000,
							    .label = "slurm:4711",
							    .deadline_ms = 5000,
							    .targets = targets,
							    .n_targets = 1 } },
	[CW_MSG_EVIDENCE_REPLY] = { .evidence_reply = { .id = 6,
							.pid = 812,
							.start_ticks = 99,
							.json = "{\"schema\":1}",
							.remaining = 4 } },
	[CW_MSG_INCIDENT_ANNOUNCE] = { .incident_announce = { .id = "i-1",
							      .job_hash = 0xabcdef0123456789,
							      .job_key = JOB_KEY,
							      .node = "node-a",
							      .summary = "rank 17 hangs",
							      .uid = 1000,
							      .label = "slurm:4711" } },
	[CW_MSG_INCIDENT_OBJECTION] = { .incident_objection = { .id = "i-1",
								.node = "node-b",
								.reason = "I lead",
								.uid = 1000,
								.label = "slurm:4711" } },
	[CW_MSG_INCIDENT_DELIVERED] = { .incident_delivered = { .id = "4c7a1be0d92f3a10",
								.uid = 1000,
								.label = "slurm:4711" } },
	[CW_MSG_NODE_REQUEST] = { .node_request = { .id = 7,
						    .verb = "report",
						    .json = "{\"id\":\"4c7a1be0d92f3a10\"}",
						    .uid = 1000,
						    .sees_all = 1 } },
	[CW_MSG_NODE_REPLY] = { .node_reply = { .id = 7,
						.code = 3,
						.json = "{}",
						.error = "no incident with this id here" } },
	[CW_MSG_CONTROL_REQUEST] = { .control_request = { .verb = "status", .json = "{}" } },
	[CW_MSG_CONTROL_REPLY] = { .control_reply = { .code = 2,
						      .json = "{\"jobs\":[]}",
						      .error = "nobody home" } },
};

static void fill_unset(const struct cw_map *map, void *sample)
{
	static const char zero[sizeof(uint64_t)];

	for (size_t i = 0; i < map->n_fields; i++) {
		const struct cw_field *f = &map->fields[i];
		char *to = (char *)sample + f->c_offset;

		if (f->kind <= CW_FIELD_INT && memcmp(to, zero, f->c_bytes) == 0)
			memcpy(to, &map->pb->fields[i].id, 1); /* little-endian: the low byte */
		else if (f->kind == CW_FIELD_STRING && !*(const char **)to)
			*(const char **)to = map->pb->fields[i].name;
	}
}

/* Returns the element type of the map's only list. */
static const struct cw_map *list_of(const struct cw_map *map)
{
	size_t i = 0;

	while (map->fields[i].kind != CW_FIELD_LIST)
		i++;
	return map->fields[i].sub;
}

const struct cw_message *cw_sample_message(unsigned type)
{
	static struct cw_message msg;

	if (type == CW_MSG_NONE || type >= CW_MSG__MAX)
		return NULL;
	fill_unset(list_of(cw_bodies[CW_MSG_DIGEST].map), &ranks[0]);
	fill_unset(list_of(list_of(cw_bodies[CW_MSG_DIGEST].map)), &members[0]);
	window_ops[0] = op_pending;
	window_ops[1] = op_last;
	window_ops[1].stack = 1;
	msg = samples[type];
	msg.type = type;
	return &msg;
}
