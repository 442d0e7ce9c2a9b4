/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All messages between collwatch's processes, as plain C structs. proto/collwatch.proto documents
 * the meaning, field by field and under the same names. proto/codec.h converts the structs to bytes
 * and back. Code outside proto/ never uses generated names.
 *
 * Ownership: an outgoing message borrows everything that it points to. A decoded message (struct
 * cw_message) owns all of its parts in memory of its own, and cw_message_free() releases them.
 * Strings of decoded messages are never NULL. They are NUL-terminated valid UTF-8 without control
 * characters other than \t and \n. An age counts in ns back from the moment when the message's
 * facts were sampled. The decoder clamps ages (cw_bounded_ns()).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/job_key.h"
#include "model/op.h"

#ifndef CW_WIRE_VERSION /* a test builds programs of the next version */
#define CW_WIRE_VERSION 1u
#endif
#define CW_WIRE_VERSION_MIN 1u

/*
 * Limits of messages. The decoder refuses a message that exceeds a limit, and never truncates it.
 */
#define CW_MSG_MAX_RANKS 4096u       /* per digest: processes of one job on one node */
#define CW_MSG_MAX_MEMBERS 256u      /* per rank */
#define CW_MSG_MAX_CHECKPOINTS 16u   /* per member */
#define CW_MSG_MAX_LAST_HASHES 8u    /* per member */
#define CW_MSG_MAX_P2P 256u          /* per member */
#define CW_MSG_MAX_CONNECTIONS 1024u /* per member: all slots of a record */
#define CW_MSG_MAX_WINDOW_OPS 8192u
#define CW_MSG_MAX_WINDOWS 4096u
/* An op takes at most ~133 bytes, so this many ops fill four fifths of a frame. */
#define CW_MSG_MAX_REPLY_OPS 6400u
#define CW_MSG_MAX_STACKS 1024u /* per reply */
#define CW_MSG_MAX_TARGETS 4096u
#define CW_MSG_MAX_NODES 65536u
#define CW_MSG_MAX_STRING (512u << 10)

enum cw_message_type {
	/*
	 * The decoder's type for a message that this version does not know. Receivers skip and
	 * count it.
	 */
	CW_MSG_NONE = 0,
	CW_MSG_AGENT_HELLO,
	CW_MSG_AGENT_WELCOME,
	CW_MSG_AGENT_REFUSED,
	CW_MSG_PYTHON_STACKS_REQUEST,
	CW_MSG_PYTHON_STACKS_REPLY,
	CW_MSG_PEER_HELLO,
	CW_MSG_PEER_GOODBYE,
	CW_MSG_DIGEST,
	CW_MSG_MEMBERS,
	CW_MSG_WINDOW_REQUEST,
	CW_MSG_WINDOW_REPLY,
	CW_MSG_EVIDENCE_REQUEST,
	CW_MSG_EVIDENCE_REPLY,
	CW_MSG_INCIDENT_ANNOUNCE,
	CW_MSG_INCIDENT_OBJECTION,
	CW_MSG_CONTROL_REQUEST,
	CW_MSG_CONTROL_REPLY,
	CW_MSG_DIGEST_COPY, /* its message is in `digest`; for the node that leads the job next */
	CW_MSG_RANK_SEARCH,
	CW_MSG_INCIDENT_DELIVERED,
	CW_MSG_NODE_REQUEST,
	CW_MSG_NODE_REPLY,
	CW_MSG__MAX,
};

struct cw_msg_agent_hello {
	uint32_t version_min, version_max;
	uint64_t record_bytes;
	uint32_t record_error; /* errno if there is no record and no descriptor; else 0 */
};

struct cw_msg_agent_welcome {
	uint32_t version;
	const char *daemon;
};

struct cw_msg_agent_refused {
	const char *reason;
};

struct cw_msg_python_stacks_request {
	uint64_t id;
};

enum cw_python_status {
	CW_PYTHON_OK = 0,
	CW_PYTHON_ABSENT = 1, /* no interpreter in the process */
	/* Python stacks are switched off, no signal is free, the interpreter is too old, … */
	CW_PYTHON_NOT_ARMED = 2,
	CW_PYTHON_FAILED = 3,
};

struct cw_msg_python_stacks_reply {
	uint64_t id;
	uint32_t status; /* enum cw_python_status */
	const char *text;
};

struct cw_msg_peer_hello {
	const char *node;
	uint32_t version_min, version_max;
	uint64_t epoch;
};

struct cw_msg_peer_goodbye {
	const char *reason;
};

/* Facts about ops, ranks and communicators: model/fact_list.h. */

struct cw_msg_op {
	CW_SAME_FACTS(op_facts, CW_OP_FACTS);
	CW_OP_FACTS(CW_SENT_FIELD)
};

struct cw_msg_connection {
	CW_SAME_FACTS(connection_facts, CW_CONNECTION_FACTS);
	CW_CONNECTION_FACTS(CW_SENT_FIELD)
};

/* One rank's view of one communicator. */
struct cw_msg_member {
	CW_SAME_FACTS(comm_facts, CW_COMM_FACTS);
	CW_COMM_FACTS(CW_SENT_FIELD)
	CW_SAME_FACTS(member_facts, CW_MEMBER_FACTS);
	CW_MEMBER_FACTS(CW_SENT_FIELD)
	struct cw_checkpoint *checkpoints; /* newest first */
	uint32_t n_checkpoints;
	struct cw_checkpoint *last_hashes; /* oldest first */
	uint32_t n_last_hashes;
	const struct cw_msg_op *pending; /* oldest incomplete op; NULL = none */
	const struct cw_msg_op *last;    /* newest op entered; NULL = none */
	struct cw_p2p_peer *p2p;
	uint32_t n_p2p;
	struct cw_msg_connection *connections;
	uint32_t n_connections;
};

struct cw_msg_rank {
	CW_SAME_FACTS(rank_facts, CW_RANK_FACTS);
	CW_RANK_FACTS(CW_SENT_FIELD)
	CW_SAME_FACTS(cause_facts, CW_CAUSE_FACTS);
	CW_CAUSE_FACTS(CW_SENT_FIELD)
	/* Call that blocks the host outside any known comm; NULL = none. */
	const struct cw_msg_op *host_call;
	struct cw_msg_member *members;
	uint32_t n_members;
};

/*
 * A message names its job by job_key, uid and label (identity/job_id.h reads and compares them).
 * The key may be absent. A message without a label names no job.
 */
struct cw_msg_digest {
	uint64_t job_hash;
	struct cw_job_key job_key;
	const char *label;
	uint32_t uid;
	const char *node;
	uint64_t epoch, number;
	const char *policy;
	struct cw_msg_rank *ranks;
	uint32_t n_ranks;
	uint64_t muted_until_ns; /* wall clock; 0 = this node has not muted the job */
	uint64_t sent_ns;        /* time of sending on the sender's monotonic clock; 0 = not sent */
	uint32_t untracked;      /* rank processes beyond the node's limit */
};

/* Says whether the job's leader watches the job. */
enum cw_standing {
	CW_STANDING_WATCHED = 0,
	CW_STANDING_INCIDENT = 1,   /* the job has an open incident: no other job may displace it */
	CW_STANDING_OVER_QUOTA = 2, /* the leader is at its limit of jobs and does not watch it */
};

struct cw_msg_members {
	uint64_t job_hash, number;
	const char *leader;
	const char **nodes; /* names; empty if the job has too many nodes */
	uint32_t n_nodes;
	uint32_t n_nodes_in_all; /* 0 = `nodes` lists all nodes */
	uint32_t standing;       /* enum cw_standing */
	struct cw_job_key job_key;
	uint32_t uid;
	const char *label;
};

struct cw_msg_rank_search {
	uint64_t job_hash;
	struct cw_job_key job_key;
	const char *label;
	uint32_t uid;
};

struct cw_msg_window_request {
	uint64_t id, job_hash;
	uint64_t *comm_ids;
	uint32_t n_comm_ids;
	uint32_t max_ops; /* per window */
	/*
	 * With 0: request the last ops. Otherwise: request the collectives with these coll_seq,
	 * with their whole groups.
	 */
	uint64_t from_seq, to_seq;
	struct cw_job_key job_key;
	uint32_t uid;
	const char *label;
};

struct cw_msg_window {
	uint64_t comm_id;
	uint32_t instance;
	int32_t pid;
	uint64_t start_ticks;
	int32_t comm_rank;
	struct cw_msg_op *ops; /* oldest first */
	uint32_t n_ops;
	uint64_t lost;
};

struct cw_msg_window_reply {
	uint64_t id, job_hash;
	struct cw_msg_window *windows;
	uint32_t n_windows;
	const char **stacks; /* stacks of the ops; an op's stack number n is stacks[n - 1] */
	uint32_t n_stacks;
};

enum { /* bits of cw_msg_evidence_target.what */
       CW_EVIDENCE_PROC = 1 << 0,
       CW_EVIDENCE_NATIVE = 1 << 1,
       /* Python stacks. If the daemon cannot read them from outside, the agent may take them. */
       CW_EVIDENCE_PYTHON = 1 << 2,
       /* Collect only main threads and threads inside NCCL. The request is not urgent. */
       CW_EVIDENCE_BRIEF = 1 << 3,
       /* Python stacks, which the daemon reads from outside only, even from a running process. */
       CW_EVIDENCE_PYTHON_READ = 1 << 4,
       /* Native stacks, but only if there is no Python stack. They hold the process shortly. */
       CW_EVIDENCE_NATIVE_ELSE = 1 << 5,
       /* All Python threads, even with CW_EVIDENCE_BRIEF. */
       CW_EVIDENCE_ALL_PYTHON = 1 << 6,
};

struct cw_msg_evidence_target {
	int32_t pid;
	uint64_t start_ticks;
	uint32_t what;
};

struct cw_msg_evidence_request {
	uint64_t id, job_hash;
	uint32_t deadline_ms;
	struct cw_msg_evidence_target *targets;
	uint32_t n_targets;
	struct cw_job_key job_key;
	uint32_t uid;
	const char *label;
};

struct cw_msg_evidence_reply {
	uint64_t id;
	int32_t pid;
	uint64_t start_ticks;
	const char *json; /* collwatch.evidence/1 */
	uint32_t remaining;
};

struct cw_msg_incident_announce {
	const char *id;
	uint64_t job_hash;
	const char *node;
	const char *summary;
	uint32_t uid;
	const char *label;
	struct cw_job_key job_key;
};

struct cw_msg_incident_objection {
	const char *id;
	const char *node;
	const char *reason;
	uint32_t uid;
	const char *label;
};

struct cw_msg_incident_delivered {
	const char *id;
	uint32_t uid;
	const char *label;
};

struct cw_msg_node_request {
	uint64_t id;
	const char *verb;
	const char *json;
	uint32_t uid;
	uint32_t sees_all; /* 1 = the user is root, the daemon's user or in the socket's group */
};

struct cw_msg_node_reply {
	uint64_t id;
	uint32_t code;
	const char *json;
	const char *error;
};

struct cw_msg_control_request {
	const char *verb;
	const char *json;
};

struct cw_msg_control_reply {
	uint32_t code;
	const char *json;
	const char *error;
};

struct cw_message {
	uint32_t type;    /* enum cw_message_type */
	uint32_t version; /* version of the sender; the encoder sets it */
	union {
		struct cw_msg_agent_hello agent_hello;
		struct cw_msg_agent_welcome agent_welcome;
		struct cw_msg_agent_refused agent_refused;
		struct cw_msg_python_stacks_request python_stacks_request;
		struct cw_msg_python_stacks_reply python_stacks_reply;
		struct cw_msg_peer_hello peer_hello;
		struct cw_msg_peer_goodbye peer_goodbye;
		struct cw_msg_digest digest;
		struct cw_msg_members members;
		struct cw_msg_window_request window_request;
		struct cw_msg_window_reply window_reply;
		struct cw_msg_evidence_request evidence_request;
		struct cw_msg_evidence_reply evidence_reply;
		struct cw_msg_incident_announce incident_announce;
		struct cw_msg_incident_objection incident_objection;
		struct cw_msg_rank_search rank_search;
		struct cw_msg_incident_delivered incident_delivered;
		struct cw_msg_node_request node_request;
		struct cw_msg_node_reply node_reply;
		struct cw_msg_control_request control_request;
		struct cw_msg_control_reply control_reply;
	};
	void *memory; /* private to the codec; NULL in an outgoing message */
};
