/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a message for Slack, for every class and detail and for labels by every rule. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/alerts/alert_slack.h"
#include "model/verdict_types.h"
#include "report/json_util.h"
#include "tests/support/report/for_people.h"

#define CULPRITS_MAX 6

static const char *const jobs[] = {
	"name:train",      "slurm:4711.0", "slurm:4711_3.0",
	"pbs:77.head",     "lsf:9",        "torchelastic:me#0",
	"pmix:ns",         "ompi:123",     "master:node-a:29500",
	"comm:0x1b2c3d4e", "train",
};
#define N_JOBS (sizeof(jobs) / sizeof(*jobs))

/* All texts that people read: of blocks, of their fields, and of the notification. */
static void read_all(const json_t *value)
{
	const json_t *inner;
	const char *key;
	size_t i;

	if (json_is_string(value))
		for_people(json_string_value(value));
	json_array_foreach (value, i, inner)
		read_all(inner);
	json_object_foreach ((json_t *)value, key, inner)
		if (strcmp(key, "type") != 0) /* Slack's words for its blocks */
			read_all(inner);
}

static void is_for_people(json_t *message)
{
	cr_assert_not_null(message);
	read_all(message);
	json_decref(message);
}

/* One culprit whose rank has no number, and n - 1 others. */
static json_t *culprits(unsigned n)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:o, s:s, s:i}", "rank",
						      i ? json_integer(i) : json_null(), "host",
						      "node-a", "pid", 800 + i));
	return list;
}

static json_t *incident(unsigned verdict_class, unsigned detail, unsigned n)
{
	return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:{s:i, s:s}, s:{s:s}, s:s, s:s}",
			 "job", jobs[(verdict_class + detail) % N_JOBS], "summary",
			 "rank 3 never reached all_reduce #31 on tp.", "class",
			 cw_class_name(verdict_class), "detail", cw_detail_name(detail),
			 "confidence", cw_confidence_name(n % 3), "leader", "node-b", "culprits",
			 culprits(n), "victims", "count", (int)n, "ranks", n == 1 ? "4" : "4-9",
			 "times", "last_progress", "2026-11-21T09:12:46.464Z", "command",
			 "collwatch report 14ebe229cdc6a26f", "severity",
			 cw_severity_name(n % 2 ? CW_SEVERITY_NOTICE : CW_SEVERITY_PAGE));
}

Test(alert_words, of_incidents_of_every_class_are_for_people)
{
	for (unsigned verdict_class = CW_CLASS_HEALTHY + 1; verdict_class < CW_CLASS__MAX;
	     verdict_class++)
		for (unsigned detail = 0; detail < CW_DETAIL__MAX; detail++) {
			json_t *doc = incident(verdict_class, detail,
					       (verdict_class + detail) % CULPRITS_MAX);

			is_for_people(cw_alert_slack(doc));
			json_decref(doc);
		}
}

Test(alert_words, of_what_ended_a_job_are_for_people)
{
	for (size_t i = 0; i < N_JOBS; i++) {
		json_t *doc =
			json_pack("{s:s, s:s, s:s, s:s, s:s}", "job", jobs[i], "summary",
				  "rank 4 on node-b was the first to fail.", "leader", "node-b",
				  "command", "collwatch report ab12", "severity", "failed");

		is_for_people(cw_alert_slack(doc));
		json_decref(doc);
	}
}

Test(alert_words, of_many_alerts_in_one_are_for_people)
{
	for (int n = 1; n < 3; n++) {
		json_t *list = json_array(), *doc;

		for (unsigned i = 0; i < N_JOBS; i++)
			json_array_append_new(list, incident(1 + i % (CW_CLASS__MAX - 1), 0, 1));
		doc = json_pack("{s:i, s:i, s:s, s:o, s:s, s:s}", "count", n, "uid", 1000,
				"summary", "more hangs of one user", "incidents", list, "leader",
				"node-b", "command", "collwatch report");
		is_for_people(cw_alert_slack_folded(doc));
		json_decref(doc);
	}
}

Test(alert_words, of_wrong_data_that_holds_nobody_up_do_not_say_hang)
{
	json_t *doc = incident(CW_CLASS_MISMATCH, CW_DETAIL_DTYPE, 0), *message;
	char *all;

	(void)json_object_set_new(doc, "severity", json_string("page"));
	message = cw_alert_slack(doc);
	all = json_dumps(message, 0);
	cr_expect_not_null(strstr(all, "Mismatch: "), "%s", all);
	cr_expect_not_null(strstr(all, "*Waiting*\\nno rank"), "%s", all);
	cr_expect_null(strstr(all, "Hang"), "%s", all);
	free(all);
	json_decref(message);
	json_decref(doc);
}

/* Slack shows the time of the stop by the reader's clock. */
Test(alert_words, times_are_the_readers)
{
	json_t *doc = incident(CW_CLASS_NEVER_ENTERED, CW_DETAIL_OUTSIDE_NCCL, 2);
	json_t *message = cw_alert_slack(doc);
	char *all = json_dumps(message, 0);

	cr_expect_not_null(strstr(all, "<!date^1795252366^{date_short_pretty} at {time_secs}|"
				       "2026-11-21 09:12:46 UTC>"),
			   "%s", all);
	free(all);
	json_decref(message);
	json_decref(doc);
}

Test(alert_words, a_word_for_programs_would_be_seen)
{
	static const char *const slips[] = {
		"rank 3 never_entered it", "job name:train hangs",
		"Hang: job:train",         "the others have 1 nodes left",
		"waits for 0.0 s",         "last_progress is not known",
		"a peer is never_seen",    "rank -1 (node-a)",
	};
	static const char *const right[] = {
		"all_reduce #31 on tp",
		"`collwatch report --all_frames`",
		"job train: it hangs",
		"ranks 0-1 hang",
		"11 nodes",
	};
	char buf[128];

	for (size_t i = 0; i < sizeof(slips) / sizeof(*slips); i++)
		cr_expect_not_null(for_people_slip(slips[i], buf, sizeof(buf)), "%s", slips[i]);
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		cr_expect_null(for_people_slip(right[i], buf, sizeof(buf)), "%s", right[i]);
}
