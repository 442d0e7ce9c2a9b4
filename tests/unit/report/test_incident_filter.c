/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>

#include "common/clock.h"
#include "report/incident_filter.h"
#include "report/json_util.h"

static json_t *parse(const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);

	cr_assert_not_null(doc, "%s", text);
	return doc;
}

static bool wants(const struct cw_incident_filter *filter, const json_t *entry)
{
	return cw_incident_filter_wants(
		filter, cw_json_str(entry, "time", ""), cw_json_str(entry, "class", ""),
		cw_json_str(entry, "job", ""), json_object_get(entry, "hosts"));
}

static bool matches(struct cw_incident_filter filter, const char *entry)
{
	json_t *doc = parse(entry), *arguments = cw_incident_filter_write(&filter);
	bool direct = wants(&filter, doc), read;
	struct cw_incident_filter again;

	cr_assert_not_null(arguments);
	cw_incident_filter_read(arguments, &again);
	read = wants(&again, doc);
	cr_assert_eq(direct, read, "what was sent is what was asked");
	json_decref(arguments);
	json_decref(doc);
	return direct;
}

#define ENTRY                                                                                      \
	"{\"class\": \"mismatch\", \"job\": \"name:train\", \"time\": "                            \
	"\"2026-07-01T10:30:00.000Z\", \"hosts\": [\"node-a\", \"node-b\"]}"

static int64_t at(const char *wall)
{
	return cw_wall_parse(wall);
}

#define MATCHES(...) matches((struct cw_incident_filter){ __VA_ARGS__ }, ENTRY)

Test(incident_filter, holds_each_of_its_parts)
{
	cr_expect(MATCHES(.class = NULL));
	cr_expect(MATCHES(.class = "mismatch"));
	cr_expect_not(MATCHES(.class = "slow"));
	cr_expect(MATCHES(.node = "node-b"));
	cr_expect_not(MATCHES(.node = "node"));
	cr_expect(MATCHES(.job = "name:train"));
	cr_expect(MATCHES(.job = "train"), "as people say it");
	cr_expect_not(MATCHES(.job = "name"));
	cr_expect(MATCHES(.since_wall_ns = at("2026-07-01T10:30:00.000Z")), "then is since then");
	cr_expect_not(MATCHES(.since_wall_ns = at("2026-07-01T10:30:00.001Z")));
}

Test(incident_filter, holds_all_of_them)
{
	cr_expect(MATCHES(.class = "mismatch", .node = "node-a", .job = "train",
			  .since_wall_ns = at("2026-07-01T00:00:00.000Z")));
	cr_expect_not(MATCHES(.class = "mismatch", .node = "node-a", .job = "other"));
	cr_expect_not(MATCHES(.class = "mismatch", .node = "node-c", .job = "train"));
}

Test(incident_filter, keeps_what_may_have_been_on_the_node)
{
	struct cw_incident_filter on = { .node = "node-z" };

	cr_expect(matches(on, "{}"), "a daemon that does not say");
	cr_expect(matches(on, "{\"hosts\": [\"node-a\", null]}"), "there were more");
	cr_expect_not(matches(on, "{\"hosts\": []}"));
	on.class = "slow";
	cr_expect_not(matches(on, "{}"));
	cr_expect_not(matches(on, "{\"class\": 3, \"hosts\": 7}"), "anybody's");
}

static void expect_hosts(const char *head, const char *expected)
{
	json_t *doc = parse(head), *hosts = cw_incident_filter_hosts(doc);
	char *text = json_dumps(hosts, JSON_COMPACT);

	cr_expect_str_eq(text, expected, "%s: %s", head, text);
	free(text);
	json_decref(hosts);
	json_decref(doc);
}

Test(incident_filter, knows_the_hosts_of_culprits)
{
	expect_hosts("{\"culprits\": [{\"rank\": 1, \"host\": \"a\"}, {\"host\": \"b\"}, "
		     "{\"host\": \"a\"}, {\"host\": \"\"}, {\"host\": 3}, 7]}",
		     "[\"a\",\"b\"]");
	expect_hosts("{\"culprits\": {}}", "[]");
}

Test(incident_filter, says_where_there_were_more_hosts_than_it_keeps)
{
	json_t *culprits = json_array(), *head = json_pack("{s:o}", "culprits", culprits), *hosts;
	char host[16];

	for (unsigned i = 0; i < CW_INCIDENT_HOSTS_MAX + 5; i++) {
		(void)snprintf(host, sizeof(host), "n%u", i);
		cr_assert_eq(json_array_append_new(culprits, json_pack("{s:s}", "host", host)), 0);
		hosts = cw_incident_filter_hosts(head);
		cr_expect_eq(json_array_size(hosts),
			     i < CW_INCIDENT_HOSTS_MAX ? i + 1 : CW_INCIDENT_HOSTS_MAX + 1);
		cr_expect_eq(json_is_null(json_array_get(hosts, CW_INCIDENT_HOSTS_MAX)),
			     i >= CW_INCIDENT_HOSTS_MAX);
		json_decref(hosts);
	}
	json_decref(head);
}
