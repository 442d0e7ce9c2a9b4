/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may silence a job: users on nodes that have a part in it, regardless of the node where they
 * type it.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/alerts/mutes.h"
#include "daemon/control/control.h"
#include "tests/support/cluster/cluster.h"

#define NODES 5u
#define RANK_NODES 3u

static struct cluster c;
static char dir[] = "/tmp/cw-control-mute-XXXXXX";
static unsigned asked; /* the node that answers */

static void on_status(struct cw_status_source *ret, void *user)
{
	*ret = (struct cw_status_source){ .clock = c.nodes[asked].clock,
					  .transport = c.nodes[asked].transport,
					  .members = c.nodes[asked].election,
					  .leader = c.nodes[asked].leader };
}

static struct cw_control_source source = { .status = on_status };

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cluster_init(&c, NODES, 2 * RANK_NODES);
	c.n_rank_nodes = RANK_NODES;
	cluster_run(&c, 10);
	cr_assert_eq(cw_mutes_open(dir, c.nodes[0].clock, &source.mutes), 0);
}

static void teardown(void)
{
	char command[64];

	cw_mutes_close(source.mutes);
	cluster_fini(&c);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(control_mute, .init = setup, .fini = teardown);

/* Neither has it ranks of the job, nor does it lead it. */
static unsigned stranger(void)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	return leader == RANK_NODES ? RANK_NODES + 1 : RANK_NODES;
}

/* The code of the answer, when `node` requests it of `at` for a user who sees all. */
static uint32_t ask(unsigned at, unsigned node, const char *arguments)
{
	struct cw_caller caller = { .sees_all = true, .node = c.nodes[node].name };
	struct cw_control_answer answer;
	uint32_t code;

	asked = at;
	cw_control_handle(&source, &caller, "mute", arguments, &answer);
	code = answer.code;
	cw_control_answer_fini(&answer);
	return code;
}

static bool is_muted(void)
{
	return cw_mutes_until(source.mutes, CLUSTER_UID, CLUSTER_LABEL) != 0;
}

Test(control_mute, a_node_without_ranks_of_the_job_mutes_it_nowhere)
{
	unsigned liar = stranger();

	for (unsigned at = 0; at < RANK_NODES; at++) {
		cr_assert_eq(ask(at, liar, "{\"job\": \"" CLUSTER_LABEL "\"}"), 3);
		cr_assert_not(is_muted(), "at %s", c.nodes[at].name);
		cr_assert_eq(cw_mutes_unconfirmed(source.mutes), at + 1);
	}
	cr_assert_eq(ask((unsigned)cluster_leader(&c), liar, "{\"job\": \"" CLUSTER_LABEL "\"}"),
		     3);
	cr_assert_not(is_muted());
}

Test(control_mute, nodes_with_ranks_and_the_leader_are_believed_everywhere)
{
	unsigned leader = (unsigned)cluster_leader(&c);

	for (unsigned at = 0; at < RANK_NODES; at++)
		for (unsigned from = 0; from < NODES; from++) {
			if (from == at || (from >= RANK_NODES && from != leader))
				continue;
			cr_assert_eq(ask(at, from, "{\"job\": \"" CLUSTER_LABEL "\"}"), 0,
				     "%s by %s", c.nodes[at].name, c.nodes[from].name);
			cr_assert(is_muted());
			cr_assert_eq(
				ask(at, from, "{\"job\": \"" CLUSTER_LABEL "\", \"unmute\": true}"),
				0);
		}
	cr_assert_eq(cw_mutes_unconfirmed(source.mutes), 0);
}

Test(control_mute, what_is_typed_on_this_node_needs_no_ranks_here)
{
	static const struct cw_caller root = { .sees_all = true };
	struct cw_control_answer answer;

	asked = (unsigned)cluster_leader(&c);
	cw_control_handle(&source, &root, "mute", "{\"job\": \"" CLUSTER_LABEL "\"}", &answer);
	cr_assert_eq(answer.code, 0);
	cr_assert(is_muted());
	cw_control_answer_fini(&answer);
}

/* It silences nothing, and the job may have ended: then no node has ranks of it. */
Test(control_mute, anybody_may_take_a_mute_back)
{
	cr_assert_eq(cw_mutes_set(source.mutes, CLUSTER_UID, CLUSTER_LABEL, CW_MUTE_FOR_EVER), 0);
	cr_assert_eq(ask(0, stranger(), "{\"job\": \"" CLUSTER_LABEL "\", \"unmute\": true}"), 0);
	cr_assert_not(is_muted());
}
