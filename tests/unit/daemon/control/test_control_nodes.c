/* SPDX-License-Identifier: Apache-2.0 */
/* Permission to query other nodes, and the identity that the others see. */
#include "daemon/control/control_nodes.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "report/json_util.h"
#include "tests/support/cluster/cluster.h"
#include "transport/peer_query.h"

#define N_USERS 9u

static struct cluster c;
static struct cw_stacks *stacks;
static struct cw_control_nodes *nodes;
static const struct cw_control_source source;

/* The last answer of each user. */
static struct got {
	unsigned n;
	uint32_t code;
	json_t *doc;
	char error[256];
} got[N_USERS];

static void set_up(void)
{
	struct cw_stacks_config config;
	struct cw_control_nodes_config of_nodes;

	cluster_init(&c, 3, 6);
	cluster_run(&c, 5);
	config = (struct cw_stacks_config){
		.clock = c.nodes[0].clock,
		.transport = c.nodes[0].transport,
		.effects = &c.nodes[0].effects,
		.leader = c.nodes[0].leader,
		.members = c.nodes[0].election,
	};
	cr_assert_eq(cw_stacks_request_new(&config, &stacks), 0);
	of_nodes = (struct cw_control_nodes_config){
		.clock = c.nodes[0].clock,
		.transport = c.nodes[0].transport,
		.source = &source,
		.stacks = stacks,
	};
	cr_assert_eq(cw_control_nodes_new(&of_nodes, &nodes), 0);
}

static void tear_down(void)
{
	cw_control_nodes_free(nodes);
	cw_stacks_request_free(stacks);
	cluster_fini(&c);
	for (unsigned i = 0; i < N_USERS; i++)
		json_decref(got[i].doc);
}

TestSuite(control_nodes, .init = set_up, .fini = tear_down);

static void on_answer(struct cw_control_answer *a, void *user)
{
	struct got *g = user;

	g->n++;
	g->code = a->code;
	json_decref(g->doc);
	g->doc = a->json ? json_loads(a->json, 0, NULL) : NULL;
	(void)snprintf(g->error, sizeof(g->error), "%s", a->error);
}

/* Of this node: an empty list, or that it does not know. */
static bool ask_with(unsigned user, const char *verb, const char *arguments)
{
	const struct cw_caller caller = { .uid = 5000 + user };
	bool is_list = strcmp(verb, "incidents") == 0;
	struct cw_control_answer local = {
		.code = is_list ? 0 : 3,
		.json = is_list ? strdup("{\"incidents\":[]}") : NULL,
	};
	bool is_asked;

	if (!is_list)
		(void)snprintf(local.error, sizeof(local.error), "not here");
	is_asked =
		cw_control_nodes_ask(nodes, &caller, verb, arguments,
				     strcmp(verb, "stacks") ? &local : NULL, on_answer, &got[user]);
	cw_control_answer_fini(&local);
	return is_asked;
}

static bool ask(unsigned user, const char *verb)
{
	return ask_with(user, verb, "{}");
}

static void pass(double seconds)
{
	for (double t = 0; t < seconds; t += 0.25) {
		cluster_run(&c, 0.25);
		cw_control_nodes_tick(nodes);
	}
}

/* Eight users with questions that never get an answer. */
static void fill(void)
{
	for (unsigned i = 0; i < CW_PEER_QUERY_MAX; i++)
		cr_assert(ask(i, "incidents"));
	pass(0.25);
}

Test(control_nodes, who_finds_no_place_is_told_that_nobody_was_asked)
{
	fill();
	cr_assert(ask(8, "incidents"));
	pass(4.5);
	cr_assert_eq(got[8].n, 1, "an answer comes without the others");
	cr_assert_eq(got[8].code, 0);
	cr_expect_eq(cw_json_int(got[8].doc, "not_asked", 0), 2);
	cr_expect_eq(cw_json_int(got[8].doc, "silent_count", -1), 0, "no node was silent");
	pass(2);
	for (unsigned i = 0; i < CW_PEER_QUERY_MAX; i++) {
		cr_assert_eq(got[i].n, 1);
		cr_expect_null(json_object_get(got[i].doc, "not_asked"));
		cr_expect_eq(cw_json_int(got[i].doc, "silent_count", 0), 2);
	}
	cr_assert(cw_control_nodes_is_idle(nodes));
}

Test(control_nodes, a_report_or_stacks_that_nobody_was_asked_for_say_so)
{
	fill();
	cr_assert(ask(8, "report"));
	pass(4.5);
	cr_assert_eq(got[8].n, 1);
	cr_expect_eq(got[8].code, 3);
	cr_expect_not_null(strstr(got[8].error, "not here; the other nodes were not asked"), "%s",
			   got[8].error);
	fill();
	cr_assert(ask(8, "stacks"));
	pass(4.5);
	cr_assert_eq(got[8].n, 2);
	cr_expect_eq(got[8].code, 1);
	cr_expect_not_null(strstr(got[8].error, "the other nodes were not asked"), "%s",
			   got[8].error);
}

Test(control_nodes, who_waits_gets_the_place_that_becomes_free)
{
	fill();
	cr_assert(ask(8, "incidents"));
	pass(2);
	cr_assert_eq(got[8].n, 0);
	cw_control_nodes_cancel(nodes, &got[0]);
	pass(6);
	cr_assert_eq(got[8].n, 1);
	cr_expect_null(json_object_get(got[8].doc, "not_asked"));
	cr_expect_eq(cw_json_int(got[8].doc, "silent_count", 0), 2);
	cr_assert_eq(got[0].n, 0, "it was cancelled");
}

Test(control_nodes, a_users_second_question_waits_for_the_first_one)
{
	const struct cw_caller same = { .uid = 5000 };
	struct cw_control_answer local = { .json = strdup("{\"incidents\":[]}") };

	cr_assert(ask(0, "incidents"));
	pass(2);
	cr_assert(
		cw_control_nodes_ask(nodes, &same, "incidents", "{}", &local, on_answer, &got[1]));
	pass(3.5);
	cr_assert_eq(got[0].n, 1);
	cr_assert_eq(got[1].n, 0, "its turn has come only now");
	pass(6);
	cr_assert_eq(got[1].n, 1);
	cr_expect_null(json_object_get(got[1].doc, "not_asked"));
}

/* Of a job that another node leads. */
static bool ask_status(unsigned user, const char *leader, const char *arguments)
{
	const struct cw_caller caller = { .uid = 5000 + user };
	json_t *doc = json_pack("{s:[{s:s, s:i, s:s, s:s}]}", "jobs", "job", "j", "uid", 5000,
				"leader", leader, "state", "led_elsewhere");
	struct cw_control_answer local = { .json = json_dumps(doc, JSON_COMPACT) };
	bool is_asked = cw_control_nodes_ask(nodes, &caller, "status", arguments, &local, on_answer,
					     &got[user]);

	json_decref(doc);
	cw_control_answer_fini(&local);
	return is_asked;
}

static const char *leader_answer(unsigned user)
{
	const json_t *job = json_array_get(json_object_get(got[user].doc, "jobs"), 0);

	return cw_json_str(job, "leader_answer", "none");
}

Test(control_nodes, the_leader_of_a_job_is_asked_how_it_is)
{
	const char *leader = cw_transport_self(c.nodes[1].transport);

	cr_assert_not(ask_status(0, leader, "{}"), "the client did not want that");
	cr_assert_not(ask_status(0, cw_transport_self(c.nodes[0].transport), "{\"leaders\":true}"));
	cr_assert(ask_status(0, leader, "{\"leaders\":true}"));
	pass(2);
	cr_assert_eq(got[0].n, 0, "the leader has time");
	pass(2);
	cr_assert_eq(got[0].n, 1, "a leader that is silent holds nothing up");
	cr_expect_str_eq(leader_answer(0), "silent");
	cr_expect_eq(got[0].code, 0);
}

Test(control_nodes, a_dead_leader_is_not_waited_for)
{
	cluster_kill(&c, 1);
	pass(0.5);
	cr_assert(ask_status(0, cw_transport_self(c.nodes[1].transport), "{\"leaders\":true}"));
	pass(0.5);
	cr_assert_eq(got[0].n, 1);
	cr_expect_str_eq(leader_answer(0), "silent");
}

Test(control_nodes, tensor_summaries_are_asked_of_the_node_that_is_named)
{
	char arguments[128];

	cr_assert_not(ask(0, "summaries"), "this node could not say who has the job");
	cr_assert_not(ask_with(0, "summaries", "{\"node\":\"nobody\"}"));
	(void)snprintf(arguments, sizeof(arguments), "{\"node\":\"%s\"}",
		       cw_transport_self(c.nodes[1].transport));
	cr_assert(ask_with(0, "summaries", arguments));
	pass(7);
	cr_assert_eq(got[0].n, 1, "an answer comes without that node");
	cr_expect_eq(got[0].code, 3);
	cr_expect_not_null(strstr(got[0].error, "could not be asked"), "%s", got[0].error);
}
