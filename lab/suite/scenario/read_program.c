/* SPDX-License-Identifier: Apache-2.0 */
/* Reads programs: calls, work, and the blocks around them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "lab/suite/scenario/reader.h"

/* No real device op has a larger count. */
#define MAX_COUNT (UINT64_C(1) << 40)
#define MAX_STREAM 7u

void read_free_program(struct suite_program *p)
{
	free(p->insns);
	*p = (struct suite_program){ 0 };
}

static int read_peer(struct reader *r, struct suite_call *c)
{
	static const char *const names[] = { "next",      "prev", "ring-next",
					     "ring-prev", "pair", "each" };
	uint64_t n;

	for (uint32_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (read_is(r, names[i])) {
			c->peer_kind = (uint8_t)(SUITE_PEER_NEXT + i);
			return 0;
		}
	if (read_u64(r, SUITE_MAX_RANKS - 1, &n) < 0)
		return -EINVAL;
	c->peer_kind = SUITE_PEER_NUMBER;
	c->peer = (int32_t)n;
	return 0;
}

static int read_option(struct reader *r, struct suite_call *c)
{
	const char *w;
	uint64_t n;
	int v;

	if (cw_op_has_root(c->kind) && read_is(r, "root")) {
		if (read_u64(r, SUITE_MAX_RANKS - 1, &n) < 0)
			return -EINVAL;
		c->root = (int32_t)n;
		return 0;
	}
	if ((c->kind == CW_OP_SEND && read_is(r, "to")) ||
	    (c->kind == CW_OP_RECV && read_is(r, "from")))
		return read_peer(r, c);
	if (read_is(r, "takes"))
		return read_time(r, &c->takes_ns);
	if (read_is(r, "on")) {
		if (read_u64(r, MAX_STREAM, &n) < 0)
			return -EINVAL;
		c->stream = (uint32_t)n;
		return 0;
	}
	w = r->words->w[r->at];
	if (*w >= '0' && *w <= '9')
		return read_u64(r, MAX_COUNT, &c->count);
	r->at++;
	v = cw_dtype_from_name(w);
	if (v >= 0) {
		c->dtype = (uint8_t)v;
		return 0;
	}
	v = cw_redop_from_name(w);
	if (v < 0 || !cw_op_has_redop(c->kind))
		return read_fail(r, "what is", w);
	c->redop = (uint8_t)v;
	return 0;
}

int read_call(struct reader *r, unsigned kind, struct suite_call *ret)
{
	struct suite_call c = {
		.kind = (uint8_t)kind,
		.dtype = cw_op_blocks_host(kind) ? CW_DTYPE_NONE : CW_DTYPE_BF16,
		.redop = cw_op_has_redop(kind) ? CW_REDOP_SUM : CW_REDOP_NONE,
		.root = cw_op_has_root(kind) ? 0 : CW_PEER_NONE,
		.peer = CW_PEER_NONE,
		.count = cw_op_blocks_host(kind) ? 0 : 4096,
		.child = SUITE_NONE,
	};

	if (read_family(r, &c.family) < 0)
		return -EINVAL;
	if (kind == CW_OP_COMM_SPLIT) {
		if (!read_is(r, "into"))
			return read_fail(r, "a split needs: into COMM", NULL);
		if (read_family(r, &c.child) < 0)
			return -EINVAL;
		if (r->s->families[c.child].made != SUITE_BY_SPLIT)
			return read_fail(r, "the comm is not declared as made by split", NULL);
	}
	if (kind == CW_OP_COMM_INIT && r->s->families[c.family].made != SUITE_BY_INIT)
		return read_fail(r, "the comm is not declared as made by init", NULL);
	while (!cw_op_blocks_host(kind) && r->at < r->words->n)
		if (read_option(r, &c) < 0)
			return -EINVAL;
	if (cw_op_is_p2p(kind) && c.peer_kind == SUITE_PEER_NONE)
		return read_fail(r, "to or from whom?", NULL);
	*ret = c;
	return read_end(r);
}

static int close_block(struct reader *r, struct suite_insn *insn, uint32_t index)
{
	uint32_t begin = r->open[--r->n_open];

	insn->kind = SUITE_END;
	insn->other = begin;
	r->program->insns[begin].other = index;
	return 0;
}

static bool is_in(const struct reader *r, unsigned kind)
{
	return r->n_open && r->program->insns[r->open[r->n_open - 1]].kind == kind;
}

/* Returns the graph whose block is open; NULL = none. */
static const struct suite_insn *open_graph(const struct reader *r)
{
	for (uint32_t i = 0; i < r->n_open; i++)
		if (r->program->insns[r->open[i]].kind == SUITE_GRAPH)
			return &r->program->insns[r->open[i]];
	return NULL;
}

static int open_block(struct reader *r, uint32_t index)
{
	if (r->n_open == SUITE_MAX_NEST)
		return read_fail(r, "nested too deeply", NULL);
	if (is_in(r, SUITE_GROUP))
		return read_fail(r, "a group holds calls only", NULL);
	r->open[r->n_open++] = index;
	return 0;
}

static int read_block(struct reader *r, const char *w, struct suite_insn *insn, uint32_t index)
{
	uint64_t n = 0;

	if (strcmp(w, "loop") == 0) {
		insn->kind = SUITE_LOOP;
		if (r->at < r->words->n && read_u64(r, 100000000, &n) < 0)
			return -EINVAL;
	} else if (strcmp(w, "every") == 0) {
		insn->kind = SUITE_EVERY;
		if (read_u64(r, 100000000, &n) < 0)
			return -EINVAL;
		if (n == 0)
			return read_fail(r, "every how many iterations?", NULL);
	} else if (strcmp(w, "only") == 0) {
		insn->kind = SUITE_ONLY;
		if (read_set(r, &insn->set) < 0)
			return -EINVAL;
	} else if (strcmp(w, "graph") == 0) {
		insn->kind = SUITE_GRAPH;
		if (read_is(r, "on") && read_u64(r, MAX_STREAM, &n) < 0)
			return -EINVAL;
	} else {
		insn->kind = SUITE_GROUP;
	}
	insn->n = (uint32_t)n;
	return open_block(r, index);
}

/* Reads work of the host or the device. */
static int read_work(struct reader *r, const char *w, struct suite_insn *insn)
{
	static const struct {
		const char *name;
		uint8_t kind;
		bool has_time;
	} table[] = {
		{ "work", SUITE_WORK, true },       { "io", SUITE_IO, true },
		{ "child", SUITE_CHILD, true },     { "sleep", SUITE_SLEEP, true },
		{ "compute", SUITE_COMPUTE, true }, { "sync", SUITE_SYNC, false },
		{ "wait", SUITE_WAIT, false },      { "exit", SUITE_EXIT, false },
		{ "cancel", SUITE_SIGTERM, false },
	};
	uint64_t n = 0;

	for (uint32_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		if (strcmp(w, table[i].name) != 0)
			continue;
		insn->kind = table[i].kind;
		if (table[i].has_time && read_time(r, &insn->ns) < 0)
			return -EINVAL;
		if (insn->kind == SUITE_SYNC || insn->kind == SUITE_WAIT)
			n = SUITE_NONE;
		if ((insn->kind == SUITE_COMPUTE || n == SUITE_NONE) && read_is(r, "on") &&
		    read_u64(r, MAX_STREAM, &n) < 0)
			return -EINVAL;
		if (insn->kind == SUITE_EXIT && r->at < r->words->n && read_u64(r, 255, &n) < 0)
			return -EINVAL;
		insn->n = (uint32_t)n;
		if (insn->kind == SUITE_SLEEP || insn->kind == SUITE_IO) {
			bool moves;

			if (read_wait(r, insn->kind == SUITE_IO, &insn->n, &moves) < 0)
				return -EINVAL;
			insn->kind = moves ? SUITE_IO : SUITE_SLEEP;
		}
		return 0;
	}
	return read_fail(r, "no such statement:", w);
}

int read_host_kind(const char *w)
{
	if (strcmp(w, "init") == 0)
		return CW_OP_COMM_INIT;
	if (strcmp(w, "split") == 0)
		return CW_OP_COMM_SPLIT;
	if (strcmp(w, "finalize") == 0)
		return CW_OP_COMM_FINALIZE;
	return -1;
}

/* Checks a statement inside a graph. The launch of the graph names its only stream. */
static int check_in_graph(struct reader *r, const struct suite_insn *graph, struct suite_insn *insn)
{
	bool is_call = insn->kind == SUITE_CALL && cw_op_is_collective(insn->call.kind);

	if (!is_call && insn->kind != SUITE_COMPUTE && insn->kind != SUITE_GROUP)
		return read_fail(r, "a graph holds collectives, groups of them, and kernels", NULL);
	if ((is_call && insn->call.stream) || (insn->kind == SUITE_COMPUTE && insn->n))
		return read_fail(r, "what is in a graph runs on its stream", NULL);
	if (is_call)
		insn->call.stream = graph->n;
	return 0;
}

static int read_outside_group(struct reader *r, const char *w, struct suite_insn *insn,
			      uint32_t index)
{
	int kind = read_host_kind(w);

	if (kind >= 0) {
		insn->kind = SUITE_CALL;
		return read_call(r, (unsigned)kind, &insn->call);
	}
	if (strcmp(w, "loop") == 0 || strcmp(w, "every") == 0 || strcmp(w, "only") == 0 ||
	    strcmp(w, "group") == 0 || strcmp(w, "graph") == 0)
		return read_block(r, w, insn, index);
	return read_work(r, w, insn);
}

static int read_statement(struct reader *r, const char *w, struct suite_insn *insn, uint32_t index)
{
	const struct suite_insn *graph = open_graph(r);
	int kind = cw_op_kind_from_name(w), res;

	if (strcmp(w, "end") == 0)
		return close_block(r, insn, index);
	if (kind >= 0 && (cw_op_is_collective((unsigned)kind) || cw_op_is_p2p((unsigned)kind))) {
		insn->kind = SUITE_CALL;
		res = read_call(r, (unsigned)kind, &insn->call);
	} else if (is_in(r, SUITE_GROUP)) {
		return read_fail(r, "a group holds calls only, not", w);
	} else {
		res = read_outside_group(r, w, insn, index);
	}
	return res == 0 && graph ? check_in_graph(r, graph, insn) : res;
}

int read_insn(struct reader *r)
{
	struct suite_program *p = r->program;
	struct suite_insn *insn;
	const char *w = read_word(r);

	if (strcmp(w, "end") == 0 && r->n_open == 0) {
		r->program = NULL;
		return read_end(r);
	}
	if (p->n_insns == SUITE_MAX_INSNS)
		return read_fail(r, "the program is too long", NULL);
	if (!p->insns)
		p->insns = cw_or_exit(calloc(SUITE_MAX_INSNS, sizeof(*p->insns)));
	insn = &p->insns[p->n_insns];
	*insn = (struct suite_insn){ 0 };
	if (read_statement(r, w, insn, p->n_insns) < 0)
		return -EINVAL;
	p->n_insns++;
	return read_end(r);
}
