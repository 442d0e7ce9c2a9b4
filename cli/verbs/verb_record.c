/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `record show` prints one rank's flight record, from a file or from a living process, which holds
 * its record as a descriptor. It prints the contents and draws no conclusions.
 */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/ask_options.h"
#include "cli/options.h"
#include "cli/terminal/pager.h"
#include "cli/verb.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/job_env.h"
#include "common/or_exit/or_exit.h"
#include "common/parse.h"
#include "record/record_process.h"
#include "record/record_reader.h"
#include "report/doc/nccl_errors.h"
#include "report/json_util.h"

#define MAX_OPS 1024u
#define MAX_CONNECTIONS (2 * CW_REC_CONNECTIONS) /* limit per record */

enum { OPT_JSON = 256 };

struct record_args {
	const char *verb, *what; /* "show", and a file or process id */
	bool json, no_pager;
	uint64_t ops; /* number of newest ops that we show per communicator */
};

static error_t parse_opt(int key, char *arg, struct argp_state *state)
{
	struct record_args *args = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &args->no_pager;
		return 0;
	case OPT_JSON:
		args->json = true;
		return 0;
	case 'n':
		if (cw_parse_u64(arg, 0, MAX_OPS, &args->ops) < 0)
			argp_error(state, "--ops: 0 to %u", MAX_OPS);
		return 0;
	case ARGP_KEY_ARG:
		if (state->arg_num == 0)
			args->verb = arg;
		else if (state->arg_num == 1)
			args->what = arg;
		else
			argp_error(state, "give one record only");
		return 0;
	case ARGP_KEY_END:
		if (!args->what || strcmp(args->verb, "show") != 0)
			argp_error(state, "give show FILE or show PID");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp cw_argp_record = {
	.options =
		(const struct argp_option[]){
			{ "ops", 'n', "N", 0, "Last calls shown per communicator (default: 8)", 0 },
			{ "json", OPT_JSON, NULL, 0, "Print a document", 0 },
			{ 0 },
		},
	.parser = parse_opt,
	.children = cw_pager_children,
	.args_doc = "show FILE\nshow PID",
	.doc = "Show the contents of a rank's flight record.",
};

/* ---- finding the record ---- */

static void close_record(struct cw_record **rec)
{
	(void)cw_record_close(*rec);
}

static int open_record(const char *what, struct cw_record **ret, struct cw_err *err)
{
	struct cw_err why = { "" };
	uint64_t pid;
	int fd, r;

	if (cw_parse_u64(what, 1, INT32_MAX, &pid) == 0)
		fd = cw_record_process_open((pid_t)pid, err);
	else
		fd = open(what, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && err->text[0])
		return fd;
	if (fd < 0)
		return cw_err_set(err, errno, "%s: %s", what, strerror(errno));
	r = cw_record_open(fd, false, ret, &why);
	return r < 0 ? cw_err_set(err, -r, "%s: %s", what, why.text[0] ? why.text : strerror(-r))
		     : 0;
}

/* ---- words ---- */

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static const char *state_name(uint32_t state)
{
	static const char *const names[CW_COMM__MAX] = {
		[CW_COMM_FREE] = "free",           [CW_COMM_INIT] = "init",
		[CW_COMM_READY] = "ready",         [CW_COMM_FINALIZING] = "finalizing",
		[CW_COMM_DESTROYED] = "destroyed", [CW_COMM_ABORTED] = "aborted",
		[CW_COMM_FAILED] = "failed",       [CW_COMM_REVOKED] = "revoked",
	};

	return state < CW_COMM__MAX ? names[state] : "?";
}

static const char *progress_name(const struct cw_record_op *op)
{
	static const char *const names[] = { "", "enqueued", "reached", "completed" };

	if (!(op->flags & CW_OPF_RETURNED))
		return op->flags & CW_OPF_QUEUED ? "queued in a group" : "inside the call";
	return op->progress ? names[op->progress & 3] : "returned";
}

static int64_t wall_of(const struct cw_rec_header *h, int64_t at_ns)
{
	int64_t since, wall;

	if (!at_ns || __builtin_sub_overflow(at_ns, (int64_t)h->created_ns, &since) ||
	    __builtin_add_overflow((int64_t)h->created_wall_ns, since, &wall) || wall < 0)
		return 0;
	return wall;
}

/* ---- connections ---- */

struct connections {
	struct cw_record_connection all[MAX_CONNECTIONS];
	size_t n;
	struct cw_record_connections_omitted omitted;
};

/* Reads the connections of a record. A record that we cannot read gives none. */
static void read_connections(const struct cw_record *rec, struct connections *ret)
{
	if (cw_record_connections(rec, ret->all, MAX_CONNECTIONS, &ret->n, &ret->omitted) < 0)
		ret->n = 0;
}

/* Returns the communicator of a connection; NULL = unknown, or in another process. */
static const struct cw_record_comm *comm_of(const struct cw_record *rec,
					    const struct cw_record_connection *c)
{
	const struct cw_record_comm *comms;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n && !c->pid; i++) {
		if (c->comm >= 0 && comms[i].index == (uint32_t)c->comm)
			return &comms[i];
	}
	return NULL;
}

/* ---- text ---- */

/* Prints the call stack of an op, one frame per line. */
static void show_stack(const struct cw_record *rec, const struct cw_record_op *op)
{
	char stack[CW_RECORD_STACK_BYTES], *at = stack, *frame;

	if (!op->stack || cw_record_stack(rec, op->stack, stack, sizeof(stack)) < 0)
		return;
	while ((frame = strsep(&at, "\n")))
		printf("        %s\n", frame);
}

static void show_ops(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t most)
{
	struct cw_record_op ops[MAX_OPS];
	uint64_t lost = 0;
	size_t n = 0;

	if (!most || cw_record_window(rec, comm, ops, most, &n, &lost) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct cw_op op = { .op_facts = ops[i].op_facts };
		char call[160], when[32];
		int64_t wall_ns = wall_of(cw_record_header(rec), ops[i].enter_mono_ns);

		printf("    %s  %s  (%s)\n", wall_ns ? cw_wall_format(wall_ns, when) : "-",
		       cw_op_format(&op, call, sizeof(call)), progress_name(&ops[i]));
		show_stack(rec, &ops[i]);
	}
}

static void show_comm(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t most)
{
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_record_state state;
	char name[CW_NCCL_RESULT_NAME_MAX];

	printf("\n  comm 0x%" PRIx64 "%s%s  rank %d of %u, %s\n", e->comm_id,
	       e->name[0] ? "  " : "", e->name, e->comm_rank, e->nranks, state_name(e->state));
	printf("    collectives: %" PRIu64 " entered, %" PRIu64 " returned", e->coll_entered,
	       e->coll_returned);
	if (cw_record_state(rec, comm, &state) == 0 && state.completed_known)
		printf(", %" PRIu64 " completed", state.coll_completed);
	printf("; %" PRIu64 " send%s, %" PRIu64 " receive%s\n", e->p2p_total[0],
	       plural(e->p2p_total[0]), e->p2p_total[1], plural(e->p2p_total[1]));
	if (e->flags & CW_REC_COMM_PROFILER)
		printf("    from NCCL's profiler interface: operators and progress are not "
		       "known\n");
	if (e->async_error)
		printf("    asynchronous error: %s\n",
		       cw_nccl_result_name(e->async_error, name, sizeof(name)));
	if (e->last_error[0])
		printf("    last error: %s\n", e->last_error);
	show_ops(rec, comm, most);
}

static void show_connection(const struct cw_record *rec, const struct cw_record_connection *c)
{
	const struct cw_record_comm *comm = comm_of(rec, c);
	int64_t newest_ns = wall_of(cw_record_header(rec), c->newest_mono_ns);
	char when[32];

	printf("    %s  rank %d %s rank %d, channel %u",
	       newest_ns ? cw_wall_format(newest_ns, when) : "-", c->rank,
	       c->is_send ? "to" : "from", c->peer, c->channel);
	if (comm)
		printf(", comm 0x%" PRIx64, comm->entry.comm_id);
	if (c->pid)
		printf(", for process %u", c->pid);
	if (c->op_index)
		printf(", op_index %" PRIu64, c->op_index);
	if (c->replay)
		printf(", replay %u", c->replay);
	printf(": of %u step%s %u posted", c->steps, plural(c->steps), c->posted);
	if (!c->is_send)
		printf(", %u received, %u given to the GPU", c->ready, c->handed);
	else if (c->is_detailed)
		printf(", %u ready, %u handed to the network", c->ready, c->handed);
	else
		printf(", %u handed to the network", c->handed);
	printf(", %u done\n", c->done);
}

static void show_connections(const struct cw_record *rec)
{
	static struct connections found;

	read_connections(rec, &found);
	if (found.n)
		printf("\n  %zu network connection%s with an open op\n", found.n, plural(found.n));
	for (size_t i = 0; i < found.n; i++)
		show_connection(rec, &found.all[i]);
	if (found.omitted.lost)
		printf("  coverage: the steps of %" PRIu64 " op%s on a connection found no place\n",
		       found.omitted.lost, plural(found.omitted.lost));
	if (found.omitted.torn)
		printf("  coverage: %u connection%s changed during each reading\n",
		       found.omitted.torn, plural(found.omitted.torn));
	if (found.omitted.impossible)
		printf("  coverage: %u connection%s impossible, and omitted\n",
		       found.omitted.impossible, found.omitted.impossible == 1 ? " is" : "s are");
}

/* Reads the NCCL_* variables of a record. A record that we cannot read has none. */
static struct cw_rec_variables read_variables(const struct cw_record *rec)
{
	struct cw_rec_variables found;

	if (cw_record_nccl_variables(rec, &found) < 0)
		found = (struct cw_rec_variables){ .omitted = 0 };
	return found;
}

static void show_variables(const struct cw_record *rec)
{
	struct cw_rec_variables found = read_variables(rec);
	const char *at = found.text;
	struct cw_nccl_variable v;

	while (cw_nccl_variables_next(&at, &v))
		printf("  %.*s=%.*s\n", (int)v.name_len, v.name, (int)v.value_len, v.value);
	if (found.omitted)
		printf("  coverage: %u more NCCL_* variable%s found no place\n", found.omitted,
		       plural(found.omitted));
}

static int show_text(struct cw_record *rec, uint64_t most)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	const struct cw_record_comm *comms;
	int64_t beat_ns = wall_of(h, (int64_t)h->beat_ns);
	uint64_t dropped = 0;
	char when[32];
	size_t n;

	comms = cw_record_comms(rec, &n);
	printf("rank %d of %d%s%s  pid %u%s\n", h->rank_label, h->world_size_label,
	       h->job_label[0] ? "  job " : "", cw_job_env_shown(h->job_label), h->pid,
	       h->state == 1 ? "" : "  (the agent has stopped recording)");
	if (h->nccl_version)
		printf("  NCCL %u.%u.%u", h->nccl_version / 10000, h->nccl_version / 100 % 100,
		       h->nccl_version % 100);
	else
		printf("  NCCL of unknown version");
	printf(", %" PRIu64 " call%s recorded, %zu communicator%s\n", h->ring_ticket,
	       plural(h->ring_ticket), n, plural(n));
	printf("  the agent's last beat: %s\n", beat_ns ? cw_wall_format(beat_ns, when) : "none");
	for (size_t i = 0; i < CW_REC_DROP__MAX; i++)
		dropped += h->drops[i];
	if (dropped)
		printf("  %" PRIu64 " thing%s found no place in the record\n", dropped,
		       plural(dropped));
	if (h->progress_untracked)
		printf("  progress writes were left out for %" PRIu64 " call%s\n",
		       h->progress_untracked, plural(h->progress_untracked));
	show_variables(rec);
	for (size_t i = 0; i < n; i++)
		show_comm(rec, &comms[i], most);
	show_connections(rec);
	return CW_EXIT_OK;
}

/* ---- JSON ---- */

static json_t *op_doc(const struct cw_record *rec, const struct cw_record_op *op)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	char stack[CW_RECORD_STACK_BYTES];
	json_t *doc;
	int bad = 0;

	doc = cw_json_object((struct cw_json_member[]){
		{ "kind", json_string(cw_op_kind_name(op->kind)) },
		{ "dtype", json_string(cw_dtype_name(op->dtype)) },
		{ "redop", json_string(cw_redop_name(op->redop)) },
		{ "count", cw_json_u64(op->count) },
		{ "root", json_integer(op->root) },
		{ "peer", json_integer(op->peer) },
		{ "coll_seq", cw_json_u64(op->coll_seq) },
		{ "p2p_seq", cw_json_u64(op->p2p_seq) },
		{ "op_index", cw_json_u64(op->op_index) },
		{ "state", json_string(progress_name(op)) },
		{ "result", json_integer(op->result) },
		{ "entered", cw_json_wall(wall_of(h, op->enter_mono_ns)) },
		{ NULL },
	});
	if (op->stack && cw_record_stack(rec, op->stack, stack, sizeof(stack)) == 0)
		bad |= json_object_set_new(doc, "stack", cw_json_lines(stack));
	return cw_json_finish(doc, bad);
}

static json_t *ops_doc(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t most)
{
	struct cw_record_op ops[MAX_OPS];
	json_t *doc = json_array();
	uint64_t lost = 0;
	size_t n = 0;
	int bad = 0;

	if (most && cw_record_window(rec, comm, ops, most, &n, &lost) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		bad |= json_array_append_new(doc, op_doc(rec, &ops[i]));
	return cw_json_finish(doc, bad);
}

static json_t *comm_doc(struct cw_record *rec, const struct cw_record_comm *comm, uint64_t most)
{
	const struct cw_rec_comm *e = &comm->entry;
	struct cw_record_state state = { 0 };
	char name[CW_NCCL_RESULT_NAME_MAX];

	if (cw_record_state(rec, comm, &state) < 0)
		state.completed_known = false;
	return cw_json_object((struct cw_json_member[]){
		{ "id", cw_json_hex(e->comm_id) },
		{ "name", cw_json_text(e->name) },
		{ "state", json_string(state_name(e->state)) },
		{ "comm_rank", json_integer(e->comm_rank) },
		{ "nranks", json_integer(e->nranks) },
		{ "entered", cw_json_u64(e->coll_entered) },
		{ "returned", cw_json_u64(e->coll_returned) },
		{ "completed",
		  state.completed_known ? cw_json_u64(state.coll_completed) : json_null() },
		{ "sends", cw_json_u64(e->p2p_total[0]) },
		{ "recvs", cw_json_u64(e->p2p_total[1]) },
		{ "source",
		  json_string(e->flags & CW_REC_COMM_PROFILER ? "profiler" : "wrappers") },
		{ "async_error", json_integer(e->async_error) },
		{ "async_error_name", e->async_error ? json_string(cw_nccl_result_name(
							       e->async_error, name, sizeof(name)))
						     : json_null() },
		{ "last_error", cw_json_text(e->last_error) },
		{ "ops", ops_doc(rec, comm, most) },
		{ NULL },
	});
}

static json_t *connection_doc(const struct cw_record *rec, const struct cw_record_connection *c)
{
	const struct cw_record_comm *comm = comm_of(rec, c);
	int64_t newest_ns = wall_of(cw_record_header(rec), c->newest_mono_ns);
	bool has_ready = !c->is_send || c->is_detailed;

	return cw_json_object((struct cw_json_member[]){
		{ "comm", comm ? cw_json_hex(comm->entry.comm_id) : json_null() },
		{ "pid", c->pid ? json_integer(c->pid) : json_null() },
		{ "rank", json_integer(c->rank) },
		{ "peer", json_integer(c->peer) },
		{ "channel", json_integer(c->channel) },
		{ "direction", json_string(c->is_send ? "send" : "receive") },
		{ "p2p", json_boolean(c->is_p2p) },
		{ "op_index", cw_json_u64(c->op_index) },
		{ "replay", json_integer(c->replay) },
		{ "open_ops", json_integer(c->open_ops) },
		{ "steps", json_integer(c->steps) },
		{ "posted", json_integer(c->posted) },
		{ c->is_send ? "ready" : "received",
		  has_ready ? json_integer(c->ready) : json_null() },
		{ c->is_send ? "handed" : "given", json_integer(c->handed) },
		{ "done", json_integer(c->done) },
		{ "bytes", c->is_detailed ? cw_json_u64(c->bytes) : json_null() },
		{ "newest", cw_json_wall(newest_ns) },
		{ NULL },
	});
}

/* Adds the connections to the document, and the number of those that the record lacks. */
static int add_connections(json_t *doc, const struct cw_record *rec)
{
	static struct connections found;
	json_t *list = json_array();
	int bad = 0;

	read_connections(rec, &found);
	for (size_t i = 0; i < found.n; i++)
		bad |= json_array_append_new(list, connection_doc(rec, &found.all[i]));
	bad |= cw_json_add(
		doc, (struct cw_json_member[]){
			     { "connections", list },
			     { "connections_lost", cw_json_u64(found.omitted.lost) },
			     { "connections_torn", json_integer(found.omitted.torn) },
			     { "connections_impossible", json_integer(found.omitted.impossible) },
			     { NULL },
		     });
	return bad;
}

static json_t *record_doc(struct cw_record *rec, uint64_t most)
{
	const struct cw_rec_header *h = cw_record_header(rec);
	struct cw_rec_variables variables = read_variables(rec);
	json_t *doc, *list = json_array();
	const struct cw_record_comm *comms;
	int bad = 0;
	size_t n;

	comms = cw_record_comms(rec, &n);
	for (size_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, comm_doc(rec, &comms[i], most));
	doc = cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.record/1") },
		{ "job", cw_json_text(h->job_label) },
		{ "rank", json_integer(h->rank_label) },
		{ "world_size", json_integer(h->world_size_label) },
		{ "pid", json_integer(h->pid) },
		{ "nccl_version", json_integer(h->nccl_version) },
		{ "nccl_variables", cw_json_text(variables.text) },
		{ "nccl_variables_omitted", json_integer(variables.omitted) },
		{ "recording", json_boolean(h->state == 1) },
		{ "calls", cw_json_u64(h->ring_ticket) },
		{ "progress_untracked", cw_json_u64(h->progress_untracked) },
		{ "beat", cw_json_wall(wall_of(h, (int64_t)h->beat_ns)) },
		{ "comms", list },
		{ NULL },
	});
	bad |= add_connections(doc, rec);
	return cw_json_finish(doc, bad);
}

static int show_json(struct cw_record *rec, uint64_t most)
{
	json_t *doc = cw_or_exit(record_doc(rec, most));

	cw_print_json(doc);
	json_decref(doc);
	return CW_EXIT_OK;
}

int cw_verb_record(int argc, char **argv)
{
	_cleanup_(close_record) struct cw_record *rec = NULL;
	struct record_args args = { .ops = 8 };
	struct cw_err err = { "" };

	(void)cw_options_parse(&cw_argp_record, argc, argv, 0, &args);
	if (open_record(args.what, &rec, &err) < 0) {
		fprintf(stderr, "collwatch: %s\n", err.text);
		return CW_EXIT_ERROR;
	}
	if (args.json)
		return show_json(rec, args.ops);
	cw_pager_open(args.no_pager);
	return show_text(rec, args.ops);
}
