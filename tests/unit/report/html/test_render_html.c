/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page is also read by an XML parser and drawn by a browser in
 * tests/e2e/documents/test_report_html.py.
 */
#include "report/html/render_html.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "report/doc/incident_facts.h"
#include "report/doc/snapshot_doc.h"
#include "report/html/html.h"
#include "report/html/html_baseline.h"
#include "report/html/html_ops.h"
#include "report/json_util.h"
#include "tests/support/report/markup.h"
#include "tests/support/report/report_fixture.h"

static struct cw_bundle sample(void)
{
	struct cw_snapshot *snap = fixture_snapshot();
	struct cw_bundle bundle = { 0 };
	struct cw_verdict v;

	fixture_verdict(&v);
	bundle.incident = cw_incident_doc(snap, &v, &fixture_info);
	bundle.snapshot = cw_snapshot_doc(snap);
	bundle.evidence = fixture_evidence();
	cr_assert(bundle.incident && bundle.snapshot);
	free(v.victims);
	cw_snapshot_free(snap);
	return bundle;
}

static json_t *sample_ops(void)
{
	return json_pack(
		"{s:s, s:s, s:i, s:i, s:[{s:s, s:i, s:s, s:s, s:s, s:i, s:s, s:i, s:i, s:I, s:f,"
		" s:{s:f, s:f, s:f, s:f, s:f}, s:i, s:f, s:f, s:f},"
		" {s:s, s:i, s:s, s:s, s:s, s:s, s:i, s:i, s:n, s:n}]}",
		"schema", "collwatch.ops/1", "node", "node-a", "omitted", 3, "lost", 1, "rows",
		"job", "name:train", "uid", 7, "kind", "all_reduce", "comm", "0x77", "comm_name",
		"dp", "nranks", 8, "size", "<= 1 MiB", "processes", 4, "ops", 4000, "bytes",
		(json_int_t)1048576000, "call_us", 9.1, "calls_us", "p50", 8.3, "p90", 100.0, "p99",
		1000.0, "max", 2e9, "jitter", 90.0, "timed", 37, "device_us", 181.0, "algbw_gbs",
		5.8, "busbw_gbs", 10.15, "job", "name:other", "uid", 7, "kind", "send", "comm",
		"0x78", "comm_name", "", "size", "> 256 MiB", "ops", 1, "bytes", 5, "calls_us",
		"device_us");
}

/* Adds how a job ended, as the store does. */
static void add_ending(struct cw_bundle *bundle)
{
	json_t *postmortem = fixture_postmortem();

	cr_assert_eq(cw_incident_facts_copy_ending(postmortem, bundle->incident), 0);
	json_decref(postmortem);
}

static char *render(const struct cw_bundle *bundle)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	cr_assert_not_null(out);
	cr_assert_eq(cw_render_html(out, bundle), 0);
	fclose(out);
	return text;
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
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

Test(render_html, tells_the_verdict_then_who_then_what_to_do_then_why)
{
	static const char *const order[] = {
		"<!DOCTYPE html>",
		"Content-Security-Policy\" content=\"default-src 'none'",
		">HANG<",
		"<h1>rank 3 (node-a, pid 803) never reached",
		"never entered: outside NCCL, certain",
		">Culprit<",
		"<b>rank 3</b> on node-a, pid 803",
		"outside NCCL, sleeps in pipe_read",
		"Python, innermost first",
		"read_sample",
		"/job/train_loop.py:88",
		"native, thread 803 python3, state S, in read(), waits in pipe_read",
		">What to do next<",
		"ssh node-a",
		">Waits<",
		"On tp_group, collective #42",
		"0-2,4-7",
		"all_reduce bf16 x 1048576 sum",
		"did not enter",
		">Chain of waits<",
		"<svg",
		"rank 2 waits in all_reduce bf16 x 1048576 sum on tp_group for rank 3",
		">Calls around the hang<",
		"<svg",
		">Where the others were seen<",
		"synchronize (train_loop.py:71), called by forward (:90)",
		">Ruled out<",
		"not a mismatch: all windows agree",
		">Coverage<",
		"8 of 10 ranks",
		"node-c does not answer",
		">When<",
		"(10 s later)",
		"Bundle: /var/lib/collwatch/incidents/0123456789abcdef",
		"</html>",
		NULL,
	};
	struct cw_bundle bundle = sample();
	char *text = render(&bundle);

	expect_in_order(text, order);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, tells_the_kernels_word_on_the_culprits_main_thread)
{
	struct cw_bundle bundle = sample();
	const json_t *proc = json_object_get(json_array_get(bundle.evidence, 0), "proc");
	char *text;

	json_object_set_new(json_array_get(json_object_get(proc, "threads"), 0), "off_cpu_s",
			    json_real(41));
	text = render(&bundle);
	cr_assert_not_null(strstr(text, "<p>main thread: has not run for 41 s"), "%s", text);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, a_call_that_is_not_recorded_leaves_no_empty_table)
{
	struct cw_bundle bundle = sample();
	json_t *where = json_object_get(bundle.incident, "where");
	char *text;

	json_object_set_new(bundle.incident, "class", json_string("mismatch"));
	json_array_clear(json_object_get(bundle.incident, "chain"));
	json_array_clear(json_object_get(where, "sides"));
	json_object_set_new(where, "after_seq", json_integer(0));
	text = render(&bundle);
	cr_assert_not_null(strstr(text, ", a collective up to #42.</p>"));
	cr_assert_null(strstr(text, "<th>ranks"));
	cr_assert_null(strstr(text, "id=\"waits\""));
	free(text);
	json_object_set_new(where, "after_seq", json_integer(8));
	text = render(&bundle);
	cr_assert_not_null(strstr(text, ", a collective after #8, #42 at the latest.</p>"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, a_long_list_of_ranks_ends_its_lines_between_them)
{
	struct cw_bundle bundle = sample();
	json_t *ruled_out = json_object_get(bundle.incident, "ruled_out");
	char *text;

	json_array_append_new(ruled_out,
			      json_string("no mismatch: ranks 5,13,21,29,37,45,53,61,69,77,85,93 "
					  "made the same call, too"));
	text = render(&bundle);
	cr_assert_not_null(strstr(text, "ranks 5,<wbr/>13,<wbr/>21"));
	cr_assert_not_null(strstr(text, "call, too"), "no list of numbers");
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, folds_ranks_in_the_same_position_and_draws_the_culprit_alone)
{
	struct cw_bundle bundle = sample();
	char *text = render(&bundle);

	cr_assert_eq(count(text, "class=\"row culprit\""), 1);
	cr_assert_eq(count(text, "class=\"row\""), 1, "seven ranks wait alike");
	cr_assert_eq(count(text, "class=\"box culprit\""), 1);
	cr_assert_eq(count(text, "class=\"box victim\""), 1);
	cr_assert_not_null(strstr(text, ">ranks 0-2,4-7</text>"));
	cr_assert_not_null(strstr(text, "in no NCCL call"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, stacks_of_all_ranks_are_a_tree_with_python_first)
{
	static const char doc[] =
		"{\"schema\":\"collwatch.stacks/1\",\"processes\":3,\"seen\":2,\"awaited\":0,"
		"\"cut\":0,\"not_collected\":[{\"ranks\":\"7\",\"n\":1,\"why\":\"no "
		"right\"}],\"trees\":["
		"{\"kind\":\"native\",\"thread\":\"main\",\"n\":1,\"ranks\":\"0\",\"roots\":["
		" {\"name\":\"poll\",\"n\":1,\"ranks\":\"0\",\"ends\":1,\"calls\":[]}]},"
		"{\"kind\":\"python\",\"thread\":\"main\",\"n\":2,\"ranks\":\"0,3\",\"roots\":["
		" {\"name\":\"main\",\"file\":\"/a/"
		"train.py\",\"line\":90,\"n\":2,\"ranks\":\"0,3\","
		"  \"ends\":0,\"calls\":["
		"   {\"name\":\"read_sample\",\"n\":1,\"ranks\":\"3\",\"ends\":1,\"calls\":[]},"
		"   {\"name\":\"step\",\"n\":1,\"ranks\":\"0\",\"ends\":1,\"calls\":[]}]}]}]}";
	static const char *const order[] = {
		">Where all ranks were seen<",
		"Stacks of 2 of 3 processes",
		"<b>rank 7</b>: no right",
		"<summary>Python, main thread</summary>",
		"<b>ranks 0,3</b> (2): <code>main</code> <span class=\"dim\">train.py:90</span>",
		"<b>rank 3</b>: <code>read_sample</code>",
		"<b>rank 0</b>: <code>step</code>",
		"<summary>native, main thread</summary>",
		"<code>poll</code>",
		NULL,
	};
	struct cw_bundle bundle = sample();
	const char *at;
	char *text;

	bundle.stacks = json_loads(doc, 0, NULL);
	cr_assert_not_null(bundle.stacks);
	text = render(&bundle);
	expect_in_order(text, order);
	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, asks_nobody_for_anything)
{
	static const char *const loads[] = { "<script", "<link",       "<img",    "<iframe",
					     "<object", "src=",        "@import", "url(h",
					     "https:",  "javascript:", "<base" };
	struct cw_bundle bundle = sample();
	char *text = render(&bundle);

	for (size_t i = 0; i < sizeof(loads) / sizeof(*loads); i++)
		cr_assert_null(strstr(text, loads[i]), "%s", loads[i]);
	cr_assert_eq(count(text, "http:"), count(text, "xmlns=\"http://www.w3.org/"));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, without_a_snapshot_it_says_why_there_are_no_pictures)
{
	struct cw_bundle bundle = sample();
	char *text;

	json_decref(bundle.snapshot);
	bundle.snapshot = NULL;
	text = render(&bundle);
	cr_assert_null(strstr(text, "<svg"));
	cr_assert_not_null(strstr(text, "No pictures: the bundle has no snapshot"));
	free(text);
	bundle.snapshot = json_pack("{s:i}", "ranks", 7);
	text = render(&bundle);
	cr_assert_null(strstr(text, "<svg"));
	cr_assert_not_null(strstr(text, "No pictures: "));
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, an_incident_without_its_main_fields_is_refused)
{
	struct cw_bundle bundle = { .incident = json_object() };
	FILE *out = fopen("/dev/null", "w");

	cr_assert_eq(cw_render_html(out, &bundle), -EBADMSG);
	fclose(out);
	cw_bundle_fini(&bundle);
}

Test(render_html, a_postmortem_alone_has_a_page)
{
	struct cw_bundle bundle = { .incident = fixture_postmortem() };
	char *text = render(&bundle);
	const char *at;

	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	expect_in_order(text,
			(const char *[]){
				"FAILED", "rank 4 on node-b was the first to fail", "certain",
				"train", "ab12", "no alert before the job ended",
				"For 9.2 s: rank 4", "+0.00 s", "killed itself (SIGABRT", "+1.25 s",
				"was killed by SIGTERM", "2 more", "all_reduce #31 on dp: ranks",
				"all_gather #30 on dp (open)", "another operator",
				"no kernel evidence", "07:53:33.123", "07:53:34.423", NULL });
	cr_assert_eq(count(text, "was killed itself"), 0);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, a_postmortem_stands_below_its_incident)
{
	struct cw_bundle bundle = sample();
	const char *at;
	char *text;

	add_ending(&bundle);
	text = render(&bundle);
	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	expect_in_order(text, (const char *[]){ "Ruled out", "Cause of the job's end",
						"rank 4 on node-b", "How they ended", NULL });
	cr_assert_eq(count(text, "<h1>"), 1);
	free(text);
	cw_bundle_fini(&bundle);
}

Test(render_html, what_calls_added_up_to_is_a_table_with_pictures)
{
	static const char *const order[] = {
		"Totals of its calls", "<td>all_reduce</td><td>dp</td><td>&lt;= 1 MiB</td>",
		">4000</td>", ">1.0 GB</td>", ">8.30</td>", ">90.00</td>",
		/* p10 of 10 µs is one decade of eight on 160, p90 two */
		"<rect class=\"c4\" x=\"20.0\"", "width=\"20.0\"", "class=\"arrow\" x1=\"60.0\"",
		"<circle class=\"c5\" cx=\"160.0\"", ">10.15</td>", "<td>send</td><td>0x78</td>",
		"3 rows are left out. 1 call was not counted.", NULL
	};
	struct cw_bundle bundle = sample();
	char *text = render(&bundle);
	const char *at;

	cr_assert_null(strstr(text, "id=\"ops\""), "none where the bundle has none");
	free(text);
	bundle.ops = sample_ops();
	text = render(&bundle);
	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	expect_in_order(text, order);
	free(text);
	cw_bundle_fini(&bundle);
}

/* Every string of a document becomes an attack. */
/* A reader refuses an id or a time that is none. */
static bool is_id_or_time(const json_t *value)
{
	uint64_t id;

	return cw_json_read_u64(value, &id) || cw_wall_parse(json_string_value(value)) >= 0;
}

static void poison_but(json_t *node, const char *evil, bool (*stays)(const json_t *value))
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach (node, key, value) {
		if (json_is_string(value) && strcmp(key, "schema") != 0 && !(stays && stays(value)))
			json_string_set(value, evil);
		poison_but(value, evil, stays);
	}
	json_array_foreach (node, i, value) {
		if (json_is_string(value) && !(stays && stays(value)))
			json_string_set(value, evil);
		poison_but(value, evil, stays);
	}
}

static void poison(json_t *node, const char *evil)
{
	poison_but(node, evil, NULL);
}

static char *page_of(const json_t *ops, const json_t *status)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	const char *at;

	cr_assert_eq(cw_render_ops_page(out, ops, status), 0);
	fclose(out);
	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	return text;
}

Test(render_html, a_page_of_calls_has_each_job_and_who_comes_late_in_it)
{
	static const char *const order[] = { "node-a",
					     "<h2>train</h2>",
					     "rank 5 (b&gt;, pid 71) comes late",
					     ">4000</td>",
					     "<h2>other</h2>",
					     "No rank was late again",
					     "<td>send</td>",
					     NULL };
	json_t *ops = sample_ops();
	json_t *status =
		json_pack("{s:[{s:s, s:i, s:[{s:s}]}, {s:s, s:i, s:[{s:s}]},"
			  " {s:s, s:i, s:[]}]}",
			  "jobs", "job", "name:train", "uid", 7, "late", "summary",
			  "rank 5 (b>, pid 71) comes late", "job", "name:train", "uid", 8, "late",
			  "summary", "another user's", "job", "name:other", "uid", 7, "late");
	char *text = page_of(ops, status);

	expect_in_order(text, order);
	cr_assert_null(strstr(text, "another user"));
	free(text);
	text = page_of(ops, NULL);
	cr_assert_null(strstr(text, "come late"), "that is not known");
	free(text);
	poison(ops, "\"><script>alert(1)</script>");
	poison(status, "\"><script>alert(1)</script>");
	free(page_of(ops, status));
	json_decref(ops);
	json_decref(status);
	free(page_of(NULL, NULL));
}

static json_t *sample_check(void)
{
	return json_pack("{s:s, s:s, s:s, s:{s:s}, s:[{s:s, s:f, s:i}], s:[{s:i, s:s, s:n},"
			 " {s:i, s:s, s:{s:s, s:f, s:{s:s, s:i, s:s, s:s, s:{s:f, s:i}},"
			 " s:{s:s, s:i, s:s, s:s, s:{s:f, s:i}}}}]}",
			 "schema", "collwatch.baseline_check/1", "outcome", "differs", "coverage",
			 "324 calls checked", "first", "text", "rank 1: absmax <differs>",
			 "tolerances", "dtype", "fp32", "rtol", 1.3e-6, "atol", 0, "ranks", "rank",
			 0, "part", "collectives", "first", "rank", 1, "part", "collectives",
			 "first", "text", "its absmax differs", "allowed", 0.25, "baseline", "kind",
			 "all_reduce", "seq", 7, "dtype", "fp32", "site", "a.py:3", "input",
			 "absmax", 1.5, "nonfinite", 0, "check", "kind", "all_reduce", "seq", 7,
			 "dtype", "fp16", "site", "a.py:3", "input", "absmax", 2.5, "nonfinite", 0);
}

static char *check_page(const json_t *check)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	const char *at;

	cr_assert_eq(cw_render_baseline_page(out, check), 0);
	fclose(out);
	cr_assert(markup_is_harmless(text, &at), "%.200s", at);
	return text;
}

Test(render_html, a_check_against_a_baseline_has_both_runs_side_by_side)
{
	static const char *const order[] = {
		">differs</span>",
		"<h1>rank 1: absmax &lt;differs&gt;</h1>",
		"324 calls checked",
		"<h3>rank 1</h3>",
		"its absmax differs Allowed: 0.25.",
		"<th>call</th><td>all_reduce</td><td>all_reduce</td>",
		"<th>type</th><td>fp32</td><td class=\"bad\">fp16</td>",
		"<td>a.py:3</td>",
		"<th>in: absmax</th><td>1.5</td><td class=\"bad\">2.5</td>",
		"1.3e-06",
		NULL
	};
	json_t *check = sample_check();
	char *text = check_page(check);

	expect_in_order(text, order);
	cr_assert_null(strstr(text, "<h3>rank 0</h3>"), "it does not differ");
	free(text);
	poison(check, "\"><script>alert(1)</script>");
	free(check_page(check));
	json_decref(check);
	free(check_page(NULL));
}

/* Those of the snapshot that are text: others are ids, and checked as such. */
static void poison_snapshot(json_t *snapshot, const char *evil)
{
	static const char *const keys[] = {
		"job",   "group",           "name",       "host_activity_by", "command",
		"cause", "nonfinite_input", "last_error", "cause_command",    "cause_group"
	};
	static const char *const lists[] = { "nodes", "ranks", "comms", "members" };
	json_t *each;
	size_t i;

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		json_object_set_new(snapshot, keys[k], json_string(evil));
	for (size_t l = 0; l < sizeof(lists) / sizeof(*lists); l++)
		json_array_foreach (json_object_get(snapshot, lists[l]), i, each)
			for (size_t k = 2; k < sizeof(keys) / sizeof(*keys); k++)
				if (json_object_get(each, keys[k]))
					json_object_set_new(each, keys[k], json_string(evil));
}

Test(render_html, nothing_in_a_bundle_becomes_markup)
{
	static const char *const evils[] = {
		"<script>alert(1)</script>",
		"\"><script>alert(1)</script>",
		"' onload='alert(1)' x='",
		"--></style></title><img src=x onerror=alert(1)>",
		"&lt;script&gt;]]><svg onload=alert(1)>",
		"\xe2\x80\xae<script>\x01\xc2\x9b",
	};

	for (size_t i = 0; i < sizeof(evils) / sizeof(*evils); i++) {
		struct cw_bundle bundle = sample();
		const char *at;
		char *text;

		poison_snapshot(bundle.snapshot, evils[i]);
		poison(bundle.evidence, evils[i]);
		add_ending(&bundle);
		poison_but(bundle.incident, evils[i], is_id_or_time);
		bundle.ops = sample_ops();
		poison(bundle.ops, evils[i]);
		text = render(&bundle);
		cr_assert(markup_is_harmless(text, &at), "%.200s", at);
		cr_assert_null(strstr(text, "\xe2\x80\xae"));
		free(text);
		cw_bundle_fini(&bundle);
	}
}

/*
 * Removes or replaces every value of a document in turn: the renderer must survive each remainder.
 */
static void mangle(json_t *node, json_t *const *substitutes, size_t n, struct cw_bundle *bundle)
{
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
			r = cw_render_html(out, bundle);
			cr_assert(r == 0 || r == -EBADMSG, "%s: %d", key, r);
			fclose(out);
		}
		json_object_set_new(node, key, value);
		mangle(value, substitutes, n, bundle);
	}
	json_array_foreach (node, i, value)
		mangle(value, substitutes, n, bundle);
}

Test(render_html, survives_any_value_of_a_wrong_type)
{
	struct cw_bundle bundle = sample();
	json_t *substitutes[] = {
		json_null(),      json_integer(-1),       json_string(""), json_integer(INT64_MAX),
		json_real(1e300), json_pack("[[],i]", 1),
	};

	add_ending(&bundle);
	mangle(bundle.incident, substitutes, 6, &bundle);
	mangle(bundle.evidence, substitutes, 6, &bundle);
	mangle(bundle.snapshot, substitutes, 6, &bundle);
	bundle.ops = sample_ops();
	mangle(bundle.ops, substitutes, 6, &bundle);
	for (size_t i = 0; i < 6; i++)
		json_decref(substitutes[i]);
	cw_bundle_fini(&bundle);
}

/* The check itself must be able to fail. */
Test(render_html, markup_that_is_not_whole_is_seen)
{
	static const char *const bad[] = { "<p>a",
					   "<p>a</b>",
					   "</p>",
					   "<p a=b></p>",
					   "<p>&</p>",
					   "<p><script></script></p>",
					   "<p onload=\"x\"></p>",
					   "<p a=\"<\"></p>",
					   "<p>\x01</p>",
					   "<img/>",
					   "<" };
	const char *at;
	char page[128];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		(void)snprintf(page, sizeof(page), "<!DOCTYPE html>\n%s", bad[i]);
		cr_assert_not(markup_is_harmless(page, &at), "%s", bad[i]);
	}
	cr_assert(markup_is_harmless("<!DOCTYPE html>\n<p a=\"&lt;\">&amp;<br/></p>\n", &at));
}

static char *put(const char *from, size_t max)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	html_put_short(out, from, max);
	fclose(out);
	return text;
}

Test(render_html, text_is_escaped_and_cut_by_characters)
{
	static const struct {
		const char *from, *to;
		size_t max;
	} cases[] = {
		{ "a<b>&\"'", "a&lt;b&gt;&amp;&quot;&#39;", 99 },
		{ "one\ntwo\tthree", "one two three", 99 },
		{ "\x01\x7f", "\xef\xbf\xbd\xef\xbf\xbd", 99 },
		{ "\xff\xc3", "\xef\xbf\xbd\xef\xbf\xbd", 99 },
		{ "\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd", 99 },                 /* '<', overlong */
		{ "\xe2\x80\xae.", "\xef\xbf\xbd.", 99 },                       /* right to left */
		{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", 99 }, /* surrogate */
		{ "äöü", "äö…", 2 },
		{ "äöü", "äöü", 3 },
		{ "<<<", "&lt;…", 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = put(cases[i].from, cases[i].max);

		cr_assert_str_eq(text, cases[i].to, "case %zu", i);
		free(text);
	}
}
