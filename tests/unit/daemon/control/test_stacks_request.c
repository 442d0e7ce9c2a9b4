/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/stacks_request.h"

#include <criterion/criterion.h>
#include <string.h>

#include "report/json_util.h"
#include "tests/support/cluster/cluster.h"

static struct cluster c;
static struct cw_stacks *stacks;

/* The last answer. */
static struct {
	unsigned n;
	uint32_t code;
	json_t *doc;
	char error[256];
} got;

static const struct cw_caller root = { .uid = 0, .sees_all = true };
static const struct cw_caller owner = { .uid = 1000 };
static const struct cw_caller stranger = { .uid = 1001 };

static void set_up(void)
{
	struct cw_stacks_config config;
	int leader;

	cluster_init(&c, 3, 9);
	cluster_run(&c, 5);
	leader = cluster_leader(&c);
	config = (struct cw_stacks_config){
		.clock = c.nodes[0].clock,
		.transport = c.nodes[leader].transport,
		.effects = &c.nodes[leader].effects,
		.leader = c.nodes[leader].leader,
		.members = c.nodes[leader].election,
	};
	cr_assert_eq(cw_stacks_request_new(&config, &stacks), 0);
}

static void tear_down(void)
{
	cw_stacks_request_free(stacks);
	cluster_fini(&c);
	json_decref(got.doc);
}

TestSuite(stacks_request, .init = set_up, .fini = tear_down);

static void on_answer(struct cw_control_answer *a, void *user)
{
	got.n++;
	got.code = a->code;
	json_decref(got.doc);
	got.doc = a->json ? json_loads(a->json, 0, NULL) : NULL;
	(void)snprintf(got.error, sizeof(got.error), "%s", a->error);
}

static void begin(const struct cw_caller *caller, const char *arguments, void *user)
{
	json_t *args = json_loads(arguments, 0, NULL);

	cw_stacks_request(stacks, caller, args, on_answer, user);
	json_decref(args);
}

static void pass(double seconds)
{
	for (double t = 0; t < seconds; t += 0.25) {
		cluster_run(&c, 0.25);
		cw_stacks_request_tick(stacks);
	}
}

/* Answers in a moment. */
static void ask(const struct cw_caller *caller, const char *arguments)
{
	unsigned before = got.n;

	begin(caller, arguments, &got);
	cr_assert_eq(got.n, before, "not from inside the call");
	pass(3);
	cr_assert_eq(got.n, before + 1);
	cr_assert(cw_stacks_request_is_idle(stacks));
}

Test(stacks_request, all_ranks_of_all_nodes_are_in_the_answer)
{
	ask(&root, "{}");
	cr_assert_eq(got.code, 0, "%s", got.error);
	cr_assert_eq(cw_json_int(got.doc, "seen", 0), 9);
	cr_assert_str_eq(cw_json_str(got.doc, "ranks", ""), "0-8");
	cr_assert_str_eq(cw_json_str(got.doc, "note", "?"), "");
}

Test(stacks_request, one_rank_is_looked_at_closely)
{
	unsigned asked = 0, briefly = 0;

	ask(&owner, "{\"rank\":7}");
	cr_assert_eq(got.code, 0, "%s", got.error);
	cr_assert_eq(cw_json_int(got.doc, "processes", 0), 1);
	cr_assert_str_eq(cw_json_str(got.doc, "ranks", ""), "7");
	cr_assert_eq(json_array_size(json_object_get(got.doc, "evidence")), 1);
	for (unsigned i = 0; i < 3; i++) {
		asked += c.nodes[i].evidence_asked;
		briefly += c.nodes[i].briefly_asked;
	}
	cr_assert_eq(asked, 1);
	cr_assert_eq(briefly, 0);
}

static uint32_t what_was_asked(const char *arguments)
{
	uint32_t what = 0;

	for (unsigned i = 0; i < 3; i++)
		c.nodes[i].evidence_what = 0;
	ask(&root, arguments);
	cr_expect_eq(got.code, 0, "%s", got.error);
	for (unsigned i = 0; i < 3; i++)
		what |= c.nodes[i].evidence_what;
	return what;
}

/* Native stacks hold the rank, so a request for all ranks takes them only where it must. */
Test(stacks_request, native_stacks_and_all_threads_are_for_those_who_want_them)
{
	uint32_t what = what_was_asked("{}");

	cr_expect(what & CW_EVIDENCE_PYTHON_READ && what & CW_EVIDENCE_NATIVE_ELSE);
	cr_expect_not(what & CW_EVIDENCE_NATIVE);
	cr_expect_not(what & CW_EVIDENCE_ALL_PYTHON);
	what = what_was_asked("{\"native\":true}");
	cr_expect(what & CW_EVIDENCE_NATIVE);
	cr_expect_not(what & CW_EVIDENCE_ALL_PYTHON);
	cr_expect(what_was_asked("{\"all_threads\":true}") & CW_EVIDENCE_ALL_PYTHON);
	cr_expect(what_was_asked("{\"rank\":7}") & CW_EVIDENCE_NATIVE, "one rank");
}

/* All nodes answered at once. */
Test(stacks_request, the_answer_has_the_age_of_each_stack)
{
	const json_t *ages, *group;
	json_int_t n = 0;
	size_t i;

	ask(&root, "{}");
	ages = json_object_get(got.doc, "ages");
	json_array_foreach (ages, i, group) {
		double age = json_number_value(json_object_get(group, "age_s"));

		n += cw_json_int(group, "n", 0);
		cr_expect(age >= 0 && age <= 3, "%.1f s", age);
	}
	cr_expect_eq(n, 9);
}

Test(stacks_request, users_see_their_own_jobs_only)
{
	ask(&stranger, "{}");
	cr_assert_eq(got.code, 3);
	cr_assert_null(got.doc);
	cr_assert_not_null(strstr(got.error, "may see"), "%s", got.error);
	ask(&stranger, "{\"rank\":7}");
	cr_assert_eq(got.code, 3);
	ask(&owner, "{}");
	cr_assert_eq(got.code, 0);
}

Test(stacks_request, what_is_not_there_is_said)
{
	ask(&root, "{\"rank\":99}");
	cr_assert_eq(got.code, 3);
	ask(&root, "{\"rank\":-1}");
	cr_assert_eq(got.code, 3);
	ask(&root, "{\"rank\":8589934592}");
	cr_assert_eq(got.code, 3);
	ask(&root, "{\"job\":\"other\"}");
	cr_assert_eq(got.code, 3);
	cr_assert_not_null(strstr(got.error, "other"));
}

Test(stacks_request, a_user_gets_one_answer_at_a_time_and_one_in_two_seconds)
{
	int first, second;

	begin(&owner, "{}", &first);
	begin(&owner, "{}", &second);
	cw_stacks_request_tick(stacks);
	cr_assert_eq(got.n, 1);
	cr_assert_eq(got.code, 1);
	pass(1);
	cr_assert_eq(got.n, 2);
	cr_assert_eq(got.code, 0);
	begin(&owner, "{}", &second);
	begin(&root, "{}", &first); /* another user */
	pass(1);
	cr_assert_eq(got.n, 4);
	cr_assert_eq(cw_stacks_request_refused(stacks), 2);
	ask(&owner, "{}");
	cr_assert_eq(got.code, 0);
}

/* "Try again in 0.0 s" would be answered with the same again. */
Test(stacks_request, who_comes_a_moment_too_early_is_told_to_wait_for_a_second)
{
	int64_t asked_ns = cw_clock_now_ns(c.nodes[0].clock), left_ns;

	begin(&owner, "{}", &got);
	pass(1.75);
	cr_assert_eq(got.n, 1);
	do {
		cluster_run(&c, 0.01);
		left_ns = asked_ns + CW_STACKS_EVERY_NS - cw_clock_now_ns(c.nodes[0].clock);
	} while (left_ns > 60 * CW_NS_PER_MS);
	cr_assert_gt(left_ns, 0);
	begin(&owner, "{}", &got);
	cw_stacks_request_tick(stacks);
	cr_assert_eq(got.n, 2);
	cr_assert_str_eq(got.error, "stacks were taken just now: try again in 1 s");
}

Test(stacks_request, the_answer_comes_with_what_there_is_when_nodes_are_silent)
{
	c.evidence_mute = true;
	begin(&root, "{}", &got);
	pass(20);
	cr_assert_eq(got.n, 0);
	pass(15);
	cr_assert_eq(got.n, 1);
	cr_assert_eq(got.code, 3);
	cr_assert_eq(cw_json_int(got.doc, "seen", -1), 0);
	cr_assert_eq(cw_json_int(got.doc, "processes", 0), 9);
}

Test(stacks_request, nobody_is_called_back_who_has_gone)
{
	begin(&root, "{}", &got);
	cw_stacks_request_cancel(stacks, &got);
	cr_assert(cw_stacks_request_is_idle(stacks));
	pass(3);
	cr_assert_eq(got.n, 0);
	begin(&owner, "{}", &got); /* and it leaves with the daemon */
	stacks = cw_stacks_request_free(stacks);
	cluster_run(&c, 3);
	cr_assert_eq(got.n, 0);
}

Test(stacks_request, python_is_asked_only_in_a_confirmed_hang)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 4);
	cr_assert(cluster_run_until_alert(&c, 30));
	ask(&root, "{}");
	cr_assert_eq(got.code, 0, "%s", got.error);
	cr_assert_str_eq(cw_json_str(got.doc, "note", "?"), "");
}
