/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/control_merge.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct cw_merge m;
static struct cw_control_answer answer;
static json_t *doc;

static void begin(enum cw_merge_verb verb, uint32_t code, const char *json, const char *error)
{
	struct cw_control_answer local = { .code = code, .json = json ? strdup(json) : NULL };

	(void)snprintf(local.error, sizeof(local.error), "%s", error);
	cw_control_merge_begin(&m, verb, &local);
	cr_assert_null(local.json, "taken");
}

static bool add(const char *node, uint32_t code, const char *json)
{
	struct cw_msg_node_reply reply = { .code = code, .json = json, .error = "no" };

	return cw_control_merge_add(&m, node, &reply);
}

static void end(void)
{
	cw_control_merge_end(&m, &answer);
	doc = answer.json ? json_loads(answer.json, 0, NULL) : NULL;
}

static void tear_down(void)
{
	json_decref(doc);
	cw_control_answer_fini(&answer);
}

TestSuite(control_merge, .fini = tear_down);

static const char *id_at(size_t i)
{
	return json_string_value(
		json_object_get(json_array_get(json_object_get(doc, "incidents"), i), "id"));
}

Test(control_merge, lists_become_one_newest_first_each_incident_once)
{
	begin(CW_MERGE_INCIDENTS, 0,
	      "{\"incidents\":[{\"id\":\"a\",\"time\":\"2026-01-02\",\"host\":\"here\"}]}", "");
	cr_assert_not(add("b", 0,
			  "{\"incidents\":[{\"id\":\"c\",\"time\":\"2026-01-03\"},"
			  "{\"id\":\"a\",\"time\":\"2026-01-02\",\"host\":\"b\"}]}"));
	cr_assert_not(cw_control_merge_add(&m, "silent-one", NULL));
	end();
	cr_assert_eq(answer.code, 0);
	cr_assert_eq(json_array_size(json_object_get(doc, "incidents")), 2);
	cr_assert_str_eq(id_at(0), "c");
	cr_assert_str_eq(id_at(1), "a");
	cr_assert_not_null(strstr(answer.json, "\"here\""), "the nearest one is listed");
	cr_assert_eq(json_integer_value(json_object_get(doc, "silent_count")), 1);
	cr_assert_not_null(strstr(answer.json, "silent-one"));
}

Test(control_merge, nonsense_of_a_node_is_as_good_as_silence)
{
	static const char *const bad[] = { "[", "[]", "7" };
	static const char *const harmless[] = { "{}", "{\"incidents\":7}",
						"{\"incidents\":[1,null,{}]}",
						"{\"incidents\":[{\"id\":5,\"time\":[]}]}" };

	begin(CW_MERGE_INCIDENTS, 0, "{\"incidents\":[]}", "");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(add("b", 0, bad[i]));
	for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
		cr_assert_not(add("b", 0, harmless[i]));
	end();
	cr_assert_eq(json_array_size(json_object_get(doc, "incidents")), 0, "%s", answer.json);
	cr_assert_eq(json_integer_value(json_object_get(doc, "silent_count")), 3);
}

Test(control_merge, the_list_fits_a_message_however_many_nodes_there_are)
{
	char *text = NULL;
	size_t len;
	FILE *f;

	begin(CW_MERGE_INCIDENTS, 0, "{\"incidents\":[]}", "");
	for (unsigned node = 0; node < 20; node++) {
		f = open_memstream(&text, &len);
		fputs("{\"incidents\":[", f);
		for (unsigned i = 0; i < 256; i++)
			fprintf(f, "%s{\"id\":\"%x\",\"time\":\"%05u\",\"summary\":\"%0200d\"}",
				i ? "," : "", node * 256 + i, node * 256 + i, 0);
		fputs("]}", f);
		cr_assert_eq(fclose(f), 0);
		cr_assert_not(add("b", 0, text));
		free(text);
	}
	end();
	cr_assert_lt(strlen(answer.json), (size_t)CW_MSG_MAX_STRING);
	cr_assert_gt(json_array_size(json_object_get(doc, "incidents")), 500);
	cr_assert_str_eq(id_at(0), "fff", "the newest of those that were taken");
	cr_assert_eq(json_integer_value(json_object_get(doc, "omitted")) +
			     json_array_size(json_object_get(doc, "incidents")),
		     20 * 256);
}

Test(control_merge, what_nodes_omitted_is_added_up)
{
	begin(CW_MERGE_INCIDENTS, 0, "{\"incidents\":[],\"omitted\":5}", "");
	cr_assert_not(add("b", 0, "{\"incidents\":[],\"omitted\":7}"));
	cr_assert_not(add("c", 0, "{\"incidents\":[],\"omitted\":-7}"));
	cr_assert_not(add("d", 0, "{\"incidents\":[],\"omitted\":9223372036854775807}"));
	cr_assert_not(add("e", 0, "{\"incidents\":[],\"omitted\":\"x\"}"));
	end();
	cr_assert_eq(json_integer_value(json_object_get(doc, "omitted")), 12);
}

/* {"incidents":[…]} with n ids from `first` on, in steps of `step`. */
static char *list_of(unsigned n, unsigned first, unsigned step)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	fputs("{\"incidents\":[", f);
	for (unsigned i = 0; i < n; i++)
		fprintf(f, "%s{\"id\":\"%x\",\"time\":\"\"}", i ? "," : "", first + i * step);
	fputs("]}", f);
	cr_assert_eq(fclose(f), 0);
	return text;
}

Test(control_merge, each_incident_is_listed_once_however_often_nodes_name_it)
{
	char *own = list_of(4000, 0, 1), *more = list_of(256, 3984, 0),
	     *fresh = list_of(2, 3999, 1);

	begin(CW_MERGE_INCIDENTS, 0, own, "");
	for (unsigned node = 0; node < 128; node++)
		cr_assert_not(add("b", 0, more));
	cr_assert_not(add("c", 0, fresh));
	end();
	cr_assert_eq(json_array_size(json_object_get(doc, "incidents")), 4001);
	free(own);
	free(more);
	free(fresh);
}

Test(control_merge, the_first_node_that_has_the_report_answers_for_all)
{
	begin(CW_MERGE_REPORT, 3, NULL, "no incident with this id here");
	cr_assert_not(add("b", 3, ""));
	cr_assert(add("c", 0, "{\"host\":\"c\",\"sum\":186647.00002560002}"), "enough");
	end();
	cr_assert_eq(answer.code, 0);
	cr_assert_eq(json_real_value(json_object_get(doc, "sum")), 186647.00002560002, "%s",
		     answer.json);
	cr_assert_str_eq(answer.error, "");
}

Test(control_merge, who_could_not_be_asked_is_named_where_nobody_has_it)
{
	begin(CW_MERGE_REPORT, 3, NULL, "no incident with this id here");
	cr_assert_not(add("b", 3, ""));
	cr_assert_not(cw_control_merge_add(&m, "c", NULL));
	end();
	cr_assert_eq(answer.code, 3);
	cr_assert_null(answer.json);
	cr_assert_str_eq(answer.error, "no incident with this id here; c could not be asked");
}

Test(control_merge, a_mute_names_where_else_it_holds)
{
	begin(CW_MERGE_MUTE, 0, "{\"job\":\"name:j\",\"muted\":{\"node\":\"a\"}}", "");
	cr_assert_not(add("b", 0, "{\"job\":\"name:j\",\"muted\":{\"node\":\"b\"}}"));
	cr_assert_not(add("c", 3, ""));
	end();
	cr_assert_str_eq(answer.json, "{\"job\":\"name:j\",\"muted\":{\"node\":\"a\"},"
				      "\"nodes\":[\"b\"],\"silent\":[],\"silent_count\":0}");
}

Test(control_merge, a_refusal_of_the_leader_is_passed_on)
{
	cw_control_merge_begin(&m, CW_MERGE_STACKS, NULL);
	cr_assert_not(add("b", 1, ""));
	end();
	cr_assert_eq(answer.code, 1);
	cr_assert_str_eq(answer.error, "b: no");
}

Test(control_merge, who_has_a_job_becomes_one_list_and_each_speaks_for_itself)
{
	const json_t *jobs, *last;
	char many[4096] = "{\"jobs\":[";

	begin(CW_MERGE_SUMMARIES, 0, "{\"node\":\"a\",\"jobs\":[{\"node\":\"a\"}]}", "");
	cr_assert_not(add("b", 0,
			  "{\"jobs\":[{\"node\":\"a\",\"job\":\"name:j\",\"uid\":7},"
			  "{\"node\":\"b\",\"job\":\"name:j\",\"uid\":-7},"
			  "{\"node\":\"b\",\"job\":\"name:j\"},{\"uid\":7}]}"));
	cr_assert_not(add("c", 0, "{\"jobs\":7}"));
	cr_assert_not(cw_control_merge_add(&m, "silent-one", NULL));
	for (unsigned i = 0; i < 40; i++)
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many),
			       "%s{\"job\":\"j\",\"uid\":%u}", i ? "," : "", i);
	(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "]}");
	cr_assert_not(add("d", 0, many));
	end();
	cr_assert_eq(answer.code, 0);
	jobs = json_object_get(doc, "jobs");
	cr_assert_eq(json_array_size(jobs), 2 + 16, "others have places, too");
	cr_expect_str_eq(json_string_value(json_object_get(json_array_get(jobs, 1), "node")), "b");
	last = json_array_get(jobs, 17);
	cr_expect_str_eq(json_string_value(json_object_get(last, "node")), "d");
	cr_expect_str_eq(json_string_value(json_object_get(doc, "node")), "a", "who was asked");
	cr_expect_eq(json_array_size(json_object_get(doc, "silent")), 2, "and that one has more");
}

/* The answer of a single peer; this node knows nothing. */
static bool page(uint32_t code, const char *json)
{
	bool is_enough;

	begin(CW_MERGE_SUMMARIES, 3, NULL, "elsewhere");
	is_enough = add("b", code, json);
	end();
	cr_assert_eq(answer.code, code);
	return is_enough;
}

static json_int_t living_since(unsigned uid, const char *job)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (json_object_get(doc, "living"), i, entry)
		if (json_integer_value(json_object_get(entry, "uid")) == uid &&
		    strcmp(json_string_value(json_object_get(entry, "job")), job) == 0)
			return json_integer_value(json_object_get(entry, "since_ns"));
	return 0;
}

Test(control_merge, a_job_lives_since_its_first_process_on_any_node)
{
	char many[4096];

	begin(CW_MERGE_SUMMARIES, 0,
	      "{\"jobs\":[],\"living\":[{\"job\":\"j\",\"uid\":7,\"since_ns\":50}]}", "");
	cr_assert_not(
		add("b", 0,
		    "{\"living\":[{\"job\":\"j\",\"uid\":7,\"since_ns\":40},"
		    "{\"job\":\"j\",\"uid\":8,\"since_ns\":30},"
		    "{\"job\":\"j\",\"uid\":7,\"since_ns\":-3},"
		    "{\"job\":\"\",\"uid\":7,\"since_ns\":9},{\"job\":\"k\",\"since_ns\":9}]}"));
	cr_assert_not(add("c", 0, "{\"living\":[{\"job\":\"j\",\"uid\":7,\"since_ns\":60}, 3]}"));
	cr_assert_not(add("old", 0, "{\"jobs\":[]}"));
	cr_assert_not(add("odd", 0, "{\"living\":{\"job\":\"j\"}}"));
	for (unsigned node = 1; node <= 5; node++) {
		(void)snprintf(many, sizeof(many), "{\"living\":[");
		for (unsigned i = 0; i < 40; i++)
			(void)snprintf(many + strlen(many), sizeof(many) - strlen(many),
				       "%s{\"job\":\"j\",\"uid\":%u,\"since_ns\":1}", i ? "," : "",
				       100 * node + i);
		(void)snprintf(many + strlen(many), sizeof(many) - strlen(many), "]}");
		cr_assert_not(add("many", 0, many));
	}
	end();
	cr_assert_eq(answer.code, 0);
	cr_expect_eq(living_since(7, "j"), 40);
	cr_expect_eq(living_since(8, "j"), 30);
	cr_expect_eq(living_since(115, "j"), 1);
	cr_expect_eq(living_since(116, "j"), 0, "others have places, too");
	cr_expect_eq(json_array_size(json_object_get(doc, "living")), 64, "it ends");
}

Test(control_merge, a_page_is_as_the_one_node_says_it)
{
	cr_assert(page(0, "{\"ranks\":[],\"mean\":0.10000000000000002}"));
	cr_expect_not_null(json_object_get(doc, "ranks"));
	cr_expect_eq(json_real_value(json_object_get(doc, "mean")), 0.10000000000000002);
}

Test(control_merge, why_a_page_is_refused_is_told)
{
	cr_assert_not(page(1, ""));
	cr_expect_not_null(strstr(answer.error, "b: no"), "%s", answer.error);
}

/* ---- status ---- */

#define LED_ELSEWHERE                                                                               \
	"{\"job\":\"j\",\"uid\":7,\"leader\":\"b\",\"led_here\":false,\"state\":\"led_elsewhere\"," \
	"\"ranks\":2,\"ranks_expected\":null,\"summary\":\"here\",\"muted\":null}"
#define HANGS                                                                                          \
	"{\"job\":\"j\",\"uid\":7,\"leader\":\"b\",\"led_here\":true,\"state\":\"hang\",\"ranks\":8,"  \
	"\"ranks_expected\":8,\"nodes\":[\"a\",\"b\"],\"summary\":\"rank 3 is stopped\",\"incident\":" \
	"\"0123\",\"muted\":{\"node\":\"b\",\"until\":null}}"

static const char *of_job(const char *name)
{
	const json_t *job = json_array_get(json_object_get(doc, "jobs"), 0);

	return json_string_value(json_object_get(job, name));
}

static void begin_status(void)
{
	begin(CW_MERGE_STATUS, 0, "{\"jobs\":[" LED_ELSEWHERE "]}", "");
}

Test(control_merge, a_job_is_as_its_leader_says)
{
	const json_t *job;

	begin_status();
	cr_assert_not(add("b", 0, "{\"jobs\":[" HANGS "]}"));
	end();
	job = json_array_get(json_object_get(doc, "jobs"), 0);
	cr_expect_str_eq(of_job("state"), "hang");
	cr_expect_str_eq(of_job("summary"), "rank 3 is stopped");
	cr_expect_str_eq(of_job("incident"), "0123");
	cr_expect_str_eq(of_job("leader_answer"), "taken");
	cr_expect(json_is_false(json_object_get(job, "led_here")));
	cr_expect_eq(json_integer_value(json_object_get(job, "ranks")), 8);
	cr_expect(json_is_object(json_object_get(job, "muted")));
}

Test(control_merge, another_node_than_the_leader_says_nothing_of_its_job)
{
	static const char *const not_led[] = {
		"{\"jobs\":[]}",
		"{}",
		"{\"jobs\":[7,{\"job\":[],\"uid\":\"7\"},{\"job\":\"j\",\"uid\":8,\"state\":\"hang\"}]}",
	};

	begin_status();
	cr_assert_not(add("c", 0, "{\"jobs\":[" HANGS "]}"));
	end();
	cr_expect_str_eq(of_job("state"), "led_elsewhere");
	cr_expect_str_eq(of_job("leader_answer"), "not_asked");
	for (size_t i = 0; i < sizeof(not_led) / sizeof(not_led[0]); i++) {
		tear_down();
		begin_status();
		cr_assert_not(add("b", 0, not_led[i]));
		end();
		cr_expect_str_eq(of_job("leader_answer"), "not_led", "%s", not_led[i]);
		cr_expect_not_null(strstr(of_job("summary"), "have ended, or the job is new"), "%s",
				   of_job("summary"));
	}
}

Test(control_merge, a_leader_without_an_answer_is_named)
{
	begin_status();
	cr_assert_not(cw_control_merge_add(&m, "b", NULL));
	end();
	cr_expect_str_eq(of_job("state"), "led_elsewhere");
	cr_expect_str_eq(of_job("leader_answer"), "silent");
	cr_expect_not_null(strstr(of_job("summary"), "b leads this job and did not answer"));
	tear_down();
	begin_status();
	cr_assert_not(add("b", 1, "")); /* too busy */
	end();
	cr_expect_str_eq(of_job("leader_answer"), "silent");
}

Test(control_merge, a_leader_cannot_claim_a_state_or_a_kind_that_there_is_not)
{
	begin_status();
	cr_assert_not(add("b", 0, "{\"jobs\":[{\"job\":\"j\",\"uid\":7,\"state\":\"fine\"}]}"));
	end();
	cr_expect_str_eq(of_job("state"), "led_elsewhere");
	tear_down();
	begin_status();
	cr_assert_not(add("b", 0,
			  "{\"jobs\":[{\"job\":\"j\",\"uid\":7,\"state\":\"healthy\",\"summary\":7,"
			  "\"ranks\":\"x\",\"leader\":\"c\",\"extra\":1}]}"));
	end();
	cr_expect_str_eq(of_job("state"), "healthy");
	cr_expect_str_eq(of_job("summary"), "here", "a number is no summary");
	cr_expect_str_eq(of_job("leader"), "b");
	cr_expect_null(strstr(answer.json, "extra"), "%s", answer.json);
}

Test(control_merge, a_leaders_answer_has_a_bound)
{
	size_t len = CW_MSG_MAX_STRING;
	char *big = malloc(len + 256);

	(void)snprintf(big, 256,
		       "{\"jobs\":[{\"job\":\"j\",\"uid\":7,\"state\":\"hang\",\"summary\":\"");
	memset(big + strlen(big), 'x', len);
	(void)snprintf(big + len, 256, "\"}]}");
	begin_status();
	cr_assert_not(add("b", 0, big));
	end();
	free(big);
	cr_expect_str_eq(of_job("leader_answer"), "no_room");
	cr_expect_lt(strlen(answer.json), CW_MSG_MAX_STRING);
}
