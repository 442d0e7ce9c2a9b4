/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out how long the current state will last. Until then, each evaluation sees the same waits.
 * Every change already has an event in the heap. The exception is a rank that iterates in a loop.
 * Its loop lasts at least for the minimal duration of its remaining iterations.
 */
#include <stdlib.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"

/* The least duration that we may draw for a duration in the scenario. */
#define AT_LEAST(ns) ((ns) - (ns) / 50)

static void run_at_least(const struct rank *r, uint32_t *pc, uint32_t end, int64_t *host_ns);

static int64_t later_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Adds the time of all iterations of a nested loop. For an endless loop, adds one iteration. */
static void run_loop(const struct rank *r, uint32_t *pc, int64_t *host_ns)
{
	const struct suite_insn *loop = &r->program->insns[*pc];
	int64_t iteration_ns = 0;

	++*pc;
	run_at_least(r, pc, loop->other, &iteration_ns);
	++*pc;
	*host_ns += iteration_ns * (int64_t)(loop->n ? loop->n : 1);
}

/* Adds the host's minimal time for the statements from *pc to end. Calls take no time. */
static void run_at_least(const struct rank *r, uint32_t *pc, uint32_t end, int64_t *host_ns)
{
	int64_t device_ns[STREAMS] = { 0 };

	while (*pc < end) {
		const struct suite_insn *insn = &r->program->insns[*pc];

		switch (insn->kind) {
		case SUITE_WORK:
		case SUITE_IO:
		case SUITE_CHILD:
		case SUITE_SLEEP:
			*host_ns += AT_LEAST(insn->ns);
			break;
		case SUITE_COMPUTE:
			device_ns[insn->n % STREAMS] =
				later_of(device_ns[insn->n % STREAMS], *host_ns) +
				AT_LEAST(insn->ns);
			break;
		case SUITE_SYNC:
		case SUITE_WAIT:
			for (uint32_t i = 0; i < STREAMS; i++)
				if (insn->n == SUITE_NONE || insn->n % STREAMS == i)
					*host_ns = later_of(*host_ns, device_ns[i]);
			break;
		case SUITE_LOOP:
			run_loop(r, pc, host_ns);
			continue;
		case SUITE_ONLY:
			if (!cw_suite_set_has(&insn->set, r->index))
				*pc = insn->other;
			break;
		case SUITE_EVERY:
		case SUITE_GRAPH:
			*pc = insn->other;
			break;
		default:
			break;
		}
		++*pc;
	}
}

/*
 * Returns the duration of the iterations after the current one. 0 = the rank is in no loop, or only
 * in endless loops.
 */
static int64_t iterations_left_ns(const struct rank *r)
{
	int64_t left_ns = 0;

	for (uint32_t i = 0; i < r->n_frames; i++) {
		const struct frame *f = &r->frames[i];
		uint32_t pc = f->insn + 1;
		int64_t iteration_ns = 0;

		if (f->left <= f->iteration + 1)
			continue;
		run_at_least(r, &pc, r->program->insns[f->insn].other, &iteration_ns);
		left_ns += iteration_ns * (int64_t)(f->left - f->iteration - 1);
	}
	return left_ns;
}

static bool is_void(const struct event *e)
{
	return e->kind == EVENT_WAKE && (e->id != e->rank->wake_id || e->rank->ended_ns);
}

int64_t cluster_rests_until(const struct cluster *c)
{
	int64_t *of_rank = cw_or_exit(malloc(c->s->n_ranks * sizeof(*of_rank))),
		until = SUITE_FOREVER;

	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		of_rank[i] = SUITE_FOREVER;
	for (size_t i = 0; i < c->n_heap; i++) {
		const struct event *e = &c->heap[i];
		const struct rank *r = e->item ? e->item->rank : e->rank;

		if (is_void(e))
			continue;
		if (!r && e->at_ns < until)
			until = e->at_ns;
		if (r && e->at_ns < of_rank[r->index])
			of_rank[r->index] = e->at_ns;
	}
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		int64_t ns = later_of(of_rank[i], c->now_ns + iterations_left_ns(&c->ranks[i]));

		if (ns < until)
			until = ns;
	}
	free(of_rank);
	return until;
}
