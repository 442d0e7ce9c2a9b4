/* SPDX-License-Identifier: Apache-2.0 */
#include "report/doc/said_doc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/rankset.h"
#include "model/verdict_types.h"
#include "report/json_util.h"
#include "say/english.h"

/*
 * Limits on an untrusted document. Our own documents have neither deeper clauses nor larger sets of
 * ranks.
 */
#define MAX_DEPTH 8u
#define MAX_RANKS 1048576u
#define MAX_SAID 256u
#define MAX_HOSTS 65536u
/*
 * A set of ranks in pieces may have hundreds of KiB. A sentence shows its first 160 bytes, and
 * victims.ranks of the document has all of it.
 */
#define MAX_SET_BYTES 4096u

/* ---- writing ---- */

static json_t *clause_doc(const struct cw_clause *clause);

static json_t *ranks_doc(const struct cw_arg *arg)
{
	_cleanup_(freep) char *set = NULL;
	json_t *doc = json_object();
	int bad = 0;

	if (arg->ranks.labels) {
		set = cw_rankset_format_alloc(arg->ranks.labels, arg->ranks.n);
		bad |= !set;
	}
	if (set && strlen(set) > MAX_SET_BYTES)
		bad |= json_object_set_new(doc, "ranks", json_null());
	else
		bad |= json_object_set_new(doc, "ranks", cw_json_text(set));
	bad |= json_object_set_new(doc, "count", json_integer(arg->ranks.n));
	if (arg->ranks.is_rest)
		bad |= json_object_set_new(doc, "is_rest", json_true());
	return cw_json_finish(doc, bad);
}

static json_t *process_doc(const struct cw_arg *arg)
{
	json_t *doc;
	int bad = 0;

	doc = cw_json_object((struct cw_json_member[]){
		{ "rank", json_integer(arg->process.label) },
		{ "host", cw_json_text(arg->process.host) },
		{ "pid", json_integer(arg->process.pid) },
		{ NULL },
	});
	if (*arg->process.pod) {
		bad |= cw_json_add(
			doc, (struct cw_json_member[]){
				     { "pod", cw_json_text(arg->process.pod) },
				     { "pod_namespace", cw_json_text(arg->process.pod_namespace) },
				     { "own_pid", json_integer(arg->process.own_pid) },
				     { NULL },
			     });
	}
	return cw_json_finish(doc, bad);
}

static json_t *hosts_doc(const struct cw_arg *arg)
{
	json_t *doc = json_object(), *names = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < arg->hosts.n; i++)
		bad |= json_array_append_new(names, cw_json_text(arg->hosts.names[i]));
	bad |= json_object_set_new(doc, "hosts", names);
	return cw_json_finish(doc, bad);
}

static json_t *call_doc(const struct cw_arg *arg)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(
		doc, "call",
		arg->call.is_unknown ? json_null() : json_string(cw_op_kind_name(arg->call.kind)));
	bad |= json_object_set_new(doc, "seq", cw_json_u64(arg->call.seq));
	if (arg->call.peer >= 0)
		bad |= json_object_set_new(doc, arg->call.is_comm_rank ? "comm_peer" : "peer",
					   json_integer(arg->call.peer));
	return cw_json_finish(doc, bad);
}

static json_t *op_doc(const struct cw_op *op)
{
	return cw_json_object((struct cw_json_member[]){
		{ "op", json_string(cw_op_kind_name(op->kind)) },
		{ "seq", cw_json_u64(cw_op_is_p2p(op->kind) ? op->p2p_seq : op->coll_seq) },
		{ "count", cw_json_u64(op->count) },
		{ "dtype", json_string(cw_dtype_name(op->dtype)) },
		{ "redop", json_string(cw_redop_name(op->redop)) },
		{ "root", json_integer(op->root) },
		{ "peer", json_integer(op->peer) },
		{ NULL },
	});
}

static json_t *duration_doc(const struct cw_arg *arg)
{
	json_t *doc = json_object();
	int bad = 0;

	bad |= json_object_set_new(
		doc, "ns", arg->duration.is_unknown ? json_null() : json_integer(arg->duration.ns));
	if (arg->duration.is_less)
		bad |= json_object_set_new(doc, "is_less", json_true());
	return cw_json_finish(doc, bad);
}

/*
 * An argument uses the same keys as the other parts of the document, so --anonymise recognises
 * names.
 */
static json_t *arg_doc(const struct cw_arg *arg)
{
	switch (arg->kind) {
	case CW_ARG_RANKS:
		return ranks_doc(arg);
	case CW_ARG_PROCESS:
		return process_doc(arg);
	case CW_ARG_CALL:
		return call_doc(arg);
	case CW_ARG_OP:
		return op_doc(&arg->op);
	case CW_ARG_DURATION:
		return duration_doc(arg);
	case CW_ARG_HOSTS:
		return hosts_doc(arg);
	case CW_ARG_HOST:
		return json_pack("{s:o}", "host", cw_json_text(arg->text));
	case CW_ARG_COMM:
		return json_pack("{s:o, s:o}", "comm", cw_json_hex(arg->comm.id), "comm_name",
				 cw_json_text(arg->comm.name));
	case CW_ARG_ERROR:
		return json_pack("{s:i, s:o}", "result", arg->error.result, "text",
				 cw_json_text(arg->error.text));
	case CW_ARG_COUNT:
		return json_pack("{s:o}", "count", cw_json_u64(arg->count));
	case CW_ARG_NUMBER:
		return json_pack("{s:i}", "number", arg->number);
	case CW_ARG_SIGNAL:
		return json_pack("{s:i}", "signal", arg->number);
	case CW_ARG_VERSION:
		return json_pack("{s:i}", "nccl_version", (int)arg->version);
	case CW_ARG_DETAIL:
		return json_pack("{s:s}", "detail", cw_detail_name((unsigned)arg->number));
	case CW_ARG_DTYPE:
		return json_pack("{s:s}", "dtype", cw_dtype_name((unsigned)arg->number));
	case CW_ARG_REDOP:
		return json_pack("{s:s}", "redop", cw_redop_name((unsigned)arg->number));
	case CW_ARG_TEXT:
		return json_pack("{s:o}", "text", cw_json_text(arg->text));
	case CW_ARG_CLAUSE:
		return json_pack("{s:o}", "said", clause_doc(arg->clause));
	default:
		return NULL;
	}
}

static json_t *clause_doc(const struct cw_clause *clause)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < clause->n; i++) {
		const struct cw_said *said = &clause->said[i];
		json_t *args = json_array();

		for (uint32_t k = 0; k < said->n_args; k++)
			bad |= json_array_append_new(args, arg_doc(&said->args[k]));
		bad |= json_array_append_new(list,
					     json_pack("{s:s, s:o}", "saying",
						       cw_saying_name(said->saying), "args", args));
	}
	return cw_json_finish(list, bad);
}

json_t *cw_said_doc(const struct cw_clause *clause)
{
	return clause_doc(clause);
}

int cw_said_set(json_t *object, const char *key, const struct cw_clause *clause, size_t len)
{
	char text[CW_SAID_TEXT_MAX], said_key[64];
	json_t *said = cw_said_doc(clause), *string;

	(void)cw_say_text(clause, text, len < sizeof(text) ? len : sizeof(text));
	(void)snprintf(said_key, sizeof(said_key), "%s" CW_SAID_SUFFIX, key);
	string = cw_json_text(text);
	/*
	 * We set both keys or neither. Replacing a value that the object already has takes no
	 * memory.
	 */
	if (!said || !string) {
		json_decref(said);
		json_decref(string);
		return -1;
	}
	if (json_object_set_new(object, said_key, said) < 0) {
		json_decref(string);
		return -1;
	}
	return json_object_set_new(object, key, string);
}

/* ---- reading ---- */

static int read_clause(const json_t *list, unsigned depth, struct cw_clause *clause);

static const char *kept(struct cw_clause *clause, const json_t *doc, const char *key)
{
	const char *copy = cw_arena_strdup(clause->arena, cw_json_str(doc, key, ""));

	clause->is_incomplete = clause->is_incomplete || !copy;
	return copy ? copy : "";
}

static int read_hosts(const json_t *doc, struct cw_clause *clause, struct cw_arg *arg)
{
	const json_t *list = json_object_get(doc, "hosts"), *name;
	const char **names;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > MAX_HOSTS)
		return -EINVAL;
	names = cw_arena_new_array(clause->arena, const char *, json_array_size(list));
	clause->is_incomplete = clause->is_incomplete || !names;
	json_array_foreach (list, i, name) {
		if (!json_is_string(name))
			return -EINVAL;
		if (names)
			names[i] = cw_arena_strdup(clause->arena, json_string_value(name));
		if (!names || !names[i])
			return -ENOMEM;
	}
	arg->hosts.names = names;
	arg->hosts.n = (uint32_t)json_array_size(list);
	return 0;
}

static int32_t read_i32(const json_t *doc, const char *key, int32_t otherwise)
{
	json_int_t value = cw_json_int(doc, key, otherwise);

	return value >= INT32_MIN && value <= INT32_MAX ? (int32_t)value : otherwise;
}

static uint64_t read_u64(const json_t *doc, const char *key)
{
	uint64_t value = 0;

	(void)cw_json_read_u64(json_object_get(doc, key), &value);
	return value;
}

static int read_ranks(const json_t *doc, struct cw_arena *arena, struct cw_arg *arg)
{
	const char *set = json_string_value(json_object_get(doc, "ranks"));
	json_int_t n = cw_json_int(doc, "count", -1);
	_cleanup_(freep) int32_t *parsed = NULL;
	int32_t *labels;
	size_t n_parsed;
	int r;

	if (n < 0 || n > MAX_RANKS)
		return -EINVAL;
	arg->ranks.n = (uint32_t)n;
	arg->ranks.is_rest = json_is_true(json_object_get(doc, "is_rest"));
	if (!set)
		return 0;
	r = cw_rankset_parse(set, (size_t)n, &parsed, &n_parsed);
	if (r < 0)
		return r == -ENOMEM ? r : -EINVAL;
	labels = cw_arena_new_array(arena, int32_t, (size_t)n ? (size_t)n : 1);
	if (!labels)
		return -ENOMEM;
	/*
	 * The text of a set omits ranks without a number and names each rank once, so it may be
	 * shorter than n.
	 */
	for (size_t i = 0; i < (size_t)n; i++)
		labels[i] = i < n_parsed ? parsed[i] : -1;
	arg->ranks.labels = labels;
	return 0;
}

/* Returns the op's kind under this key; -1 = the name is unknown. */
static int read_kind(const json_t *doc, const char *key)
{
	const char *name = json_string_value(json_object_get(doc, key));

	return name ? cw_op_kind_from_name(name) : -1;
}

static int read_call(const json_t *doc, struct cw_arg *arg)
{
	int kind = read_kind(doc, "call");

	arg->call.is_unknown = json_is_null(json_object_get(doc, "call"));
	if (kind < 0 && !arg->call.is_unknown)
		return -EINVAL;
	arg->call.kind = kind < 0 ? CW_OP_NONE : (uint8_t)kind;
	arg->call.seq = read_u64(doc, "seq");
	arg->call.is_comm_rank = json_object_get(doc, "comm_peer");
	arg->call.peer = read_i32(doc, arg->call.is_comm_rank ? "comm_peer" : "peer", -1);
	return 0;
}

#define UNKNOWN_NUMBER 254 /* no type or operator has this number */

static int32_t read_dtype(const json_t *doc)
{
	int value = cw_dtype_from_name(cw_json_str(doc, "dtype", ""));

	return value < 0 ? UNKNOWN_NUMBER : value;
}

static int32_t read_redop(const json_t *doc)
{
	int value = cw_redop_from_name(cw_json_str(doc, "redop", ""));

	return value < 0 ? UNKNOWN_NUMBER : value;
}

static int read_op(const json_t *doc, struct cw_arg *arg)
{
	int kind = read_kind(doc, "op");

	if (kind < 0)
		return -EINVAL;
	arg->op = (struct cw_op){ .kind = (uint8_t)kind };
	arg->op.coll_seq = arg->op.p2p_seq = read_u64(doc, "seq");
	arg->op.count = read_u64(doc, "count");
	arg->op.dtype = (uint8_t)read_dtype(doc);
	arg->op.redop = (uint8_t)read_redop(doc);
	arg->op.root = read_i32(doc, "root", CW_PEER_NONE);
	arg->op.peer = read_i32(doc, "peer", CW_PEER_NONE);
	return 0;
}

static int read_nested(const json_t *doc, unsigned depth, struct cw_arena *arena,
		       struct cw_arg *arg)
{
	struct cw_clause *nested = cw_arena_new(arena, struct cw_clause);

	if (!nested)
		return -ENOMEM;
	nested->arena = arena;
	arg->clause = nested;
	return read_clause(json_object_get(doc, "said"), depth + 1, nested);
}

static int read_detail(const json_t *doc, struct cw_arg *arg)
{
	arg->number = cw_detail_from_name(cw_json_str(doc, "detail", "?"));
	return arg->number < 0 ? -EINVAL : 0;
}

/* A row's 'W' is a process if the argument has a pid, else a rank set. */
static enum cw_arg_kind kind_of(char row, const json_t *doc)
{
	if (row == 'W')
		return json_object_get(doc, "pid") ? CW_ARG_PROCESS : CW_ARG_RANKS;
	return (enum cw_arg_kind)row;
}

static int read_arg(const json_t *doc, char row, unsigned depth, struct cw_clause *clause,
		    struct cw_arg *arg)
{
	*arg = (struct cw_arg){ .kind = (uint8_t)kind_of(row, doc) };
	if (!json_is_object(doc))
		return -EINVAL;
	switch (arg->kind) {
	case CW_ARG_RANKS:
		return read_ranks(doc, clause->arena, arg);
	case CW_ARG_PROCESS:
		arg->process.label = read_i32(doc, "rank", -1);
		arg->process.pid = read_i32(doc, "pid", 0);
		arg->process.own_pid = read_i32(doc, "own_pid", 0);
		arg->process.host = kept(clause, doc, "host");
		arg->process.pod = kept(clause, doc, "pod");
		arg->process.pod_namespace = kept(clause, doc, "pod_namespace");
		return 0;
	case CW_ARG_CALL:
		return read_call(doc, arg);
	case CW_ARG_OP:
		return read_op(doc, arg);
	case CW_ARG_DURATION:
		arg->duration.is_unknown = json_is_null(json_object_get(doc, "ns"));
		arg->duration.is_less = json_is_true(json_object_get(doc, "is_less"));
		arg->duration.ns = cw_json_int(doc, "ns", 0);
		return 0;
	case CW_ARG_HOSTS:
		return read_hosts(doc, clause, arg);
	case CW_ARG_HOST:
		arg->text = kept(clause, doc, "host");
		return 0;
	case CW_ARG_COMM:
		arg->comm.id = read_u64(doc, "comm");
		arg->comm.name = kept(clause, doc, "comm_name");
		return 0;
	case CW_ARG_ERROR:
		arg->error.result = read_i32(doc, "result", 0);
		arg->error.text = kept(clause, doc, "text");
		return 0;
	case CW_ARG_COUNT:
		arg->count = read_u64(doc, "count");
		return 0;
	case CW_ARG_NUMBER:
		arg->number = read_i32(doc, "number", 0);
		return 0;
	case CW_ARG_SIGNAL:
		arg->number = read_i32(doc, "signal", 0);
		return 0;
	case CW_ARG_VERSION:
		arg->version = (uint32_t)read_i32(doc, "nccl_version", 0);
		return 0;
	case CW_ARG_DETAIL:
		return read_detail(doc, arg);
	case CW_ARG_DTYPE:
		arg->number = read_dtype(doc);
		return 0;
	case CW_ARG_REDOP:
		arg->number = read_redop(doc);
		return 0;
	case CW_ARG_TEXT:
		arg->text = kept(clause, doc, "text");
		return 0;
	default:
		return read_nested(doc, depth, clause->arena, arg);
	}
}

#define ARGS_MAX 9u /* a template can name no more */

static int read_said(const json_t *doc, unsigned depth, struct cw_clause *clause)
{
	const json_t *args = json_object_get(doc, "args");
	int saying = cw_saying_from_name(cw_json_str(doc, "saying", ""));
	struct cw_arg list[ARGS_MAX];
	const char *rows;
	int r = 0;

	if (!json_is_array(args))
		return -EINVAL;
	if (saying < 0)
		return -ENOENT;
	rows = cw_saying_args((enum cw_saying)saying);
	if (json_array_size(args) != strlen(rows))
		return -ENOENT;
	for (size_t i = 0; rows[i] && r == 0; i++)
		r = read_arg(json_array_get(args, i), rows[i], depth, clause, &list[i]);
	if (r == 0)
		cw_clause_add(clause, (enum cw_saying)saying, list, (uint32_t)strlen(rows));
	return r;
}

static int read_clause(const json_t *list, unsigned depth, struct cw_clause *clause)
{
	const json_t *doc;
	size_t i;
	int r = 0;

	if (!json_is_array(list) || depth > MAX_DEPTH || json_array_size(list) > MAX_SAID)
		return -EINVAL;
	json_array_foreach (list, i, doc) {
		r = read_said(doc, depth, clause);
		if (r < 0)
			return r;
	}
	return clause->is_incomplete ? -ENOMEM : 0;
}

int cw_said_read(const json_t *list, struct cw_clause *clause)
{
	struct cw_clause read = { .arena = clause->arena };
	int r = read_clause(list, 0, &read);

	if (r == 0)
		*clause = read;
	return r;
}
