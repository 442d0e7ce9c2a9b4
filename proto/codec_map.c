/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/codec_map.h"

#include "collwatch.pb-c.h"
#include "model/cause.h"
#include "model/facts.h"
#include "record/record_layout.h"

#define FIELD_BYTES(type, field) sizeof(((type *)0)->field)

/* Before each table in this file, C and PB name the two types that the table maps. */
#define NUMBER_(kind_, field_, flags_, max_)                                                       \
	{                                                                                          \
		.kind = kind_, .flags = flags_, .max = max_, .c_bytes = FIELD_BYTES(C, field_),    \
		.pb_bytes = FIELD_BYTES(PB, field_), .c_offset = offsetof(C, field_),              \
		.pb_offset = offsetof(PB, field_),                                                 \
	}
#define POINTER_(kind_, field_, flags_, sub_)                                                      \
	{                                                                                          \
		.kind = kind_, .flags = flags_, .c_offset = offsetof(C, field_),                   \
		.pb_offset = offsetof(PB, field_), .sub = sub_,                                    \
	}
#define ARRAY_(kind_, field_, max_, sub_)                                                          \
	{                                                                                          \
		.kind = kind_, .c_offset = offsetof(C, field_), .pb_offset = offsetof(PB, field_), \
		.c_n_offset = offsetof(C, n_##field_), .pb_n_offset = offsetof(PB, n_##field_),    \
		.max = max_, .sub = sub_,                                                          \
	}

#define UINT(field) NUMBER_(CW_FIELD_UINT, field, 0, 0)
#define INT(field) NUMBER_(CW_FIELD_INT, field, 0, 0)
#define AGE(field) NUMBER_(CW_FIELD_INT, field, CW_FIELD_AGE, 0)
#define STRING(field) POINTER_(CW_FIELD_STRING, field, 0, NULL)
#define REQUIRED(field) POINTER_(CW_FIELD_STRING, field, CW_FIELD_REQUIRED, NULL)
#define JOB_KEY(field) POINTER_(CW_FIELD_JOB_KEY, field, 0, NULL)
#define MESSAGE(field, sub_) POINTER_(CW_FIELD_MESSAGE, field, 0, sub_)
#define LIST(field, max_, sub_) ARRAY_(CW_FIELD_LIST, field, max_, sub_)
#define STRINGS(field, max_) ARRAY_(CW_FIELD_STRINGS, field, max_, NULL)
#define U64S(field, max_) ARRAY_(CW_FIELD_U64S, field, max_, NULL)

#define MAP(name_, c_type, descriptor)                                                             \
	static const struct cw_map name_##_map = {                                                 \
		.pb = &descriptor,                                                                 \
		.c_bytes = sizeof(c_type),                                                         \
		.n_fields = sizeof(name_##_fields) / sizeof(name_##_fields[0]),                    \
		.fields = name_##_fields,                                                          \
	}

/* ---- agent and daemon ---- */

#define C struct cw_msg_agent_hello
#define PB Collwatch__AgentHello
static const struct cw_field agent_hello_fields[] = {
	UINT(version_min),
	UINT(version_max),
	UINT(record_bytes),
	UINT(record_error),
};
MAP(agent_hello, C, collwatch__agent_hello__descriptor);
#undef C
#undef PB

#define C struct cw_msg_agent_welcome
#define PB Collwatch__AgentWelcome
static const struct cw_field agent_welcome_fields[] = {
	UINT(version),
	STRING(daemon),
};
MAP(agent_welcome, C, collwatch__agent_welcome__descriptor);
#undef C
#undef PB

#define C struct cw_msg_agent_refused
#define PB Collwatch__AgentRefused
static const struct cw_field agent_refused_fields[] = {
	STRING(reason),
};
MAP(agent_refused, C, collwatch__agent_refused__descriptor);
#undef C
#undef PB

#define C struct cw_msg_python_stacks_request
#define PB Collwatch__PythonStacksRequest
static const struct cw_field python_stacks_request_fields[] = {
	UINT(id),
};
MAP(python_stacks_request, C, collwatch__python_stacks_request__descriptor);
#undef C
#undef PB

#define C struct cw_msg_python_stacks_reply
#define PB Collwatch__PythonStacksReply
static const struct cw_field python_stacks_reply_fields[] = {
	UINT(id),
	UINT(status),
	STRING(text),
};
MAP(python_stacks_reply, C, collwatch__python_stacks_reply__descriptor);
#undef C
#undef PB

/* ---- daemon and daemon ---- */

#define C struct cw_msg_peer_hello
#define PB Collwatch__PeerHello
static const struct cw_field peer_hello_fields[] = {
	REQUIRED(node),
	UINT(version_min),
	UINT(version_max),
	UINT(epoch),
};
MAP(peer_hello, C, collwatch__peer_hello__descriptor);
#undef C
#undef PB

#define C struct cw_msg_peer_goodbye
#define PB Collwatch__PeerGoodbye
static const struct cw_field peer_goodbye_fields[] = {
	STRING(reason),
};
MAP(peer_goodbye, C, collwatch__peer_goodbye__descriptor);
#undef C
#undef PB

/*
 * Tables of facts: the number of a row in model/fact_list.h is its index, in any order of the rows.
 * The numbers in these messages therefore have no gap. The .proto has the same types.
 */
/* clang-format off */
#define FACT(kind, type, name, number, wire, json, limit, ...) FACT_##kind(name, number, wire, limit)
#define FACT_SAME(name, number, wire, limit) [number - 1] = FACT_OF_##wire(name, limit),
#define FACT_TEXT(name, number, wire, limit) [number - 1] = FACT_OF_##wire(name, limit),
#define FACT_TIME(name, number, wire, limit) [number - 1] = AGE(name##_age_ns),
#define FACT_SPAN(name, number, wire, limit) [number - 1] = FACT_OF_##wire(name, limit),
#define FACT_SENT(name, number, wire, limit) [number - 1] = FACT_OF_##wire(name, limit),
#define FACT_KEPT(name, number, wire, limit)
#define FACT_PART(name, number, wire, limit) [number - 1] = FACT_OF_##wire(name, limit),
#define FACT_OF_uint32(name, limit) NUMBER_(CW_FIELD_UINT, name, (limit) ? CW_FIELD_KNOWN_ONLY : 0, limit)
#define FACT_OF_uint64(name, limit) UINT(name)
#define FACT_OF_fixed64(name, limit) UINT(name)
#define FACT_OF_sint32(name, limit) INT(name)
#define FACT_OF_string(name, limit) STRING(name)
#define FACT_OF_Op(name, limit) MESSAGE(name, &op_map)
#define FACT_OF_Checkpoint(name, limit) LIST(name, limit, &checkpoint_map)
#define FACT_OF_P2pPeer(name, limit) LIST(name, limit, &p2p_peer_map)
#define FACT_OF_Connection(name, limit) LIST(name, limit, &connection_map)
#define FACT_OF_Member(name, limit) LIST(name, limit, &member_map)
/* clang-format on */

#define C struct cw_msg_op
#define PB Collwatch__Op
static const struct cw_field op_fields[] = { CW_OP_FACTS(FACT) };
MAP(op, C, collwatch__op__descriptor);
#undef C
#undef PB

#define C struct cw_checkpoint
#define PB Collwatch__Checkpoint
static const struct cw_field checkpoint_fields[] = { CW_CHECKPOINT_FACTS(FACT) };
MAP(checkpoint, C, collwatch__checkpoint__descriptor);
#undef C
#undef PB

#define C struct cw_p2p_peer
#define PB Collwatch__P2pPeer
static const struct cw_field p2p_peer_fields[] = { CW_P2P_FACTS(FACT) };
MAP(p2p_peer, C, collwatch__p2p_peer__descriptor);
#undef C
#undef PB

#define C struct cw_msg_connection
#define PB Collwatch__Connection
static const struct cw_field connection_fields[] = { CW_CONNECTION_FACTS(FACT) };
MAP(connection, C, collwatch__connection__descriptor);
#undef C
#undef PB

#define C struct cw_msg_member
#define PB Collwatch__Member
static const struct cw_field member_fields[] = { CW_COMM_FACTS(FACT) CW_MEMBER_FACTS(FACT) };
MAP(member, C, collwatch__member__descriptor);
#undef C
#undef PB

#define C struct cw_msg_rank
#define PB Collwatch__Rank
static const struct cw_field rank_fields[] = { CW_RANK_FACTS(FACT) CW_CAUSE_FACTS(FACT) };
MAP(rank, C, collwatch__rank__descriptor);
#undef C
#undef PB

#define C struct cw_msg_digest
#define PB Collwatch__Digest
static const struct cw_field digest_fields[] = {
	UINT(job_hash),
	STRING(label),
	UINT(uid),
	REQUIRED(node),
	UINT(epoch),
	UINT(number),
	LIST(ranks, CW_MSG_MAX_RANKS, &rank_map),
	STRING(policy),
	UINT(muted_until_ns),
	JOB_KEY(job_key),
	UINT(sent_ns),
	UINT(untracked),
};
MAP(digest, C, collwatch__digest__descriptor);
#undef C
#undef PB

#define C struct cw_msg_members
#define PB Collwatch__Members
static const struct cw_field members_fields[] = {
	UINT(job_hash),       UINT(number),     REQUIRED(leader), STRINGS(nodes, CW_MSG_MAX_NODES),
	UINT(n_nodes_in_all), JOB_KEY(job_key), UINT(uid),        STRING(label),
	UINT(standing),
};
MAP(members, C, collwatch__members__descriptor);
#undef C
#undef PB

#define C struct cw_msg_window_request
#define PB Collwatch__WindowRequest
static const struct cw_field window_request_fields[] = {
	UINT(id),         UINT(job_hash), U64S(comm_ids, CW_MSG_MAX_WINDOWS),
	UINT(max_ops),    UINT(from_seq), UINT(to_seq),
	JOB_KEY(job_key), UINT(uid),      STRING(label),
};
MAP(window_request, C, collwatch__window_request__descriptor);
#undef C
#undef PB

#define C struct cw_msg_window
#define PB Collwatch__Window
static const struct cw_field window_fields[] = {
	UINT(comm_id),
	UINT(instance),
	INT(pid),
	UINT(start_ticks),
	LIST(ops, CW_MSG_MAX_WINDOW_OPS, &op_map),
	UINT(lost),
	INT(comm_rank),
};
MAP(window, C, collwatch__window__descriptor);
#undef C
#undef PB

#define C struct cw_msg_window_reply
#define PB Collwatch__WindowReply
static const struct cw_field window_reply_fields[] = {
	UINT(id),
	UINT(job_hash),
	LIST(windows, CW_MSG_MAX_WINDOWS, &window_map),
	STRINGS(stacks, CW_MSG_MAX_STACKS),
};
MAP(window_reply, C, collwatch__window_reply__descriptor);
#undef C
#undef PB

#define C struct cw_msg_evidence_target
#define PB Collwatch__EvidenceTarget
static const struct cw_field evidence_target_fields[] = {
	INT(pid),
	UINT(start_ticks),
	UINT(what),
};
MAP(evidence_target, C, collwatch__evidence_target__descriptor);
#undef C
#undef PB

#define C struct cw_msg_evidence_request
#define PB Collwatch__EvidenceRequest
static const struct cw_field evidence_request_fields[] = {
	UINT(id),          UINT(job_hash),
	UINT(deadline_ms), LIST(targets, CW_MSG_MAX_TARGETS, &evidence_target_map),
	JOB_KEY(job_key),  UINT(uid),
	STRING(label),
};
MAP(evidence_request, C, collwatch__evidence_request__descriptor);
#undef C
#undef PB

#define C struct cw_msg_evidence_reply
#define PB Collwatch__EvidenceReply
static const struct cw_field evidence_reply_fields[] = {
	UINT(id), INT(pid), UINT(start_ticks), STRING(json), UINT(remaining),
};
MAP(evidence_reply, C, collwatch__evidence_reply__descriptor);
#undef C
#undef PB

#define C struct cw_msg_incident_announce
#define PB Collwatch__IncidentAnnounce
static const struct cw_field incident_announce_fields[] = {
	REQUIRED(id), UINT(job_hash), REQUIRED(node),   STRING(summary),
	UINT(uid),    STRING(label),  JOB_KEY(job_key),
};
MAP(incident_announce, C, collwatch__incident_announce__descriptor);
#undef C
#undef PB

#define C struct cw_msg_incident_objection
#define PB Collwatch__IncidentObjection
static const struct cw_field incident_objection_fields[] = {
	REQUIRED(id), REQUIRED(node), STRING(reason), UINT(uid), STRING(label),
};
MAP(incident_objection, C, collwatch__incident_objection__descriptor);
#undef C
#undef PB

/* ---- command line and daemon ---- */

#define C struct cw_msg_control_request
#define PB Collwatch__ControlRequest
static const struct cw_field control_request_fields[] = {
	REQUIRED(verb),
	STRING(json),
};
MAP(control_request, C, collwatch__control_request__descriptor);
#undef C
#undef PB

#define C struct cw_msg_control_reply
#define PB Collwatch__ControlReply
static const struct cw_field control_reply_fields[] = {
	UINT(code),
	STRING(json),
	STRING(error),
};
MAP(control_reply, C, collwatch__control_reply__descriptor);
#undef C
#undef PB

#define C struct cw_msg_rank_search
#define PB Collwatch__RankSearch
static const struct cw_field rank_search_fields[] = {
	UINT(job_hash),
	REQUIRED(label),
	UINT(uid),
	JOB_KEY(job_key),
};
MAP(rank_search, C, collwatch__rank_search__descriptor);
#undef C
#undef PB

#define C struct cw_msg_incident_delivered
#define PB Collwatch__IncidentDelivered
static const struct cw_field incident_delivered_fields[] = {
	REQUIRED(id),
	UINT(uid),
	STRING(label),
};
MAP(incident_delivered, C, collwatch__incident_delivered__descriptor);
#undef C
#undef PB

#define C struct cw_msg_node_request
#define PB Collwatch__NodeRequest
static const struct cw_field node_request_fields[] = {
	UINT(id), REQUIRED(verb), STRING(json), UINT(uid), UINT(sees_all),
};
MAP(node_request, C, collwatch__node_request__descriptor);
#undef C
#undef PB

#define C struct cw_msg_node_reply
#define PB Collwatch__NodeReply
static const struct cw_field node_reply_fields[] = {
	UINT(id),
	UINT(code),
	STRING(json),
	STRING(error),
};
MAP(node_reply, C, collwatch__node_reply__descriptor);
#undef C
#undef PB

#define BODY(name_, number_)                                                                       \
	{                                                                                          \
		.name = #name_, .number = COLLWATCH__ENVELOPE__BODY_##number_,                     \
		.map = &name_##_map,                                                               \
	}

const struct cw_body cw_bodies[CW_MSG__MAX] = {
	[CW_MSG_NONE] = { .name = "none" },
	[CW_MSG_AGENT_HELLO] = BODY(agent_hello, AGENT_HELLO),
	[CW_MSG_AGENT_WELCOME] = BODY(agent_welcome, AGENT_WELCOME),
	[CW_MSG_AGENT_REFUSED] = BODY(agent_refused, AGENT_REFUSED),
	[CW_MSG_PYTHON_STACKS_REQUEST] = BODY(python_stacks_request, PYTHON_STACKS_REQUEST),
	[CW_MSG_PYTHON_STACKS_REPLY] = BODY(python_stacks_reply, PYTHON_STACKS_REPLY),
	[CW_MSG_PEER_HELLO] = BODY(peer_hello, PEER_HELLO),
	[CW_MSG_PEER_GOODBYE] = BODY(peer_goodbye, PEER_GOODBYE),
	[CW_MSG_DIGEST] = BODY(digest, DIGEST),
	[CW_MSG_MEMBERS] = BODY(members, MEMBERS),
	[CW_MSG_WINDOW_REQUEST] = BODY(window_request, WINDOW_REQUEST),
	[CW_MSG_WINDOW_REPLY] = BODY(window_reply, WINDOW_REPLY),
	[CW_MSG_EVIDENCE_REQUEST] = BODY(evidence_request, EVIDENCE_REQUEST),
	[CW_MSG_EVIDENCE_REPLY] = BODY(evidence_reply, EVIDENCE_REPLY),
	[CW_MSG_INCIDENT_ANNOUNCE] = BODY(incident_announce, INCIDENT_ANNOUNCE),
	[CW_MSG_INCIDENT_OBJECTION] = BODY(incident_objection, INCIDENT_OBJECTION),
	[CW_MSG_CONTROL_REQUEST] = BODY(control_request, CONTROL_REQUEST),
	[CW_MSG_CONTROL_REPLY] = BODY(control_reply, CONTROL_REPLY),
	[CW_MSG_RANK_SEARCH] = BODY(rank_search, RANK_SEARCH),
	[CW_MSG_INCIDENT_DELIVERED] = BODY(incident_delivered, INCIDENT_DELIVERED),
	[CW_MSG_NODE_REQUEST] = BODY(node_request, NODE_REQUEST),
	[CW_MSG_NODE_REPLY] = BODY(node_reply, NODE_REPLY),
	[CW_MSG_DIGEST_COPY] = {
		.name = "digest_copy",
		.number = COLLWATCH__ENVELOPE__BODY_DIGEST_COPY,
		.map = &digest_map,
	},
};
