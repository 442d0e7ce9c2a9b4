/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "report/json_util.h"
#include "report/shared_comms.h"

/* Entries of communicators, each "COMM JOB UID NAMESPACE"; a namespace "-" is none. */
static json_t *shared(const char *const *lines)
{
	json_t *doc = json_pack("{s:[]}", "communicators"), *list;

	for (; *lines; lines++) {
		char comm[24], job[80], ns[64];
		int uid;

		cr_assert_eq(sscanf(*lines, "%23s %79s %d %63s", comm, job, &uid, ns), 4);
		json_array_append_new(json_object_get(doc, "communicators"),
				      json_pack("{s:s, s:i, s:i, s:s, s:i, s:s}", "comm", comm,
						"nranks", 4, "seen", 1, "job", job, "uid", uid,
						"namespace", strcmp(ns, "-") ? ns : ""));
	}
	list = cw_shared_comms_find(doc);
	json_decref(doc);
	return list;
}

Test(shared_comms, names_the_jobs_and_what_is_missing)
{
	static const struct {
		const char *lines[4], *cause, *missing, *sentence;
	} cases[] = {
		{ { "0x1 master:ml/localhost:1 0 ml", "0x1 master:ml/a:1 0 ml" },
		  "job_missing",
		  "COLLWATCH_JOB",
		  "COLLWATCH_JOB is missing in ml/localhost:1 and ml/a:1: set it to one value" },
		{ { "0x1 name:ml/x 0 ml", "0x1 master:ml/a:1 0 ml" },
		  "job_missing",
		  "COLLWATCH_JOB",
		  "COLLWATCH_JOB is missing in ml/a:1: set it" },
		{ { "0x1 name:x 0 -", "0x1 name:ml/x 0 ml" },
		  "namespace_missing",
		  "COLLWATCH_POD_NAMESPACE",
		  "COLLWATCH_POD_NAMESPACE is missing in x: set it" },
		{ { "0x1 name:ops/x 0 ops", "0x1 name:ml/x 0 ml" },
		  "namespaces",
		  NULL,
		  "Pods of different namespaces are never one job" },
		{ { "0x1 name:x 0 -", "0x1 name:y 0 -" },
		  "job_differs",
		  NULL,
		  "COLLWATCH_JOB differs between them" },
		{ { "0x1 name:x 0 -", "0x1 name:x 1000 -" },
		  "users",
		  NULL,
		  "jobs x (uid 0) and x (uid 1000) share communicator 0x1 of 4 ranks" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *list = shared(cases[i].lines), *one = json_array_get(list, 0);
		char text[1024];

		cr_assert_eq(json_array_size(list), 1, "%zu", i);
		cr_expect_str_eq(cw_json_str(one, "cause", ""), cases[i].cause);
		cr_expect_str_eq(cw_json_str(one, "missing", "none"),
				 cases[i].missing ? cases[i].missing : "none");
		cw_shared_comms_format(one, text, sizeof(text));
		cr_expect(strstr(text, cases[i].sentence), "%s", text);
		json_decref(list);
	}
}

Test(shared_comms, are_none_where_each_has_one_job)
{
	json_t *list = shared(
		(const char *[]){ "0x1 name:x 0 -", "0x1 name:x 0 -", "0x2 name:y 0 -", NULL });

	cr_expect_eq(json_array_size(list), 0);
	json_decref(list);
	list = cw_shared_comms_find(NULL);
	cr_expect_eq(json_array_size(list), 0);
	json_decref(list);
}

Test(shared_comms, tells_the_same_jobs_once)
{
	json_t *list = shared((const char *[]){ "0x1 name:x 0 -", "0x1 name:y 0 -",
						"0x2 name:x 0 -", "0x2 name:y 0 -", NULL });

	cr_expect_eq(json_array_size(list), 1);
	json_decref(list);
}

/* Other nodes may send any document. */
Test(shared_comms, takes_a_document_that_is_none)
{
	static const char *const docs[] = { "{}", "{\"communicators\":7}",
					    "{\"communicators\":[1,null,{},{}]}",
					    ("{\"communicators\":[{\"comm\":1,\"job\":[]},"
					     "{\"comm\":1,\"job\":\"a\",\"uid\":1}]}") };
	char text[64];

	for (size_t i = 0; i < sizeof(docs) / sizeof(docs[0]); i++) {
		json_t *doc = json_loads(docs[i], 0, NULL), *list = cw_shared_comms_find(doc), *one;
		size_t k;

		json_array_foreach (list, k, one)
			cw_shared_comms_format(one, text, sizeof(text));
		cw_shared_comms_format(doc, text, sizeof(text));
		json_decref(list);
		json_decref(doc);
	}
}
