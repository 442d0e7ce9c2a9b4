/* SPDX-License-Identifier: Apache-2.0 */
/* The limits are Slack's own: docs.slack.dev/reference/block-kit/blocks. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/alerts/alert_slack.h"

static json_t *incident(const char *job, const char *summary, unsigned n_culprits)
{
	json_t *culprits = json_array();

	for (unsigned i = 0; i < n_culprits; i++)
		json_array_append_new(culprits, json_pack("{s:i, s:s, s:i}", "rank", i, "host",
							  "node-a", "pid", 800 + i));
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:{s:i, s:s}, s:{s:s}, s:s}", "job", job,
			 "summary", summary, "class", "never_entered", "confidence", "certain",
			 "leader", "node-b", "culprits", culprits, "victims", "count", 7, "ranks",
			 "0-2,4-7", "times", "last_progress", "2026-11-21T09:12:46.464Z", "command",
			 "collwatch report 14ebe229cdc6a26f");
}

static size_t characters(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += (*text & 0xc0) != 0x80;
	return n;
}

static const char *text_of(const json_t *block)
{
	const json_t *text = json_object_get(block, "text");

	return json_string_value(json_is_string(text) ? text : json_object_get(text, "text"));
}

/* Everything Slack would refuse the message for. */
static void check_limits(const json_t *message)
{
	const json_t *blocks = json_object_get(message, "blocks"), *block, *field;
	size_t i, k, sum = 0;

	cr_assert_leq(characters(json_string_value(json_object_get(message, "text"))), 4000);
	cr_assert_leq(json_array_size(blocks), 50);
	json_array_foreach (blocks, i, block) {
		const json_t *fields = json_object_get(block, "fields");
		const char *type = json_string_value(json_object_get(block, "type"));

		if (fields) {
			cr_assert_leq(json_array_size(fields), 10);
			json_array_foreach (fields, k, field) {
				cr_assert_leq(characters(text_of(field)), 2000);
				sum += characters(text_of(field));
			}
			continue;
		}
		cr_assert_geq(characters(text_of(block)), 1);
		cr_assert_leq(characters(text_of(block)), strcmp(type, "header") ? 3000 : 150);
		sum += characters(text_of(block));
	}
	cr_assert_lt(sum, 13000);
}

static json_t *message_of(json_t *incident)
{
	json_t *message = cw_alert_slack(incident);

	cr_assert_not_null(message);
	check_limits(message);
	json_decref(incident);
	return message;
}

Test(alert_slack, says_who_where_and_what_to_type)
{
	json_t *m = message_of(incident("slurm:4711", "rank 3 never entered all_reduce #31", 1));
	char *all = json_dumps(m, 0);

	cr_assert_str_eq(json_string_value(json_object_get(m, "text")),
			 "4711: rank 3 never entered all_reduce #31");
	cr_assert_not_null(strstr(all, "Hang: 4711"));
	cr_assert_not_null(strstr(all, "*Culprit*\\nrank 0 (node-a, pid 800)"));
	cr_assert_not_null(strstr(all, "*Waiting*\\n7 ranks, 0-2,4-7"));
	cr_assert_not_null(strstr(all, "*What to do first*\\n"), "%s", all);
	cr_assert_not_null(strstr(all, "On node-b: `collwatch report 14ebe229cdc6a26f`"));
	free(all);
	json_decref(m);
}

Test(alert_slack, says_whose_job_it_is)
{
	json_t *named = incident("j", "s", 1), *numbered = incident("j", "s", 1), *m;
	char *all;

	json_object_set_new(named, "uid", json_integer(1001));
	json_object_set_new(named, "user", json_string("<alice>"));
	m = message_of(named);
	all = json_dumps(m, 0);
	cr_assert_not_null(strstr(all, "*User*\\n&lt;alice&gt; (uid 1001)"), "%s", all);
	free(all);
	json_decref(m);
	json_object_set_new(numbered, "uid", json_integer(0));
	m = message_of(numbered);
	all = json_dumps(m, 0);
	cr_assert_not_null(strstr(all, "*User*\\nuid 0\""), "%s", all);
	free(all);
	json_decref(m);
}

Test(alert_slack, cites_a_known_hang)
{
	json_t *known = incident("j", "s", 1), *m = message_of(incident("j", "s", 1));
	char *all = json_dumps(m, 0);

	cr_expect_null(strstr(all, "Known hang"));
	free(all);
	json_decref(m);
	json_object_set_new(
		known, "known_hangs",
		json_pack("[{s:s, s:s}]", "name", "NVIDIA/nccl#2353", "fixed_in", "2.29.3"));
	m = message_of(known);
	all = json_dumps(m, 0);
	cr_expect_not_null(strstr(all, "*Known hang*\\nNVIDIA/nccl#2353, fixed in NCCL 2.29.3"),
			   "%s", all);
	free(all);
	json_decref(m);
}

Test(alert_slack, many_culprits_are_counted)
{
	json_t *m = message_of(incident("j", "s", 100));
	char *all = json_dumps(m, 0);

	cr_assert_not_null(strstr(all, "rank 3 (node-a, pid 803)\\nand 96 more"));
	free(all);
	json_decref(m);
}

Test(alert_slack, a_label_cannot_ping_the_channel_or_break_out_of_its_place)
{
	json_t *m = message_of(incident("<!channel>", "<@U1> & `x`\nnew", 0));
	const char *text = json_string_value(json_object_get(m, "text"));

	cr_assert_str_eq(text, "&lt;!channel&gt;: &lt;@U1&gt; &amp; 'x' new");
	json_decref(m);
}

Test(alert_slack, no_length_breaks_a_limit_an_escape_or_a_character)
{
	static const char *const units[] = { "x", "&", "é", "€", "😀", "<a" };

	for (size_t u = 0; u < sizeof(units) / sizeof(units[0]); u++) {
		static char text[20000];
		json_t *m;
		const char *cut;

		text[0] = '\0';
		for (size_t n = 0; n < sizeof(text) - 8; n += strlen(units[u]))
			memcpy(text + n, units[u], strlen(units[u]) + 1);
		m = message_of(incident(text, text, 8)); /* jansson refuses what is not UTF-8 */
		cut = json_string_value(json_object_get(m, "text"));
		cr_assert_str_eq(cut + strlen(cut) - strlen("…"), "…");
		if (*units[u] == '&')
			cr_assert_str_eq(cut + strlen(cut) - strlen("&amp;…"), "&amp;…");
		json_decref(m);
	}
}

Test(alert_slack, an_empty_document_still_makes_a_message)
{
	json_decref(message_of(json_object()));
}
