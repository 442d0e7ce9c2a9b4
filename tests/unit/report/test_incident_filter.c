/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

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

Test(incident_filter, knows_the_hosts_of_culprits)
{
	struct cw_incident_culprit culprits[] = { { .rank = 1, .host = "a" },
						  { .rank = -1, .host = "b" },
						  { .rank = 2, .host = "a" },
						  { .host = "" },
						  { .host = NULL } };
	const struct cw_incident_facts incident = { .culprits = culprits, .n_culprits = 5 };
	json_t *hosts = cw_incident_filter_hosts(&incident);
	char *text = json_dumps(hosts, JSON_COMPACT);

	cr_expect_str_eq(text, "[\"a\",\"b\"]");
	free(text);
	json_decref(hosts);
}

Test(incident_filter, says_where_there_were_more_hosts_than_it_keeps)
{
	static char names[CW_INCIDENT_HOSTS_MAX + 5][16];
	struct cw_incident_culprit culprits[CW_INCIDENT_HOSTS_MAX + 5];
	struct cw_incident_facts incident = { .culprits = culprits };
	json_t *hosts;

	for (unsigned i = 0; i < CW_INCIDENT_HOSTS_MAX + 5; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "n%u", i);
		culprits[i] = (struct cw_incident_culprit){ .host = names[i] };
		incident.n_culprits = i + 1;
		hosts = cw_incident_filter_hosts(&incident);
		cr_expect_eq(json_array_size(hosts),
			     i < CW_INCIDENT_HOSTS_MAX ? i + 1 : CW_INCIDENT_HOSTS_MAX + 1);
		cr_expect_eq(json_is_null(json_array_get(hosts, CW_INCIDENT_HOSTS_MAX)),
			     i >= CW_INCIDENT_HOSTS_MAX);
		json_decref(hosts);
	}
}
