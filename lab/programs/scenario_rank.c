/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: scenario_rank FILE N (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT)
 *
 * One rank of the N-th labelled scenario of a file (from 0, repeats counted), as a process of its
 * own: an ordinary NCCL program that makes the scenario's calls and has the scenario's faults. It
 * really does what a cluster in memory does in virtual time (lab/vjob/cluster_host.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/parse.h"
#include "lab/programs/scenario_rank.h"

#define MS INT64_C(1000000)
#define CHECK_NCCL(call)                                                                           \
	do {                                                                                       \
		ncclResult_t nccl_r_ = (call);                                                     \
		if (nccl_r_ != ncclSuccess)                                                        \
			die("%s: %s", #call, ncclGetErrorString(nccl_r_));                         \
	} while (0)

struct frame {
	uint32_t iterations; /* 0 = endless */
	uint64_t iteration;
};

struct interpreter {
	struct rank *r;
	const struct suite_program *program;
	struct frame frames[SUITE_MAX_NEST + 1];
	uint32_t pc, n_frames;
	uint32_t stream;   /* of the graph in capture */
	bool is_odd_graph; /* the graph in capture is for a single launch */
};

struct wanted {
	uint64_t nth, at;
	uint32_t index;
	bool is_found;
};

/*
 * Host work of this length. We compute for a tenth of it and sleep for the rest: ranks share a few
 * processors here, and this is enough activity to show.
 */
static void work(int64_t ns)
{
	struct timespec begin, now;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000 * MS + now.tv_nsec - begin.tv_nsec < ns / 10);
	rank_sleep(ns - ns / 10);
}

static void do_call(struct interpreter *in)
{
	struct suite_call call = in->program->insns[in->pc++].call;
	enum effect effect = faults_before_call(in->r, &call);

	if (effect == SKIPPED)
		return;
	rank_call(in->r, &call);
	if (effect == TWICE)
		rank_call(in->r, &call);
	if (in->r->has_held) {
		in->r->has_held = false;
		rank_call(in->r, &in->r->held);
	}
}

/* ---- graphs: captured once, and again if a fault changes them ---- */

/* True if a fault will strike at one of its calls. */
static bool is_fault_in(const struct interpreter *in, const struct suite_insn *begin)
{
	const struct suite_insn *insns = in->program->insns;
	bool is_due = false;

	for (uint32_t i = in->pc + 1; i < begin->other; i++)
		if (insns[i].kind == SUITE_CALL && faults_are_due(in->r, &insns[i].call))
			is_due = true;
	return is_due;
}

static void begin_graph(struct interpreter *in)
{
	const struct suite_insn *begin = &in->program->insns[in->pc];
	CUgraphExec graph = in->r->graphs[in->pc];

	in->is_odd_graph = is_fault_in(in, begin);
	if (graph && !in->is_odd_graph) {
		for (uint32_t i = in->pc + 1; i < begin->other; i++)
			if (in->program->insns[i].kind == SUITE_CALL)
				faults_delay(in->r);
		rank_replay(in->r, begin->n, graph);
		in->pc = begin->other + 1;
		return;
	}
	in->stream = begin->n;
	rank_capture(in->r, begin->n);
	in->pc++;
}

static void end_graph(struct interpreter *in, uint32_t begin)
{
	CUgraphExec odd, *ret = in->is_odd_graph ? &odd : &in->r->graphs[begin];

	rank_end_capture(in->r, in->program->insns[begin].n, ret);
}

static void end_block(struct interpreter *in, const struct suite_insn *insn)
{
	const struct suite_insn *begin = &in->program->insns[insn->other];
	struct frame *f;

	in->pc++;
	if (begin->kind == SUITE_GROUP)
		CHECK_NCCL(ncclGroupEnd());
	if (begin->kind == SUITE_GRAPH)
		end_graph(in, insn->other);
	if (begin->kind != SUITE_LOOP)
		return;
	f = &in->frames[in->n_frames - 1];
	f->iteration++;
	if (f->iterations && f->iteration >= f->iterations)
		in->n_frames--;
	else
		in->pc = insn->other + 1;
}

static void begin_loop(struct interpreter *in, const struct suite_insn *insn)
{
	if (in->n_frames == SUITE_MAX_NEST)
		die("loops nested too deeply");
	in->frames[in->n_frames++] = (struct frame){ .iterations = insn->n };
	in->pc++;
}

static uint64_t innermost_iteration(const struct interpreter *in)
{
	return in->n_frames ? in->frames[in->n_frames - 1].iteration : 0;
}

static void do_statement(struct interpreter *in)
{
	const struct suite_insn *insn = &in->program->insns[in->pc];

	switch (insn->kind) {
	case SUITE_CALL:
		do_call(in);
		return;
	case SUITE_LOOP:
		begin_loop(in, insn);
		return;
	case SUITE_EVERY:
		in->pc = innermost_iteration(in) % insn->n == insn->n - 1 ? in->pc + 1
									  : insn->other + 1;
		return;
	case SUITE_ONLY:
		in->pc = cw_suite_set_has(&insn->set, in->r->index) ? in->pc + 1 : insn->other + 1;
		return;
	case SUITE_GRAPH:
		begin_graph(in);
		return;
	case SUITE_END:
		end_block(in, insn);
		return;
	default:
		break;
	}
	in->pc++;
	switch (insn->kind) {
	case SUITE_WORK:
		work(insn->ns);
		return;
	case SUITE_SLEEP:
		rank_sleep(insn->ns);
		return;
	case SUITE_COMPUTE:
		rank_occupy(in->r, in->r->is_capturing ? in->stream : insn->n, insn->ns);
		return;
	case SUITE_SYNC:
	case SUITE_WAIT:
		rank_sync(in->r, insn->n);
		return;
	case SUITE_GROUP:
		CHECK_NCCL(ncclGroupStart());
		return;
	case SUITE_EXIT:
		exit((int)insn->n);
	default:
		die("a statement of kind %u is not for processes", insn->kind);
	}
}

static const struct suite_program *program_of(const struct suite_scenario *s, uint32_t rank)
{
	for (uint32_t i = 0; i < s->n_programs; i++)
		if (cw_suite_set_has(&s->programs[i].set, rank))
			return &s->programs[i];
	return NULL;
}

static int run(void *user, const struct suite_scenario *s)
{
	struct wanted *wanted = user;
	struct rank r = { .s = s, .index = wanted->index };
	struct interpreter in = { .r = &r, .program = program_of(s, wanted->index) };

	if (wanted->at++ != wanted->nth)
		return 0;
	wanted->is_found = true;
	if (wanted->index >= s->n_ranks)
		die("the scenario has %u ranks", s->n_ranks);
	rank_connect(&r);
	r.start_ns = rank_now_ns(&r); /* the scenario's time starts here */
	printf("rank %u step 1\n", r.index);
	faults_schedule(&r);
	while (in.program && in.pc < in.program->n_insns)
		do_statement(&in);
	rank_sync(&r, SUITE_NONE);
	return 0;
}

int main(int argc, char **argv)
{
	const char *rank = getenv("RANK");
	struct wanted wanted = { 0 };
	struct cw_err err = { "" };
	uint64_t index;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 3 || cw_parse_u64(argv[2], 0, UINT32_MAX, &wanted.nth) < 0 || !rank ||
	    cw_parse_u64(rank, 0, SUITE_MAX_RANKS, &index) < 0)
		die("usage: RANK=… scenario_rank FILE N");
	wanted.index = (uint32_t)index;
	if (cw_suite_read_path(argv[1], run, &wanted, &err) < 0)
		die("%s", err.text);
	if (!wanted.is_found)
		die("%s has no scenario %s", argv[1], argv[2]);
	return 0;
}
