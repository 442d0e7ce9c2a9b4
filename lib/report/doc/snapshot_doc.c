/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table per struct drives both directions (report/fields.h). The writer omits a field whose
 * value is 0. The snapshot's own bits (CW_KNOWN_*) distinguish an unknown value from 0; the
 * document does not.
 *
 * The reader checks every index against the part that it has already read. It limits the memory
 * that a document can claim by the document's own size (MEMBERS_PER_DESCRIBED).
 */
#include "report/doc/snapshot_doc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "report/doc/snapshot_pieces.h"
#include "report/fields.h"
#include "report/json_util.h"

#define SCHEMA "collwatch.snapshot/1"

/*
 * A comm of nranks allocates nranks members, even if the document describes fewer. A leader that
 * sees less than half of a job gives no verdict. So an allocation of 64 members per described one
 * is ample.
 */
#define MEMBERS_FREE 65536u
#define MEMBERS_PER_DESCRIBED 64u

#define F(kind, type, member)                                                                      \
	{                                                                                          \
#member, CW_FIELD_##type, offsetof(struct kind, member)                            \
	}

/* The facts of STRUCT (model/fact_list.h), under their names in that list. */
/* clang-format off */
#define FACT(kind, type, name, number, wire, json, ...) FACT_##kind(name, json)
#define FACT_SAME(name, json) FACT_F(STRUCT, json, name)
#define FACT_TEXT(name, json) FACT_F(STRUCT, json, name)
#define FACT_TIME(name, json) FACT_F(STRUCT, json, name##_ns)
#define FACT_SPAN(name, json) FACT_F(STRUCT, json, name)
#define FACT_SENT(name, json)
#define FACT_KEPT(name, json) FACT_F(STRUCT, json, name)
#define FACT_PART(name, json)
#define FACT_F(kind, json, name) F(kind, json, name),
/* clang-format on */

#define STRUCT cw_op
static const struct cw_field op_fields[] = { CW_OP_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_snap_rank
static const struct cw_field rank_fields[] = { CW_RANK_FACTS(FACT) CW_CAUSE_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_checkpoint
static const struct cw_field checkpoint_fields[] = { CW_CHECKPOINT_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_p2p_peer
static const struct cw_field p2p_fields[] = { CW_P2P_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_snap_connection
static const struct cw_field connection_fields[] = { CW_CONNECTION_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_snap_member
static const struct cw_field member_fields[] = { CW_MEMBER_FACTS(FACT){ NULL } };
#undef STRUCT

#define STRUCT cw_snap_comm
static const struct cw_field comm_fields[] = { CW_COMM_FACTS(FACT){ NULL } };
#undef STRUCT

static const struct cw_field node_fields[] = {
	F(cw_snap_node, TEXT, name),
	F(cw_snap_node, U32, state),
	F(cw_snap_node, I64, last_digest_ns),
	{ NULL },
};

static const struct cw_field threshold_fields[] = {
	F(cw_thresholds, I64, stall_min_ns),         F(cw_thresholds, I64, stall_max_ns),
	F(cw_thresholds, U32, stall_factor),         F(cw_thresholds, I64, first_op_ns),
	F(cw_thresholds, I64, first_op_per_rank_ns), F(cw_thresholds, I64, proof_ns),
	F(cw_thresholds, I64, confirm_ns),           F(cw_thresholds, I64, window_after_ns),
	F(cw_thresholds, I64, no_progress_after_ns), F(cw_thresholds, I64, host_activity_alert_ns),
	F(cw_thresholds, I64, in_collective_ns),     F(cw_thresholds, I64, node_silent_ns),
	F(cw_thresholds, U64, bytes_per_s),          { NULL },
};

static const struct cw_field snapshot_fields[] = {
	F(cw_snapshot, I64, now_ns),    F(cw_snapshot, I64, wall_ns),
	F(cw_snapshot, TEXT, job),      F(cw_snapshot, TEXT, group),
	F(cw_snapshot, U32, policy),    F(cw_snapshot, U32, ranks_expected),
	F(cw_snapshot, U32, untracked), { NULL },
};

/* ---- writing ---- */

static int write_op_member(json_t *doc, const char *key, const struct cw_op *op)
{
	return op ? json_object_set_new(doc, key, cw_fields_write(op_fields, op)) : 0;
}

json_t *cw_snapshot_doc_member(const struct cw_snap_member *m, uint32_t comm_rank)
{
	json_t *doc = cw_fields_write(member_fields, m);
	int bad = 0;

	/* we always write the rank, because index 0 is a rank too */
	bad |= cw_json_add(doc, (struct cw_json_member[]){
					{ "rank", json_integer(m->rank) },
					{ "comm_rank", json_integer(comm_rank) },
					{ "checkpoints",
					  cw_fields_write_array(checkpoint_fields, m->checkpoints,
								CW_SNAP_CHECKPOINTS,
								sizeof(*m->checkpoints)) },
					{ NULL },
				});
	if (m->n_last_hashes)
		bad |= json_object_set_new(doc, "last_hashes",
					   cw_fields_write_array(checkpoint_fields, m->last_hashes,
								 m->n_last_hashes,
								 sizeof(*m->last_hashes)));
	bad |= write_op_member(doc, "pending", m->pending);
	bad |= write_op_member(doc, "last", m->last);
	if (m->window)
		bad |= json_object_set_new(doc, "window",
					   cw_fields_write_array(op_fields, m->window, m->n_window,
								 sizeof(*m->window)));
	if (m->n_p2p)
		bad |= json_object_set_new(
			doc, "p2p",
			cw_fields_write_array(p2p_fields, m->p2p, m->n_p2p, sizeof(*m->p2p)));
	if (m->n_connections)
		bad |= json_object_set_new(doc, "connections",
					   cw_fields_write_array(connection_fields, m->connections,
								 m->n_connections,
								 sizeof(*m->connections)));
	return cw_json_finish(doc, bad);
}

json_t *cw_snapshot_doc_comm(const struct cw_snap_comm *comm)
{
	return cw_fields_write(comm_fields, comm);
}

json_t *cw_snapshot_doc_rank(const struct cw_snap_rank *rank)
{
	json_t *doc = cw_fields_write(rank_fields, rank);
	int bad = 0;

	if (rank->host_call.kind != CW_OP_NONE)
		bad |= json_object_set_new(doc, "host_call",
					   cw_fields_write(op_fields, &rank->host_call));
	return cw_json_finish(doc, bad);
}

static json_t *write_comm(const struct cw_snap_comm *comm)
{
	json_t *doc = cw_snapshot_doc_comm(comm), *members = json_array();
	int bad = 0;

	for (uint32_t m = 0; m < comm->nranks && !bad; m++)
		if (comm->members[m].rank != CW_SNAP_NONE)
			bad |= json_array_append_new(members,
						     cw_snapshot_doc_member(&comm->members[m], m));
	bad |= json_object_set_new(doc, "members", members);
	return cw_json_finish(doc, bad);
}

static json_t *write_notes(const struct cw_snapshot *snap, size_t n_comms)
{
	json_t *notes = json_array();
	char text[96];
	int bad = 0;

	for (uint32_t i = 0; i < snap->n_notes; i++)
		bad |= json_array_append_new(notes, cw_json_text(snap->notes[i]));
	if (n_comms < snap->n_comms) {
		(void)snprintf(text, sizeof(text),
			       "of %" PRIu32 " communicators this snapshot has kept %zu",
			       snap->n_comms, n_comms);
		bad |= json_array_append_new(notes, json_string(text));
	}
	return cw_json_finish(notes, bad);
}

static json_t *write_stacks(const struct cw_snapshot *snap)
{
	json_t *stacks = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < snap->n_stacks; i++)
		bad |= json_array_append_new(stacks, cw_json_text(snap->stacks[i]));
	return cw_json_finish(stacks, bad);
}

json_t *cw_snapshot_doc_head(const struct cw_snapshot *snap, size_t n_comms)
{
	json_t *doc = cw_fields_write(snapshot_fields, snap);
	int bad = 0;

	bad |= cw_json_add(
		doc,
		(struct cw_json_member[]){
			{ "schema", json_string(SCHEMA) },
			{ "thresholds", cw_fields_write(threshold_fields, &snap->thresholds) },
			{ "nodes", cw_fields_write_array(node_fields, snap->nodes, snap->n_nodes,
							 sizeof(*snap->nodes)) },
			{ "notes", write_notes(snap, n_comms) },
			{ NULL },
		});
	if (snap->n_stacks)
		bad |= json_object_set_new(doc, "stacks", write_stacks(snap));
	return cw_json_finish(doc, bad);
}

json_t *cw_snapshot_doc(const struct cw_snapshot *snap)
{
	json_t *doc = cw_snapshot_doc_head(snap, snap->n_comms);
	json_t *ranks = json_array(), *comms = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < snap->n_ranks; i++)
		bad |= json_array_append_new(ranks, cw_snapshot_doc_rank(&snap->ranks[i]));
	for (uint32_t i = 0; i < snap->n_comms; i++)
		bad |= json_array_append_new(comms, write_comm(&snap->comms[i]));
	bad |= json_object_set_new(doc, "ranks", ranks);
	bad |= json_object_set_new(doc, "comms", comms);
	return cw_json_finish(doc, bad);
}

/* ---- reading ---- */

/* Reads the op at key into store. *ret_op becomes store, or NULL if the document has no such op. */
static int read_op(const json_t *doc, const char *key, struct cw_op *store, struct cw_op **ret_op,
		   struct cw_err *err)
{
	const json_t *value = json_object_get(doc, key);

	*ret_op = NULL;
	if (!value)
		return 0;
	*ret_op = store;
	return cw_fields_read(op_fields, value, store, key, err);
}

static int read_checkpoints(const json_t *doc, struct cw_snap_member *m, struct cw_err *err)
{
	_cleanup_(freep) void *items = NULL;
	uint32_t n;
	int r;

	r = cw_fields_read_array(checkpoint_fields, doc, "checkpoints", sizeof(*m->checkpoints),
				 CW_SNAP_CHECKPOINTS, &items, &n, err);
	if (r < 0)
		return r;
	if (n)
		memcpy(m->checkpoints, items, n * sizeof(*m->checkpoints));
	return 0;
}

static int read_member(struct cw_snapshot *snap, uint32_t comm, const json_t *doc,
		       struct cw_err *err)
{
	_cleanup_(freep) void *window = NULL, *p2p = NULL, *last_hashes = NULL, *connections = NULL;
	struct cw_snap_member m = { .rank = CW_SNAP_NONE };
	struct cw_op pending = { 0 }, last = { 0 };
	uint64_t comm_rank;
	int r;

	r = cw_fields_read(member_fields, doc, &m, "member", err);
	if (r == 0)
		r = read_checkpoints(doc, &m, err);
	if (r == 0)
		r = cw_fields_read_array(checkpoint_fields, doc, "last_hashes",
					 sizeof(*m.last_hashes), CW_SNAP_MAX_LAST_HASHES,
					 &last_hashes, &m.n_last_hashes, err);
	if (r == 0)
		r = read_op(doc, "pending", &pending, &m.pending, err);
	if (r == 0)
		r = read_op(doc, "last", &last, &m.last, err);
	if (r == 0)
		r = cw_fields_read_array(op_fields, doc, "window", sizeof(*m.window),
					 CW_SNAP_MAX_MEMBERS, &window, &m.n_window, err);
	if (r == 0)
		r = cw_fields_read_array(p2p_fields, doc, "p2p", sizeof(*m.p2p),
					 CW_SNAP_MAX_MEMBERS, &p2p, &m.n_p2p, err);
	if (r == 0)
		r = cw_fields_read_array(connection_fields, doc, "connections",
					 sizeof(*m.connections), CW_SNAP_MAX_CONNECTIONS,
					 &connections, &m.n_connections, err);
	if (r < 0)
		return r;
	m.window = window;
	m.last_hashes = last_hashes;
	m.p2p = p2p;
	m.connections = connections;
	if (m.rank >= snap->n_ranks)
		return cw_err_set(err, EBADMSG, "member: rank index out of range");
	if (!cw_json_read_u64(json_object_get(doc, "comm_rank"), &comm_rank) ||
	    comm_rank >= snap->comms[comm].nranks)
		return cw_err_set(err, EBADMSG, "member: bad comm_rank");
	r = cw_snapshot_set_member(snap, comm, (uint32_t)comm_rank, &m);
	return r < 0 ? cw_err_set(err, -r == EINVAL ? EBADMSG : -r, "member: %s", strerror(-r)) : 0;
}

static int read_comm(struct cw_snapshot *snap, const json_t *doc, uint64_t *budget,
		     struct cw_err *err)
{
	const json_t *members = json_object_get(doc, "members"), *entry;
	struct cw_snap_comm comm = { 0 };
	uint32_t index;
	size_t i;
	int r;

	r = cw_fields_read(comm_fields, doc, &comm, "comm", err);
	if (r < 0)
		return r;
	if (!json_is_array(members))
		return cw_err_set(err, EBADMSG, "comm: \"members\" is not an array");
	*budget += MEMBERS_PER_DESCRIBED * (uint64_t)json_array_size(members);
	if (comm.nranks > *budget)
		return cw_err_set(err, E2BIG, "comm: %" PRIu32 " members, hardly any described",
				  comm.nranks);
	*budget -= comm.nranks;
	r = cw_snapshot_add_comm(snap, &comm, &index);
	if (r < 0)
		return cw_err_set(err, -r, "comm: %s", strerror(-r));
	json_array_foreach (members, i, entry) {
		r = read_member(snap, index, entry, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_node(struct cw_snapshot *snap, const json_t *doc, struct cw_err *err)
{
	struct cw_snap_node node = { 0 };
	uint32_t index;
	int r;

	r = cw_fields_read(node_fields, doc, &node, "node", err);
	if (r < 0)
		return r;
	r = cw_snapshot_add_node(snap, node.name ? node.name : "", &index);
	if (r < 0)
		return cw_err_set(err, -r, "node: %s", strerror(-r));
	snap->nodes[index].state = node.state;
	snap->nodes[index].last_digest_ns = node.last_digest_ns;
	return 0;
}

static int read_rank(struct cw_snapshot *snap, const json_t *doc, struct cw_err *err)
{
	struct cw_snap_rank rank = { 0 };
	struct cw_op *host_call;
	uint32_t index;
	int r;

	r = cw_fields_read(rank_fields, doc, &rank, "rank", err);
	if (r == 0)
		r = read_op(doc, "host_call", &rank.host_call, &host_call, err);
	if (r < 0)
		return r;
	if (rank.node >= snap->n_nodes)
		return cw_err_set(err, EBADMSG, "rank: node index out of range");
	r = cw_snapshot_add_rank(snap, &rank, &index);
	return r < 0 ? cw_err_set(err, -r, "rank: %s", strerror(-r)) : 0;
}

/*
 * Adds the stacks to the snapshot and requires that each keeps its number. A text that occurs twice
 * would shift the numbers after it, so we refuse such a document. Our own documents contain no text
 * twice.
 */
static int read_stacks(struct cw_snapshot *snap, const json_t *stacks, struct cw_err *err)
{
	const json_t *entry;
	uint32_t number;
	size_t i;
	int r;

	json_array_foreach (stacks, i, entry) {
		if (!json_is_string(entry))
			return cw_err_set(err, EBADMSG, "\"stacks\": not strings");
		r = cw_snapshot_add_stack(snap, json_string_value(entry), &number);
		if (r < 0)
			return cw_err_set(err, -r, "stack: %s", strerror(-r));
		if (number != i + 1)
			return cw_err_set(err, EBADMSG, "\"stacks\": too many, or one twice");
	}
	return 0;
}

static int read_lists(struct cw_snapshot *snap, const json_t *doc, struct cw_err *err)
{
	uint64_t budget = MEMBERS_FREE;
	const json_t *entry;
	size_t i;
	int r;

	json_array_foreach (json_object_get(doc, "nodes"), i, entry) {
		r = read_node(snap, entry, err);
		if (r < 0)
			return r;
	}
	json_array_foreach (json_object_get(doc, "ranks"), i, entry) {
		r = read_rank(snap, entry, err);
		if (r < 0)
			return r;
	}
	json_array_foreach (json_object_get(doc, "comms"), i, entry) {
		r = read_comm(snap, entry, &budget, err);
		if (r < 0)
			return r;
	}
	json_array_foreach (json_object_get(doc, "notes"), i, entry) {
		if (!json_is_string(entry))
			return cw_err_set(err, EBADMSG, "\"notes\": not strings");
		r = cw_snapshot_add_note(snap, json_string_value(entry));
		if (r < 0)
			return cw_err_set(err, -r, "note: %s", strerror(-r));
	}
	return 0;
}

static int read_snapshot(struct cw_snapshot *snap, const json_t *doc, struct cw_err *err)
{
	static const char *const lists[] = { "nodes", "ranks", "comms", "notes" };
	struct cw_snapshot head = { 0 };
	int r;

	if (strcmp(cw_json_str(doc, "schema", ""), SCHEMA) != 0)
		return cw_err_set(err, EBADMSG, "not a " SCHEMA " document");
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (!json_is_array(json_object_get(doc, lists[i])))
			return cw_err_set(err, EBADMSG, "\"%s\": not an array", lists[i]);
	r = cw_fields_read(snapshot_fields, doc, &head, "snapshot", err);
	if (r == 0)
		r = cw_fields_read(threshold_fields, json_object_get(doc, "thresholds"),
				   &head.thresholds, "thresholds", err);
	if (r < 0)
		return r;
	snap->now_ns = head.now_ns;
	snap->wall_ns = head.wall_ns;
	snap->policy = head.policy;
	snap->ranks_expected = head.ranks_expected;
	snap->untracked = head.untracked;
	snap->thresholds = head.thresholds;
	r = cw_snapshot_set_job(snap, head.job, head.group);
	if (r < 0)
		return cw_err_set(err, -r, "job: %s", strerror(-r));
	r = read_stacks(snap, json_object_get(doc, "stacks"), err);
	return r < 0 ? r : read_lists(snap, doc, err);
}

int cw_snapshot_from_doc(const json_t *doc, struct cw_snapshot **ret, struct cw_err *err)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	int r;

	r = snap ? read_snapshot(snap, doc, err) : -ENOMEM;
	if (r == -ENOMEM)
		(void)cw_err_set(err, ENOMEM, "out of memory");
	if (r < 0) {
		cw_snapshot_free(snap);
		return r;
	}
	*ret = snap;
	return 0;
}
