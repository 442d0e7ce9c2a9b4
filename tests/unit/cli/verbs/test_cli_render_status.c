/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verb.h"
#include "cli/verbs/render_status.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Users from here on are known to a directory service that does not answer. */
#define FIRST_OF_DIRECTORY 5000000u

static pid_t self;
static unsigned asked_here;

struct passwd *getpwuid(uid_t uid)
{
	struct passwd *(*system)(uid_t) = (struct passwd * (*)(uid_t)) dlsym(RTLD_NEXT, "getpwuid");

	if (uid < FIRST_OF_DIRECTORY || uid >= 2 * FIRST_OF_DIRECTORY)
		return system(uid);
	if (getpid() == self) {
		asked_here++;
		return NULL;
	}
	for (;;)
		(void)pause();
}

static char *text_of(void (*render)(FILE *, const json_t *, bool), const char *json)
{
	json_t *doc = json_loads(json, 0, NULL);
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(doc, "bad test: %s", json);
	cr_assert_not_null(out);
	render(out, doc, false);
	fclose(out);
	json_decref(doc);
	return text;
}

Test(cli_render_status, shows_each_job_with_its_state)
{
	char *text = text_of(
		cw_render_status,
		"{\"node\":\"node-a\",\"version\":\"0.1.0\",\"uptime_s\":12.0,"
		"\"peers\":[{\"node\":\"node-b\",\"state\":\"connected\"}],\"notes\":[\"no key\"],"
		"\"agents\":{\"processes\":4,\"connected\":3},"
		"\"jobs\":[{\"job\":\"name:4711\",\"leader\":\"node-a\",\"ranks\":8,"
		"\"ranks_expected\":9,\"nodes\":[\"node-a\",\"node-b\"],\"comms\":5,"
		"\"state\":\"hang\",\"since_s\":3.2,\"summary\":\"rank 3 is to blame\","
		"\"incident\":\"0123\"}]}");

	cr_assert_not_null(strstr(text, "node-a: collwatchd 0.1.0, up 12 s, 4 processes watched "
					"(3 connected)"));
	cr_assert_not_null(strstr(text, "peer node-b: connected"));
	cr_assert_not_null(strstr(text, "note: no key"));
	cr_assert_not_null(strstr(text, "hang      4711  8 of 9 ranks on 2 nodes, 5 "
					"communicators, led by node-a"));
	cr_assert_not_null(strstr(text, "rank 3 is to blame"));
	cr_assert_not_null(strstr(text, "collwatch report 0123"));
	free(text);
}

Test(cli_render_status, says_whose_a_job_is_where_there_are_several_users)
{
	char *text = text_of(cw_render_status,
			     "{\"jobs\":[{\"job\":\"j\",\"uid\":0,\"state\":\"healthy\"},"
			     "{\"job\":\"k\",\"uid\":4000000000,\"state\":\"led_elsewhere\"},"
			     "{\"job\":\"l\",\"uid\":-7,\"state\":\"healthy\"}],\"tensors\":"
			     "[{\"job\":\"j\",\"uid\":0,\"summary\":\"rank 3 fed NaN\"}]}");

	cr_assert_not_null(strstr(text, "healthy   j of root  0 ranks on 0 nodes, 0 comm"), "%s",
			   text);
	cr_assert_not_null(strstr(text, "led elsewhere k of uid 4000000000  0 ranks here"));
	cr_assert_not_null(strstr(text, "healthy   l  0 ranks"), "none is known");
	cr_assert_not_null(strstr(text, "tensor    j of root  rank 3 fed NaN"));
	free(text);
	text = text_of(cw_render_status,
		       "{\"jobs\":[{\"job\":\"j\",\"uid\":0,\"state\":\"healthy\"},"
		       "{\"job\":\"k\",\"uid\":0,\"state\":\"healthy\"}]}");
	cr_assert_null(strstr(text, " of root"), "%s", text);
	free(text);
}

Test(cli_render_status, of_a_job_led_elsewhere_it_shows_what_is_known_here)
{
	char *text = text_of(cw_render_status,
			     "{\"jobs\":[{\"job\":\"j\",\"state\":\"led_elsewhere\",\"ranks\":4,"
			     "\"leader\":\"node-b\",\"since_s\":6.5}]}");

	cr_assert_not_null(strstr(text, "led elsewhere j  4 ranks here, led by node-b, for 6.5 s"));
	free(text);
}

Test(cli_render_status, names_whose_jobs_and_ranks_have_no_place)
{
	char *text =
		text_of(cw_render_status,
			"{\"jobs\":[{\"job\":\"j\",\"state\":\"untracked\",\"ranks\":4,"
			"\"leader\":\"node-b\",\"since_s\":6.5,\"summary\":\"not watched: so\"}],"
			"\"untracked\":[{\"what\":\"jobs\",\"uid\":1000,\"count\":1,"
			"\"summary\":\"1 job of uid 1000 (job j) is not watched: so\"}]}");

	cr_expect_not_null(strstr(text, "note: 1 job of uid 1000 (job j) is not watched: so\n"));
	cr_expect_not_null(strstr(text, "untracked j  4 ranks here, led by node-b"), "%s", text);
	cr_expect_not_null(strstr(text, "not watched: so\n"));
	free(text);
}

Test(cli_render_status, says_why_nobody_is_told)
{
	char *text =
		text_of(cw_render_status,
			"{\"jobs\":[{\"job\":\"j\",\"state\":\"hang\",\"suppressed\":\"shadow\","
			"\"muted\":{\"until\":\"2026-11-21T07:53:33.000Z\",\"node\":\"n1\"}},"
			"{\"job\":\"k\",\"state\":\"healthy\",\"suppressed\":null,"
			"\"muted\":{\"until\":null,\"node\":\"n2\"}},"
			"{\"job\":\"l\",\"state\":\"healthy\",\"muted\":null}]}");

	cr_assert_not_null(strstr(text, "muted on n1 until 2026-11-21T07:53:33.000Z\n"));
	cr_assert_not_null(strstr(text, "would have alerted (shadow)\n"));
	cr_assert_not_null(strstr(text, "muted on n2 until it is unmuted\n"));
	cr_assert_eq(strstr(strstr(text, "  l"), "muted"), NULL);
	free(text);
}

static void render_in_24_lines(FILE *out, const json_t *status, bool color)
{
	cw_render_status_lines(out, status, color, 24, 80);
}

Test(cli_render_status, of_a_fleet_it_shows_the_trouble_and_counts_the_rest)
{
	json_t *doc = json_pack("{s:[], s:[]}", "peers", "jobs");
	char *json, *text, node[32];
	unsigned lines = 0, column = 0;

	for (int i = 0; i < 512; i++) {
		(void)snprintf(node, sizeof(node), "n%d", i);
		json_array_append_new(json_object_get(doc, "peers"),
				      json_pack("{s:s, s:s}", "node", node, "state",
						i == 77 ? "lost" : "connected"));
		json_array_append_new(json_object_get(doc, "jobs"),
				      json_pack("{s:s, s:s, s:i, s:i, s:s}", "job", node, "state",
						i == 400 ? "hang" : "healthy", "ranks", 4096,
						"ranks_expected", 4096, "summary",
						i == 400 ? "rank 3 is to blame" : ""));
	}
	json = json_dumps(doc, 0);
	text = text_of(render_in_24_lines, json);
	for (const char *p = text; *p; p++) { /* as a terminal of 80 columns breaks them */
		lines += *p == '\n' || (column > 0 && column % 80 == 0);
		column = *p == '\n' ? 0 : column + 1;
	}
	cr_assert_leq(lines, 24);
	cr_assert_not_null(strstr(text, "peer n77: lost"));
	cr_assert_not_null(strstr(text, "peers: 511 of 512 connected"));
	cr_assert_not_null(strstr(text, "hang      n400  4096 of 4096 ranks"));
	cr_assert_lt(strstr(text, "n400"), strstr(text, "healthy"));
	cr_assert_not_null(strstr(text, "more jobs, none in a worse state than these"));
	free(text);
	free(json);
	json_decref(doc);
}

Test(cli_render_status, says_when_there_is_nothing)
{
	char *status = text_of(cw_render_status, "{}");
	char *incidents = text_of(cw_render_incidents, "{\"incidents\":[]}");

	cr_assert_not_null(strstr(status, "no job here"));
	cr_assert_str_eq(incidents, "no incidents\n");
	free(status);
	free(incidents);
}

Test(cli_render_status, lists_incidents)
{
	char *text = text_of(cw_render_incidents,
			     "{\"incidents\":[{\"id\":\"0123\",\"job\":\"name:4711\","
			     "\"class\":\"mismatch\",\"time\":\"2026-11-21T07:53:33.000Z\","
			     "\"summary\":\"counts differ\\u001b[2J\"}]}");

	cr_assert_not_null(strstr(text, "0123  2026-11-21T07:53:33.000Z  mismatch  4711"));
	cr_assert_not_null(strstr(text, "counts differ?[2J"));
	cr_assert_null(strstr(text, "unseen"));
	free(text);
	text = text_of(cw_render_incidents,
		       "{\"incidents\":[{\"id\":\"0123\",\"job\":\"name:4711\","
		       "\"closed_as\":\"unseen\"}]}");
	cr_assert_not_null(strstr(text, "4711  over (unseen: the time of its end is not known)\n"));
	free(text);
}

Test(cli_render_status, lists_incidents_as_open_or_over_and_as_notice_or_muted)
{
	char *text = text_of(cw_render_incidents,
			     "{\"incidents\":[{\"id\":\"1\",\"job\":\"name:a\",\"closed_as\":null,"
			     "\"severity\":\"page\"},{\"id\":\"2\",\"job\":\"name:b\","
			     "\"closed_as\":\"slow\",\"severity\":\"notice\"},{\"id\":\"3\","
			     "\"job\":\"name:c\",\"closed_as\":\"job_ended\",\"severity\":\"page\","
			     "\"suppressed\":\"muted\"}]}");

	cr_expect_not_null(strstr(text, "  a  open\n"), "%s", text);
	cr_expect_not_null(strstr(text, "  b  over, notice\n"), "%s", text);
	cr_expect_not_null(strstr(text, "  c  over, muted\n"), "%s", text);
	free(text);
}

Test(cli_render_status, tells_where_a_mute_holds_and_which_nodes_could_not_be_told)
{
	char *text = text_of(cw_render_mute, "{\"job\":\"name:j\",\"muted\":{\"until\":null,"
					     "\"node\":\"a\"},\"nodes\":[\"b\"],\"silent\":[\"c\"],"
					     "\"silent_count\":1}");

	cr_assert_str_eq(text, "j: muted on a, b until it is unmuted\nnote: c did not answer: the "
			       "job is not muted there\n");
	free(text);
	text = text_of(cw_render_mute,
		       "{\"job\":\"name:j\",\"muted\":null,\"silent\":[\"c\",\"d\"],"
		       "\"silent_count\":4}");
	cr_assert_str_eq(text, "j: alerts are sent again\nnote: c, d and 2 others did not answer: "
			       "a mute kept there becomes active again when the node is back\n");
	free(text);
	text = text_of(cw_render_mute,
		       "{\"job\":\"j\",\"muted\":{\"until\":\"2026\",\"node\":\"a\"}}");
	cr_assert_str_eq(text, "j: muted on a until 2026\n");
	free(text);
}

Test(cli_render_status, tells_how_many_incidents_are_not_listed)
{
	char *text = text_of(cw_render_incidents, "{\"incidents\":[],\"omitted\":1}");

	cr_assert_str_eq(text, "no incidents\n"
			       "note: 1 older one is not listed: --since, --class, --node or --job "
			       "make the list shorter\n");
	free(text);
	text = text_of(cw_render_incidents, "{\"incidents\":[],\"omitted\":2}");
	cr_assert_not_null(strstr(text, "note: 2 older ones are not listed"));
	free(text);
}

Test(cli_render_status, tells_that_other_nodes_were_not_asked)
{
	char *text = text_of(cw_render_incidents, "{\"incidents\":[],\"silent_count\":0,"
						  "\"not_asked\":3}");

	cr_assert_str_eq(
		text,
		"no incidents\nnote: the other nodes were not asked, because too many requests are "
		"running: incidents kept there are missing; try again in a few seconds\n");
	free(text);
	text = text_of(cw_render_mute, "{\"job\":\"j\",\"muted\":{\"until\":null,"
				       "\"node\":\"a\"},\"not_asked\":1}");
	cr_assert_str_eq(text, "j: muted on a until it is unmuted\nnote: the other node was not "
			       "asked, because too many requests are running: the job is not muted "
			       "there; try again in a few seconds\n");
	free(text);
}

Test(cli_render_status, survives_documents_of_another_kind)
{
	static const char *const docs[] = { "[]", "{\"jobs\":7}", "{\"jobs\":[1,null,{}]}",
					    "{\"peers\":{\"a\":1},\"notes\":[{}],\"agents\":[]}" };

	for (size_t i = 0; i < sizeof(docs) / sizeof(*docs); i++) {
		free(text_of(cw_render_status, docs[i]));
		free(text_of(cw_render_incidents, docs[i]));
	}
}

Test(cli_render_status, one_is_no_plural)
{
	char *text = text_of(cw_render_status,
			     "{\"jobs\":[{\"job\":\"j\",\"ranks\":1,\"ranks_expected\":1,\"nodes\":"
			     "[\"node-a\"],\"comms\":1,\"state\":\"healthy\"},"
			     "{\"job\":\"k\",\"ranks\":1,\"state\":\"led_elsewhere\"}]}");

	cr_assert_not_null(strstr(text, "1 of 1 rank on 1 node, 1 communicator"), "%s", text);
	cr_assert_null(strstr(text, "1 communicators"), "%s", text);
	cr_assert_not_null(strstr(text, "k  1 rank here"), "%s", text);
	free(text);
}

Test(cli_render_status, does_not_wait_for_a_directory_of_users_that_is_silent)
{
	char *text;

	self = getpid();
	text = text_of(cw_render_status,
		       "{\"jobs\":[{\"job\":\"j\",\"uid\":5000001,\"state\":\"healthy\"},"
		       "{\"job\":\"k\",\"uid\":5000002,\"state\":\"healthy\"}]}");
	cr_assert_not_null(strstr(text, "healthy   j of uid 5000001"), "%s", text);
	cr_assert_not_null(strstr(text, "healthy   k of uid 5000002"), "%s", text);
	cr_assert_eq(asked_here, 0, "who asks in this process waits for as long as it takes");
	free(text);
}

static int exit_of(const char *states)
{
	json_t *doc = json_loads(states, 0, NULL);
	int status = cw_render_status_exit(doc);

	cr_assert_not_null(doc);
	json_decref(doc);
	return status;
}

Test(cli_render_status, exits_with_what_the_worst_job_comes_to)
{
	cr_expect_eq(exit_of("{\"jobs\":[]}"), CW_EXIT_OK);
	cr_expect_eq(exit_of("{\"jobs\":[{\"state\":\"healthy\"},{\"state\":\"suspect\"},"
			     "{\"state\":\"stalled\"}]}"),
		     CW_EXIT_OK);
	cr_expect_eq(exit_of("{\"jobs\":[{\"state\":\"led_elsewhere\"},{\"state\":\"healthy\"}]}"),
		     CW_EXIT_NO_DATA, "its leader has not said how it is");
	cr_expect_eq(exit_of("{\"jobs\":[{\"state\":\"untracked\"},{\"state\":\"healthy\"}]}"),
		     CW_EXIT_NO_DATA);
	cr_expect_eq(exit_of("{\"jobs\":[{\"state\":\"untracked\"},{\"state\":\"hang\"},"
			     "{\"state\":\"untracked\"}]}"),
		     CW_EXIT_HANG);
}

Test(cli_render_status, says_that_a_job_looks_like_a_server)
{
	char *text = text_of(cw_render_status,
			     "{\"node\":\"a\",\"jobs\":[{\"job\":\"chat\",\"state\":\"healthy\","
			     "\"proposed_policy\":\"serving\"}]}");

	cr_expect_not_null(strstr(text, "looks like a server that waits for requests"), "%s", text);
	cr_expect_not_null(strstr(text, "COLLWATCH_POLICY=serving"), "%s", text);
	free(text);
	text = text_of(cw_render_status,
		       "{\"node\":\"a\",\"jobs\":[{\"job\":\"chat\",\"state\":\"healthy\"}]}");
	cr_expect_null(strstr(text, "serving"), "%s", text);
	free(text);
}
