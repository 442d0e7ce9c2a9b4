/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the command line when memory runs out: the answer is whole, or an error. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/control/control_merge.h"
#include "tests/support/cluster/control_fixture.h"
#include "tests/support/memory/no_memory.h"

enum { OK = 0, ERROR = 1, NO_DATA = 3 };

static const struct cw_caller root = { .uid = 0, .sees_all = true };

TestSuite(control_no_memory, .init = control_setup, .fini = control_teardown);

struct request {
	const char *verb, *arguments;
	char *right; /* the answer */
};

static void ask(void *userdata)
{
	const struct request *r = userdata;
	struct cw_control_answer a;

	no_memory_begin();
	cw_control_handle(&source, &root, r->verb, r->arguments, &a);
	no_memory_end();
	if (a.code != OK) {
		cr_assert(no_memory_happened(), "%s", a.error);
		cr_assert_null(a.json);
		cr_assert_neq(a.error[0], '\0');
		/* That it is not there would be a lie. */
		cr_assert_eq(a.code, ERROR, "%s: %s", r->verb, a.error);
		cw_control_handle(&source, &root, r->verb, r->arguments, &a);
	}
	cr_assert_eq(a.code, OK, "%s", a.error);
	cr_assert_str_eq(a.json, r->right);
	cw_control_answer_fini(&a);
}

static void expect_whole(const char *verb, const char *arguments)
{
	struct request r = { .verb = verb, .arguments = arguments };
	struct cw_control_answer a;

	cw_control_handle(&source, &root, verb, arguments, &a);
	cr_assert_eq(a.code, OK, "%s", a.error);
	r.right = strdup(a.json);
	cw_control_answer_fini(&a);
	no_memory_walk(verb, ask, &r);
	free(r.right);
}

Test(control_no_memory, answers_are_whole_or_errors)
{
	expect_whole("status", "{}");
	expect_whole("incidents", "{\"class\": \"never_entered\"}");
	expect_whole("report", "{\"id\": \"00000000000000aa\"}");
}

/* ---- answers of several nodes ---- */

static struct cw_control_answer local_incidents(void)
{
	struct cw_control_answer a;

	cw_control_handle(&source, &root, "incidents", "{}", &a);
	cr_assert_eq(a.code, OK);
	return a;
}

static void merge(void *userdata)
{
	const char *right = userdata;
	const struct cw_msg_node_reply reply = {
		.code = OK,
		.json = "{\"schema\":\"collwatch.incidents/1\",\"incidents\":[{\"id\":"
			"\"00000000000000cc\",\"uid\":1000,\"job\":\"j\",\"confirmed\":"
			"\"2026-11-21T07:53:34.123Z\"}]}",
		.error = "",
	};
	struct cw_control_answer local = local_incidents(), all;
	struct cw_merge m;

	no_memory_begin();
	cw_control_merge_begin(&m, CW_MERGE_INCIDENTS, &local);
	(void)cw_control_merge_add(&m, "node-b", &reply);
	(void)cw_control_merge_add(&m, "node-c", NULL);
	cw_control_merge_end(&m, &all);
	no_memory_end();
	cw_control_answer_fini(&local);
	if (!no_memory_happened())
		cr_assert_str_eq(all.json, right);
	/* An answer that leaves jobs out is wrong, and must be an error. */
	cr_assert(all.code == ERROR || strcmp(all.json, right) == 0, "%s", all.json);
	cw_control_answer_fini(&all);
}

Test(control_no_memory, answers_of_several_nodes_are_whole_or_say_who_is_missing)
{
	const struct cw_msg_node_reply reply = {
		.code = OK,
		.json = "{\"schema\":\"collwatch.incidents/1\",\"incidents\":[{\"id\":"
			"\"00000000000000cc\",\"uid\":1000,\"job\":\"j\",\"confirmed\":"
			"\"2026-11-21T07:53:34.123Z\"}]}",
		.error = "",
	};
	struct cw_control_answer local = local_incidents(), all;
	struct cw_merge m;

	cw_control_merge_begin(&m, CW_MERGE_INCIDENTS, &local);
	(void)cw_control_merge_add(&m, "node-b", &reply);
	(void)cw_control_merge_add(&m, "node-c", NULL);
	cw_control_merge_end(&m, &all);
	cr_assert_eq(all.code, OK);
	cr_assert(strstr(all.json, "00000000000000cc") && strstr(all.json, "node-c"), "%s",
		  all.json);
	no_memory_walk("merge", merge, all.json);
	cw_control_answer_fini(&all);
}
