/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind graphs: runs of equal ops, executable graphs. */
#include <criterion/criterion.h>
#include <signal.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/ops/graph.h"
#include "agent/ops/graph_part.h"
#include "model/op.h"
#include "tests/support/agent/cuda/fake_cuda.h"

static char graph, copy;

/* A graph with two groups of two equal ops. */
static struct cw_graph_part *two_groups(void)
{
	struct cw_rec_template grouped = { .count = 16,
					   .kind = CW_OP_ALL_REDUCE,
					   .dtype = CW_DTYPE_FP32,
					   .repeat = 2,
					   .flags = CW_REC_TEMPLATE_GROUPED |
						    CW_REC_TEMPLATE_GROUP_END };
	struct cw_graph_part *part;

	cr_assert(cw_agent_start());
	cw_graph_lock();
	part = cw_graph_part_new(&graph, 1, 0);
	cr_assert_not_null(part);
	cr_assert(cw_graph_part_append(part, &grouped));
	cr_assert(cw_graph_part_append(part, &grouped));
	cw_graph_unlock();
	return part;
}

static unsigned runs_of(const struct cw_graph_part *part)
{
	uint32_t at = cw_graph_replay_of(part)->first_plus_1;
	unsigned n = 0;

	for (; at; at = cw_record.templates[at - 1].next_plus_1)
		n++;
	return n;
}

Test(agent_graph_parts, equal_groups_are_two_steps_in_a_clone_too)
{
	const struct cw_graph_part *part = two_groups();

	cr_assert_eq(runs_of(part), 2);
	cw_graph_copied(&copy, &graph);
	cw_graph_lock();
	part = cw_graph_part_find(&copy, 0);
	cw_graph_unlock();
	cr_assert_not_null(part);
	cr_assert_eq(runs_of(part), 2);
	cr_assert_eq(cw_graph_replay_of(part)->colls, 4);
}

static const uint16_t *look_up(char *exec)
{
	unsigned count;

	return cw_graph_parts_of(exec, &count);
}

/* Ended graphs do not lengthen a search for a graph that never existed. */
Test(agent_graph_parts, ended_executable_graphs_lengthen_no_search)
{
	static char execs[3 * CW_GRAPH_EXECS][16];
	const unsigned n = sizeof(execs) / sizeof(execs[0]), alive = 100;

	(void)two_groups();
	for (unsigned i = 0; i < n; i++) {
		cw_graph_instantiated(execs[i], &graph, false);
		cr_assert_not_null(look_up(execs[i]));
		/* Neither the oldest first nor the newest. */
		if (i % alive != alive - 1)
			continue;
		for (unsigned k = i + 1 - alive; k <= i; k += 2)
			cw_graph_exec_destroyed(execs[k]);
		for (unsigned k = i + 2 - alive; k <= i; k += 2) {
			cr_assert_not_null(look_up(execs[k]));
			cw_graph_exec_destroyed(execs[k]);
		}
	}
	for (unsigned i = 0; i < n; i++)
		cw_graph_exec_destroyed(execs[i]);
	cr_assert_eq(cw_graph_execs_used(), 0);
	cr_assert_null(look_up(execs[0]));
}

int cuGraphDestroy(void *graph);

static void destroy(int signal_number)
{
	(void)signal_number;
	(void)cuGraphDestroy(&graph);
}

Test(agent_graph_parts, a_signal_handler_does_not_wait_for_whom_it_interrupts)
{
	fake_cuda.current = &graph; /* without a driver nothing is followed */
	(void)two_groups();
	(void)alarm(120);
	(void)signal(SIGUSR1, destroy);
	cw_graph_lock();
	(void)raise(SIGUSR1);
	cw_graph_unlock();
	(void)cuGraphDestroy(&graph);
	cw_graph_lock();
	cr_assert_null(cw_graph_part_find(&graph, 0), "calls are followed again");
	cw_graph_unlock();
}
