/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/render_text.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/report/report_fixture.h"

static struct cw_bundle sample(void)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_bundle bundle = { 0 };
	struct cw_verdict v;

	fixture_verdict(&v);
	bundle.incident = cw_incident_doc(snap, &v, &fixture_info);
	bundle.evidence = fixture_evidence();
	cr_assert_not_null(bundle.incident);
	free(v.victims);
	cw_snapshot_free(snap);
	return bundle;
}

static char *render(const struct cw_bundle *bundle, const struct cw_render_opts *opts)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	cr_assert_eq(cw_render_text(out, bundle, opts), 0);
	fclose(out);
	return text;
}

static void expect_in_order(const char *text, const char *const *pieces)
{
	const char *at = text;

	for (; *pieces; pieces++) {
		at = strstr(at, *pieces);
		cr_assert_not_null(at, "\"%s\" is missing (or comes too early) in:\n%s", *pieces,
				   text);
	}
}

Test(render_text, tells_the_verdict_then_the_culprit_then_why)
{
	static const char *const pieces[] = {
		"HANG  rank 3 (node-a, pid 803) never reached",
		"never entered: outside NCCL, certain",
		"0123456789abcdef",
		"\nCulprit\n",
		"rank 3 on node-a, pid 803",
		"outside NCCL, sleeps in pipe_read",
		"Python, innermost first",
		"> read_sample",
		"/job/train_loop.py:88",
		"native, thread 803 python3, state S, in read(), waits in pipe_read:",
		"read+14",
		"libc.so.6",
		"2 interpreter frames",
		"1 more thread",
		"\nWaits\n",
		"on tp_group, collective #42",
		"ranks 0-2,4-7 entered all_reduce bf16 x 1048576 sum",
		"rank 3 did not enter",
		"\nChain of waits\n",
		"rank 2 waits in all_reduce bf16 x 1048576 sum on tp_group for rank 3",
		"\nWhere waiting ranks were seen\n",
		"rank 5 on node-b, pid 805: synchronize (train_loop.py:71), called by forward (:90)",
		"\nRuled out\n",
		"not a mismatch: all windows agree",
		"\nCoverage\n",
		"8 of 10 ranks; missing: 8-9",
		"node-c does not answer",
		"\nWhen\n",
		"(10 s later)",
		"\nWhat to do next\n",
		"\nBundle\n",
		"collwatch report /var/lib/collwatch/incidents/0123456789abcdef",
		NULL,
	};
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { 0 };
	char *text = render(&bundle, &opts);

	expect_in_order(text, pieces);
	cr_assert_null(strstr(text, "_PyEval_EvalFrameDefault"));
	cr_assert_null(strchr(text, '\033'), "colour by default");
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, says_what_time_it_was_on_the_wall)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { 0 };
	char *text;

	cr_assert_eq(setenv("TZ", "<-0330>3:30", 1), 0);
	tzset();
	cr_assert_eq(json_object_set_new(json_object_get(bundle.incident, "times"), "confirmed",
					 json_string("2026-11-21T07:53:33.123Z")),
		     0);
	text = render(&bundle, &opts);
	cr_expect_not_null(
		strstr(text,
		       "\n  local time      2026-11-21 04:23:33 -0330 when it was confirmed\n"),
		"%s", text);
	free(text);
	cr_assert_eq(setenv("TZ", "UTC", 1), 0);
	tzset();
	text = render(&bundle, &opts);
	cr_expect_null(strstr(text, "local time"), "it is the same");
	free(text);
	cw_bundle_fini(&bundle);
}

/* Eight ranks of a lost node are one event, and of a chain its ends matter. */
Test(render_text, says_from_where_the_calls_were_issued)
{
	static const char *const pieces[] = {
		"entered all_reduce",
		"\n      issued in Comm.call (comm.py:12), called by step (train.py:41), called by "
		"main (:9)\n",
		NULL,
	};
	struct cw_bundle bundle = sample();
	const struct cw_render_opts opts = { .width = 100 };
	json_t *op, *stack;
	char *text;

	cr_assert_eq(json_unpack(bundle.incident, "{s:{s:[{s:o}]}}", "where", "sides", "op", &op),
		     0);
	stack = json_pack("[sssssss]", "libtorch_cuda.so+0x12",
			  "/usr/lib/python3.11/site-packages/torch/x.py:1 in all_reduce",
			  "/venv/site-packages/torch/y.py:2 in wrapper",
			  "/u/comm.py:12 in Comm.call", "/u/train.py:41 in step",
			  "/u/train.py:9 in main", "/u/train.py:1 in <module>");
	json_object_set_new(op, "stack", stack);
	text = render(&bundle, &opts);
	expect_in_order(text, pieces);
	free(text);

	/* Only libraries: the innermost of Python's, which says more than a place in a file. */
	while (json_array_size(stack) > 3)
		json_array_remove(stack, 3);
	text = render(&bundle, &opts);
	cr_expect(strstr(text, "issued in all_reduce (x.py:1)\n"), "%s", text);
	free(text);
	json_object_set_new(op, "stack", json_pack("[s]", "train+0x12"));
	text = render(&bundle, &opts);
	cr_expect(strstr(text, "issued at train+0x12\n"), "%s", text);
	free(text);
	json_object_set_new(op, "stack", json_pack("[]"));
	text = render(&bundle, &opts);
	cr_expect_not(strstr(text, "issued"), "%s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, says_once_what_is_the_same_and_leaves_the_middle_of_a_chain_out)
{
	static const char *const pieces[] = {
		"\nCulprits\n  ranks 8-15 on node-b\n    its node has stopped reporting\n",
		"no stacks: its node does not answer",
		"\nChain of waits\n",
		"rank 0 waits in send on pp for rank 1\n",
		"… 11 more …\n",
		"rank 19 waits in send to comm rank 20 on pp for a rank that is not visible\n",
		"NodeName=node-b State=DRAIN",
		NULL,
	};
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { 0 };
	json_t *culprits = json_array(), *chain = json_array();
	char *text;

	for (int i = 8; i < 16; i++)
		json_array_append_new(culprits, json_pack("{s:i,s:s,s:i,s:s}", "rank", i, "host",
							  "node-b", "pid", 900 + i, "reason",
							  "its node has stopped reporting"));
	for (int i = 0; i < 20; i++)
		json_array_append_new(chain,
				      json_pack("{s:i,s:s,s:i,s:{s:s,s:i}}", "rank", i, "comm_name",
						"pp", "waits_for", i < 19 ? i + 1 : -1, "op",
						"kind", "send", "peer", i + 1));
	json_object_set_new(bundle.incident, "class", json_string("node_unreachable"));
	json_object_set_new(bundle.incident, "culprits", culprits);
	json_object_set_new(bundle.incident, "chain", chain);
	text = render(&bundle, &opts);
	expect_in_order(text, pieces);
	cr_assert_null(strstr(text, "rank 10 waits"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, all_frames_shows_the_interpreter_and_all_threads)
{
	static const char *const pieces[] = { "_PyEval_EvalFrameDefault", "_start", "thread 804",
					      "poll", NULL };
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .all_frames = true };
	char *text = render(&bundle, &opts);

	expect_in_order(text, pieces);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, long_paths_are_cut_unless_all_is_asked_for)
{
	static const char path[] = "/one/rather/long/path/to/somebodys/home/directory/job/train.py";
	struct cw_bundle bundle = sample();
	struct cw_render_opts brief = { 0 }, all = { .all_frames = true };
	json_t *python = json_object_get(json_array_get(bundle.evidence, 0), "python");
	json_t *thread = json_array_get(json_object_get(python, "threads"), 0);
	json_t *frame = json_array_get(json_object_get(thread, "frames"), 1);
	char *text;

	json_object_set_new(frame, "file", json_string(path));
	text = render(&bundle, &brief);
	cr_assert_not_null(strstr(text, " …/job/train.py:88\n"));
	free(text);
	text = render(&bundle, &all);
	cr_assert_not_null(strstr(text, path));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, what_differs_and_holds_nobody_up_is_called_no_hang)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .color = false };
	json_t *victims = json_object_get(bundle.incident, "victims");
	char *text;

	json_object_set_new(bundle.incident, "class", json_string("mismatch"));
	text = render(&bundle, &opts);
	cr_assert_eq(strncmp(text, "HANG  ", 6), 0, "somebody waits");
	free(text);
	json_object_set_new(victims, "count", json_integer(0));
	text = render(&bundle, &opts);
	cr_assert_eq(strncmp(text, "MISMATCH  ", 10), 0, "%.20s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, what_may_go_on_by_itself_is_called_a_notice)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .color = false };
	char *text;

	(void)json_object_set_new(bundle.incident, "severity", json_string("page"));
	text = render(&bundle, &opts);
	cr_assert_eq(strncmp(text, "HANG  ", 6), 0, "%.20s", text);
	free(text);
	(void)json_object_set_new(bundle.incident, "severity", json_string("notice"));
	text = render(&bundle, &opts);
	cr_assert_eq(strncmp(text, "NOTICE  ", 8), 0, "%.20s", text);
	free(text);
	(void)json_object_set_new(bundle.incident, "leader", json_string("collwatch analyze"));
	text = render(&bundle, &opts);
	cr_assert_eq(strncmp(text, "HANG  ", 6), 0, "%.20s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, what_nobody_has_open_any_more_is_called_unseen)
{
	static const char *const pieces[] = { "UNSEEN  rank 3", "\nWhen\n",
					      "the time is not known, because its leader changed",
					      NULL };
	const struct cw_render_opts opts = { 0 };
	struct cw_bundle bundle = sample();
	char *text;

	(void)json_object_set_new(bundle.incident, "closed_as", json_string("unseen"));
	(void)json_object_set_new(json_object_get(bundle.incident, "times"), "resolved",
				  json_null());
	text = render(&bundle, &opts);
	expect_in_order(text, pieces);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, says_when_the_job_ends_by_itself_and_whether_anybody_said_so)
{
	const struct cw_render_opts opts = { 0 };
	struct cw_bundle bundle = sample();
	json_t *timeout = json_pack("{s:f, s:b}", "seconds", 600.0, "assumed", 1);
	char *text;

	(void)json_object_set_new(bundle.incident, "job_timeout", timeout);
	text = render(&bundle, &opts);
	cr_expect_not_null(strstr(text, "ends it after 10 min in one call (PyTorch's default"),
			   "%s", text);
	free(text);
	(void)json_object_set_new(timeout, "assumed", json_false());
	text = render(&bundle, &opts);
	cr_expect_not_null(strstr(text, "ends it after 10 min in one call\n"), "%s", text);
	free(text);
	(void)json_object_set_new(timeout, "set_by", json_string("--ddp_timeout\x1b 600"));
	text = render(&bundle, &opts);
	cr_expect_not_null(strstr(text, "after 10 min in one call (--ddp_timeout? 600)\n"), "%s",
			   text);
	free(text);
	(void)json_object_set_new(timeout, "seconds", json_real(1e300));
	text = render(&bundle, &opts);
	cr_expect_null(strstr(text, "watchdog ends it"), "%s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, says_what_is_missing_in_the_words_of_its_class)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .color = false };
	char *text;

	json_object_set_new(bundle.incident, "class", json_string("p2p_unmatched"));
	text = render(&bundle, &opts);
	cr_assert_not_null(strstr(text, "rank 3 did not post the counterpart"), "%s", text);
	free(text);
	json_array_clear(bundle.evidence);
	text = render(&bundle, &opts);
	cr_assert_not_null(strstr(text, "no stacks in this bundle"), "no stacks taken: %s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, colour_only_when_asked_for)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .color = true };
	char *text = render(&bundle, &opts);

	cr_assert_not_null(strstr(text, "\033[1;31mHANG\033[0m"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, nothing_in_a_bundle_reaches_the_terminal_as_a_command)
{
	static const char evil[] = "x\x1b[2J\x07\xc2\x9b"
				   "31m\r\ny";
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .width = 60 };
	json_t *evidence = json_array_get(bundle.evidence, 0);
	json_t *culprit = json_array_get(json_object_get(bundle.incident, "culprits"), 0);
	char *text;

	json_object_set_new(bundle.incident, "summary", json_string(evil));
	json_object_set_new(bundle.incident, "job", json_string(evil));
	json_object_set_new(culprit, "reason", json_string(evil));
	json_object_set_new(json_object_get(evidence, "proc"), "command", json_string(evil));
	text = render(&bundle, &opts);
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		cr_assert(*p >= 0x20 || *p == '\n', "control character %d", *p);
		cr_assert(p[0] != 0xc2 || p[1] < 0x80 || p[1] > 0x9f, "C1 control character");
	}
	cr_assert_not_null(strstr(text, "x?[2J??31m?"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, says_whose_job_it_is)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .width = 80 };
	char *text;

	json_object_set_new(bundle.incident, "uid", json_integer(1001));
	json_object_set_new(bundle.incident, "user", json_string("alice"));
	text = render(&bundle, &opts);
	cr_assert_not_null(strstr(text, "\n  user            alice (uid 1001)\n"), "%s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, long_sentences_keep_to_the_width)
{
	struct cw_bundle bundle = sample();
	struct cw_render_opts opts = { .width = 40 };
	json_t *culprit = json_array_get(json_object_get(bundle.incident, "culprits"), 0);
	char reason[400] = "";
	char *text, *save, *line;

	for (int i = 0; i < 50; i++)
		strcat(reason, "word ");
	json_object_set_new(culprit, "reason", json_string(reason));
	text = render(&bundle, &opts);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (strstr(line, "word"))
			cr_assert_leq(strlen(line), 40);
	free(text);
	cw_bundle_fini(&bundle);
}

/*
 * Removes or replaces every value of a document in turn: the renderer must survive each remainder.
 */
static void mangle(json_t *node, json_t *const *substitutes, size_t n, json_t *incident,
		   json_t *evidence)
{
	struct cw_bundle bundle = { .incident = incident, .evidence = evidence };
	struct cw_render_opts opts = { .all_frames = true };
	const char *key;
	json_t *value;
	void *next;
	size_t i;

	json_object_foreach_safe(node, next, key, value)
	{
		json_incref(value);
		for (i = 0; i < n; i++) {
			FILE *out = fopen("/dev/null", "w");
			int r;

			json_object_set(node, key, substitutes[i]);
			r = cw_render_text(out, &bundle, &opts);
			cr_assert(r == 0 || r == -EBADMSG, "%s: %d", key, r);
			fclose(out);
		}
		json_object_set_new(node, key, value);
		mangle(value, substitutes, n, incident, evidence);
	}
	json_array_foreach (node, i, value)
		mangle(value, substitutes, n, incident, evidence);
}

Test(render_text, survives_any_value_of_a_wrong_type)
{
	struct cw_bundle bundle = sample();
	json_t *substitutes[] = {
		json_null(),      json_integer(-1),       json_string(""),
		json_real(1e300), json_pack("[[],i]", 1), json_pack("{s:n}", "a"),
	};

	mangle(bundle.incident, substitutes, 6, bundle.incident, bundle.evidence);
	for (size_t i = 0; i < json_array_size(bundle.evidence); i++)
		mangle(json_array_get(bundle.evidence, i), substitutes, 6, bundle.incident,
		       bundle.evidence);
	for (size_t i = 0; i < 6; i++)
		json_decref(substitutes[i]);
	cw_bundle_fini(&bundle);
}

Test(render_text, an_incident_without_its_main_fields_is_refused)
{
	struct cw_bundle bundle = { .incident = json_object() };
	struct cw_render_opts opts = { 0 };
	FILE *out = fopen("/dev/null", "w");

	cr_assert_eq(cw_render_text(out, &bundle, &opts), -EBADMSG);
	fclose(out);
	cw_bundle_fini(&bundle);
}

/* It is printed as a command, and will be pasted into a shell. */
Test(render_text, a_path_is_one_argument_of_the_command)
{
	const struct cw_render_opts opts = { 0 };
	struct cw_bundle bundle = sample();
	char *text;

	json_object_set_new(bundle.incident, "bundle", json_string("/tmp/$(reboot)/it's;`id`"));
	text = render(&bundle, &opts);
	cr_expect_not_null(strstr(text, "collwatch report '/tmp/$(reboot)/it'\\''s;`id`'\n"), "%s",
			   text);
	free(text);
	json_object_set_new(bundle.incident, "bundle", json_string("/var/lib/collwatch/0123"));
	text = render(&bundle, &opts);
	cr_expect_not_null(strstr(text, "collwatch report /var/lib/collwatch/0123\n"), "%s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_text, ranks_of_a_lost_node_are_not_seen_now)
{
	const struct cw_render_opts opts = { 0 };
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_bundle bundle = { .evidence = fixture_evidence() };
	struct cw_verdict v;
	uint32_t lost = 0;
	char *text, line[128];

	fixture_verdict(&v);
	snap->nodes[0].state = CW_NODE_UNREACHABLE;
	snap->nodes[0].last_digest_ns = snap->now_ns - 18 * INT64_C(1000000000);
	for (uint32_t i = 0; i < snap->n_ranks; i++)
		lost += snap->ranks[i].node == 0;
	bundle.incident = cw_incident_doc(snap, &v, &fixture_info);
	text = render(&bundle, &opts);
	(void)snprintf(line, sizeof(line), "  %u of %u ranks; rank", snap->n_ranks - lost,
		       snap->ranks_expected);
	cr_expect_not_null(strstr(text, line), "no \"%s\" in %s", line, text);
	cr_expect_not_null(strstr(text, "last heard from 18 s earlier"), "%s", text);
	free(text);
	free(v.victims);
	cw_snapshot_free(snap);
	cw_bundle_fini(&bundle);
}
