/* SPDX-License-Identifier: Apache-2.0 */
/* The newest dump version that we write. import/fr_export.c lists the analyser's requirements. */
#include "import/fr_export_doc.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "import/fr_dump.h"
#include "import/pickle/pickle_write.h"

#define VERSION "2.10"
/* The time-out of a call in the dump: PyTorch's default. */
#define TIMEOUT_MS 600000

/* ---- an entry ---- */

static const char *state_of(const struct fr_out_entry *e)
{
	const struct cw_snap_member *m = e->member->snap;
	const struct cw_op *op = e->op;

	/* Members of a coalesced launch have no state of their own. */
	if (e->is_coalesced && !e->ends_group)
		return "scheduled";
	if (op->progress == CW_PROGRESS_COMPLETED)
		return "completed";
	if (op->progress == CW_PROGRESS_REACHED)
		return "started";
	if (op->progress == CW_PROGRESS_UNKNOWN && (m->known & CW_KNOWN_COMPLETED) &&
	    op->coll_seq && op->coll_seq <= m->coll_completed)
		return "completed";
	return "scheduled";
}

static const char *name_of(const struct cw_op *op)
{
	switch (op->kind) {
	case CW_OP_ALL_GATHER:
		return "_all_gather_base";
	case CW_OP_REDUCE_SCATTER:
		return "_reduce_scatter_base";
	default:
		return cw_op_kind_name(op->kind);
	}
}

static void put_profiling_name(FILE *out, const struct fr_out_dump *d, const struct fr_out_entry *e)
{
	const struct fr_out_comm *c = &d->x->comms[e->member->comm];
	char text[96];

	if (e->ends_group)
		(void)snprintf(text, sizeof(text), "nccl:coalesced");
	else if (cw_op_is_p2p(e->op->kind))
		(void)snprintf(text, sizeof(text), "nccl:%s %" PRIu32 "%s%" PRIu32,
			       cw_op_kind_name(e->op->kind), c->place_of[e->member->comm_rank],
			       e->op->kind == CW_OP_SEND ? "->" : "<-", c->place_of[e->op->peer]);
	else
		(void)snprintf(text, sizeof(text), "nccl:%s", name_of(e->op));
	pickle_text(out, text);
}

/*
 * Writes the sizes of one tensor with this number of elements. The entry that closes a launch has
 * no sizes.
 */
static void put_sizes(FILE *out, const struct fr_out_entry *e, uint64_t count)
{
	pickle_open_list(out);
	if (!e->ends_group) {
		pickle_open_list(out);
		pickle_int(out, count > INT64_MAX ? INT64_MAX : (int64_t)count);
		pickle_close_list(out);
	}
	pickle_close_list(out);
}

static void put_dtypes(FILE *out, const struct fr_out_entry *e)
{
	pickle_open_list(out);
	if (!e->ends_group)
		pickle_text(out, cw_fr_dtype_name(e->op->dtype));
	pickle_close_list(out);
}

static uint64_t times(uint64_t count, uint32_t n)
{
	uint64_t product;

	return __builtin_mul_overflow(count, (uint64_t)n, &product) ? count : product;
}

static void put_shapes(FILE *out, const struct fr_out_dump *d, const struct fr_out_entry *e)
{
	uint32_t n = d->x->comms[e->member->comm].snap->nranks;
	uint64_t in = e->op->count, res = e->op->count;

	if (e->op->kind == CW_OP_ALL_GATHER || e->op->kind == CW_OP_ALL_TO_ALL)
		res = times(res, n);
	if (e->op->kind == CW_OP_REDUCE_SCATTER || e->op->kind == CW_OP_ALL_TO_ALL)
		in = times(in, n);
	pickle_text(out, "input_sizes");
	put_sizes(out, e, in);
	pickle_text(out, "input_dtypes");
	put_dtypes(out, e);
	pickle_text(out, "output_sizes");
	put_sizes(out, e, res);
	pickle_text(out, "output_dtypes");
	put_dtypes(out, e);
}

static int64_t to_wall(const struct cw_snapshot *snap, int64_t at_ns)
{
	int64_t age, wall;

	if (__builtin_sub_overflow(snap->now_ns, at_ns, &age) ||
	    __builtin_sub_overflow(snap->wall_ns, age, &wall))
		return 0;
	return wall > 0 ? wall : 0;
}

static void put_time_or_none(FILE *out, const char *key, bool is_there, int64_t wall_ns)
{
	pickle_text(out, key);
	if (is_there && wall_ns > 0)
		pickle_int(out, wall_ns);
	else
		pickle_none(out);
}

static void put_state(FILE *out, const struct fr_out_dump *d, const struct fr_out_entry *e)
{
	const struct cw_snapshot *snap = d->x->snap;
	const char *state = state_of(e);
	bool is_done = strcmp(state, "completed") == 0;
	/*
	 * PyTorch gives a call a start time only if it tracks the device's progress. We do the
	 * same.
	 */
	bool is_timed =
		strcmp(state, "scheduled") != 0 && (e->member->snap->known & CW_KNOWN_REACHED);
	int64_t enter = to_wall(snap, e->op->enter_ns), end = to_wall(snap, e->op->return_ns);

	pickle_text(out, "state");
	pickle_text(out, state);
	pickle_text(out, "time_created_ns");
	pickle_int(out, enter);
	put_time_or_none(out, "time_discovered_started_ns", is_timed, enter);
	put_time_or_none(out, "time_discovered_completed_ns", is_done,
			 end > enter ? end : enter + 1);
	pickle_text(out, "retired");
	pickle_bool(out, is_done);
	pickle_text(out, "timeout_ms");
	pickle_int(out, TIMEOUT_MS);
}

static void put_pair_of(FILE *out, const char *key, int64_t value)
{
	pickle_text(out, key);
	pickle_int(out, value);
}

static const char *desc_of(const struct cw_snap_comm *comm)
{
	return comm->name && comm->name[0] ? comm->name : "undefined";
}

static void put_entry(FILE *out, const struct fr_out_dump *d, uint32_t i)
{
	const struct fr_out_entry *e = &d->entries[i];
	const struct fr_out_comm *c = &d->x->comms[e->member->comm];
	bool p2p = cw_op_is_p2p(e->op->kind);

	pickle_open_dict(out);
	put_pair_of(out, "record_id", i);
	put_pair_of(out, "pg_id", e->pg_id);
	pickle_text(out, "process_group");
	pickle_text(out, c->name);
	pickle_text(out, desc_of(c->snap));
	pickle_pair(out);
	put_pair_of(out, "collective_seq_id",
		    (int64_t)((p2p ? e->last_coll : e->op->coll_seq) & INT64_MAX));
	put_pair_of(out, "p2p_seq_id", (int64_t)(e->p2p_seq & INT64_MAX));
	put_pair_of(out, "op_id", (int64_t)(e->op->op_index & INT64_MAX));
	pickle_text(out, "profiling_name");
	put_profiling_name(out, d, e);
	put_shapes(out, d, e);
	put_state(out, d, e);
	pickle_text(out, "is_p2p");
	pickle_bool(out, p2p);
	/* We do not record where the program made the call, so the list of frames is empty. */
	pickle_text(out, "frames");
	pickle_open_list(out);
	pickle_close_list(out);
	pickle_close_dict(out);
}

/* ---- the rest of a dump ---- */

static void put_ranks(FILE *out, const struct fr_out_comm *c)
{
	size_t room = (size_t)c->snap->nranks * 12 + 8, used = 1;
	_cleanup_(freep) char *text = malloc(room);

	if (!text) {
		pickle_text(out, "[]");
		return;
	}
	text[0] = '[';
	text[1] = '\0';
	for (uint32_t i = 0; i < c->snap->nranks; i++)
		used += (size_t)snprintf(text + used, room - used, "%s%" PRId32, i ? ", " : "",
					 c->sorted[i].label);
	(void)snprintf(text + used, room - used, "]");
	pickle_text(out, text);
}

static void put_groups(FILE *out, const struct fr_out_dump *d)
{
	const struct fr_out *x = d->x;

	pickle_text(out, "pg_config");
	pickle_open_dict(out);
	for (uint32_t i = x->start[d->rank]; i < x->start[d->rank + 1]; i++) {
		const struct fr_out_comm *c = &x->comms[x->members[i].comm];

		pickle_text(out, c->name);
		pickle_open_dict(out);
		pickle_text(out, "name");
		pickle_text(out, c->name);
		pickle_text(out, "desc");
		pickle_text(out, desc_of(c->snap));
		pickle_text(out, "ranks");
		put_ranks(out, c);
		pickle_close_dict(out);
	}
	pickle_close_dict(out);
}

static int64_t number_or_none(const struct cw_snap_member *m, uint32_t known, uint64_t value)
{
	return (m->known & known) && value ? (int64_t)(value & INT64_MAX) : -1;
}

static void put_status(FILE *out, const struct fr_out_dump *d)
{
	const struct fr_out *x = d->x;
	uint32_t first = x->start[d->rank];

	pickle_text(out, "pg_status");
	pickle_open_dict(out);
	for (uint32_t i = first; i < x->start[d->rank + 1]; i++) {
		const struct cw_snap_member *m = x->members[i].snap;
		char id[16];

		(void)snprintf(id, sizeof(id), "%" PRIu32, i - first);
		pickle_text(out, id);
		pickle_open_dict(out);
		put_pair_of(out, "last_enqueued_collective",
			    number_or_none(m, CW_KNOWN_ENTERED, m->coll_entered));
		put_pair_of(out, "last_started_collective",
			    number_or_none(m, CW_KNOWN_REACHED, m->coll_reached));
		put_pair_of(out, "last_completed_collective",
			    number_or_none(m, CW_KNOWN_COMPLETED, m->coll_completed));
		pickle_close_dict(out);
	}
	pickle_close_dict(out);
}

static void put_head(FILE *out, const struct fr_out_dump *d)
{
	const struct cw_snap_rank *rank = &d->x->snap->ranks[d->rank];
	const char *node =
		rank->node < d->x->snap->n_nodes ? d->x->snap->nodes[rank->node].name : NULL;
	char version[32];

	(void)snprintf(version, sizeof(version), "%" PRIu32 ".%" PRIu32 ".%" PRIu32,
		       rank->nccl_version / 10000, rank->nccl_version / 100 % 100,
		       rank->nccl_version % 100);
	pickle_text(out, "version");
	pickle_text(out, VERSION);
	/* PyTorch renamed this key, so we write both names. */
	pickle_text(out, "nccl_version");
	pickle_text(out, version);
	pickle_text(out, "comm_lib_version");
	pickle_text(out, version);
	pickle_text(out, "host_name");
	pickle_text(out, node ? node : "");
	put_pair_of(out, "rank", rank->rank);
}

void fr_out_put_dump(FILE *out, const struct fr_out_dump *d)
{
	pickle_begin(out);
	pickle_open_dict(out);
	put_head(out, d);
	put_groups(out, d);
	put_status(out, d);
	pickle_text(out, "entries");
	pickle_open_list(out);
	for (uint32_t i = 0; i < d->n; i++)
		put_entry(out, d, i);
	pickle_close_list(out);
	pickle_close_dict(out);
	pickle_end(out);
}
