/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/wording/arg.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A daemon's text about a death or stop is shorter than this limit, but a peer may send a longer
 * text.
 */
#define TEXT_BYTES 160

static const char *kept(const struct diagnosis *diag, const char *text)
{
	const char *copy = text && *text ? cw_arena_strdup(diag->arena, text) : NULL;

	return copy ? copy : "";
}

bool arg_is_empty_recording(const struct cw_snap_rank *rank)
{
	return rank->liveness == CW_LIVE_UNKNOWN && rank->sampled_ns &&
	       !(rank->flags & CW_RANKF_HAS_RECORD);
}

struct cw_arg arg_labels(const struct diagnosis *diag, const int32_t *labels, uint32_t n)
{
	return (struct cw_arg){
		.kind = CW_ARG_RANKS,
		.ranks = { .labels = cw_arena_memdup(diag->arena, labels, n, sizeof(*labels)),
			   .n = n },
	};
}

struct cw_arg arg_ranks(const struct diagnosis *diag, const uint32_t *ranks, uint32_t n)
{
	int32_t *labels = n ? cw_arena_new_array(diag->arena, int32_t, n) : NULL;

	for (uint32_t i = 0; labels && i < n; i++)
		labels[i] = diag->s->snap->ranks[ranks[i]].rank;
	return (struct cw_arg){ .kind = CW_ARG_RANKS, .ranks = { .labels = labels, .n = n } };
}

struct cw_arg arg_rank(const struct diagnosis *diag, uint32_t rank)
{
	return arg_ranks(diag, &rank, 1);
}

struct cw_arg arg_process(const struct diagnosis *diag, uint32_t rank)
{
	const struct cw_snapshot *snap = diag->s->snap;
	const struct cw_snap_rank *r = &snap->ranks[rank];

	return (struct cw_arg){
		.kind = CW_ARG_PROCESS,
		.process = { .label = r->rank,
			     .pid = r->pid,
			     .own_pid = r->own_pid,
			     .host = kept(diag, r->node < snap->n_nodes ? snap->nodes[r->node].name
									: NULL),
			     .pod = kept(diag, r->pod),
			     .pod_namespace = kept(diag, r->pod_namespace) },
	};
}

struct cw_arg arg_who(const struct diagnosis *diag, const uint32_t *ranks, uint32_t n)
{
	return n == 1 ? arg_process(diag, ranks[0]) : arg_ranks(diag, ranks, n);
}

struct cw_arg arg_host(const struct diagnosis *diag, uint32_t node)
{
	const struct cw_snapshot *snap = diag->s->snap;

	return (struct cw_arg){
		.kind = CW_ARG_HOST,
		.text = kept(diag, node < snap->n_nodes ? snap->nodes[node].name : NULL),
	};
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(*(const char *const *)a, *(const char *const *)b);
}

struct cw_arg arg_hosts(const struct diagnosis *diag, const uint32_t *nodes, uint32_t n)
{
	const char **names = cw_arena_new_array(diag->arena, const char *, n);

	for (uint32_t i = 0; names && i < n; i++)
		names[i] = arg_host(diag, nodes[i]).text;
	if (names)
		qsort(names, n, sizeof(*names), compare_names);
	return (struct cw_arg){ .kind = CW_ARG_HOSTS,
				.hosts = { .names = names, .n = names ? n : 0 } };
}

struct cw_arg arg_comm(const struct diagnosis *diag, uint32_t comm)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[comm];

	return (struct cw_arg){
		.kind = CW_ARG_COMM,
		.comm = { .name = kept(diag, c->name), .id = c->id },
	};
}

/* Returns the rank number of the comm's member `peer`; -1 if the member is not visible. */
static int32_t label_of_peer(const struct cw_snapshot *snap, uint32_t comm, int32_t peer)
{
	const struct cw_snap_comm *c = comm < snap->n_comms ? &snap->comms[comm] : NULL;
	uint32_t rank =
		c && peer >= 0 && (uint32_t)peer < c->nranks ? c->members[peer].rank : CW_SNAP_NONE;

	return rank < snap->n_ranks ? snap->ranks[rank].rank : -1;
}

struct cw_arg arg_kind(unsigned kind)
{
	return (struct cw_arg){ .kind = CW_ARG_CALL,
				.call = { .kind = (uint8_t)kind, .peer = -1 } };
}

struct cw_arg arg_call(const struct diagnosis *diag, uint32_t comm, const struct cw_op *op)
{
	struct cw_arg arg = arg_kind(op ? op->kind : CW_OP_NONE);
	int32_t label;

	if (!op) {
		arg.call.is_unknown = true;
		return arg;
	}
	if (!cw_op_is_p2p(op->kind)) {
		arg.call.seq = op->coll_seq;
		return arg;
	}
	arg.call.seq = op->p2p_seq;
	if (op->peer < 0)
		return arg;
	label = label_of_peer(diag->s->snap, comm, op->peer);
	arg.call.is_comm_rank = label < 0;
	arg.call.peer = label < 0 ? op->peer : label;
	return arg;
}

struct cw_arg arg_op(const struct cw_op *op)
{
	return (struct cw_arg){ .kind = CW_ARG_OP, .op = *op };
}

struct cw_arg arg_since(const struct diagnosis *diag, int64_t then_ns)
{
	return (struct cw_arg){
		.kind = CW_ARG_DURATION,
		.duration = { .ns = then_ns ? diag->s->snap->now_ns - then_ns : 0,
			      .is_unknown = !then_ns },
	};
}

struct cw_arg arg_less_than(int64_t ns)
{
	return (struct cw_arg){ .kind = CW_ARG_DURATION,
				.duration = { .ns = ns, .is_less = true } };
}

struct cw_arg arg_error(const struct diagnosis *diag, int32_t result, const char *text)
{
	return (struct cw_arg){ .kind = CW_ARG_ERROR,
				.error = { .result = result, .text = kept(diag, text) } };
}

struct cw_arg arg_text(const struct diagnosis *diag, const char *text)
{
	char cut[TEXT_BYTES + 1];

	(void)snprintf(cut, sizeof(cut), "%s", text ? text : "");
	return (struct cw_arg){ .kind = CW_ARG_TEXT, .text = kept(diag, cut) };
}

struct cw_arg arg_clause(const struct cw_clause *clause)
{
	static const struct cw_clause nothing = { 0 };
	const struct cw_clause *copy = cw_arena_memdup(clause->arena, clause, 1, sizeof(*clause));

	return (struct cw_arg){ .kind = CW_ARG_CLAUSE, .clause = copy ? copy : &nothing };
}

void say_trait(const struct diagnosis *diag, uint32_t comm, uint32_t rank, enum cw_detail detail,
	       struct cw_clause *clause)
{
	const struct cw_snap_comm *c = &diag->s->snap->comms[comm];
	uint32_t version = diag->s->snap->ranks[rank].nccl_version, m = 0;

	if (detail == CW_DETAIL_VERSION && version) {
		cw_say(clause, loaded_nccl,
		       (struct cw_arg){ .kind = CW_ARG_VERSION, .version = version });
	} else if (detail == CW_DETAIL_VERSION) {
		cw_say(clause, loaded_unknown_nccl);
	} else if (detail == CW_DETAIL_ENVIRONMENT) {
		cw_say(clause, has_other_variables);
	} else if (detail == CW_DETAIL_ORDER) {
		cw_say(clause, has_other_order);
	} else {
		while (m + 1 < c->nranks && c->members[m].rank != rank)
			m++;
		cw_say(clause, made_with_ranks, arg_count(c->members[m].nranks));
	}
}
