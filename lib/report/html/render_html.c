/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The page has the contents of the text report, in the order of urgency: first the summary, the
 * culprit and the advice, then the reasons. It has the words of the text report, and adds pictures
 * and all frames.
 *
 * A browser shows the bundle, which is hostile input. Every string goes through html_put(), and
 * there is no script at all. If a string were written without html_put(), the policy in the page's
 * head would still forbid the browser to run or fetch anything.
 */
#include "report/html/render_html.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/clock.h"
#include "common/parse.h"
#include "report/coverage.h"
#include "report/doc/advice.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"
#include "report/doc/nccl_errors.h"
#include "report/doc/snapshot_doc.h"
#include "report/doc/torch_settings.h"
#include "report/frames.h"
#include "report/html/html.h"
#include "report/html/html_drawing.h"
#include "report/html/html_ops.h"
#include "report/html/html_page.h"
#include "report/html/html_postmortem.h"
#include "report/html/html_stacks.h"
#include "report/json_util.h"
#include "report/nonfinite_inputs.h"

#define MAX_CULPRITS 16u
#define MAX_WITNESSES 8u

static bool is_resolved(const json_t *incident)
{
	return json_is_string(json_object_get(json_object_get(incident, "times"), "resolved"));
}

static void put_head(FILE *out, const json_t *incident)
{
	char class[128];

	html_page_begin(out);
	html_put(out, cw_doc_class(incident, class, sizeof(class)));
	fputs(", job ", out);
	html_put(out, cw_doc_job(incident, ""));
	html_page_body(out);
}

/* ---- the top ---- */

static void put_headline(FILE *out, const json_t *incident)
{
	const char *victims = cw_json_str(json_object_get(incident, "victims"), "ranks", "");
	bool resolved = is_resolved(incident);
	char text[1280], class[128];

	fprintf(out, "<header>\n<span class=\"flag%s\">%s</span>\n<h1>", resolved ? " over" : "",
		phrase_doc_flag(incident));
	html_put_sentence(out, phrase_doc_summary(incident, text, sizeof(text)));
	fputs("</h1>\n<dl class=\"facts\">\n", out);
	(void)snprintf(text, sizeof(text), "%s, %s", cw_doc_class(incident, class, sizeof(class)),
		       cw_json_str(incident, "confidence", ""));
	html_put_fact(out, "class", text);
	html_put_fact(out, "job", cw_doc_job(incident, ""));
	html_put_fact(out, "user", cw_doc_user(incident, text, sizeof(text)));
	html_put_fact(out, "incident", cw_json_str(incident, "id", ""));
	html_put_fact(out, "closed as",
		      cw_doc_words(cw_json_str(incident, "closed_as", ""), class, sizeof(class)));
	if (*victims) {
		fprintf(out, "<dt>waiting</dt><dd>rank%s ", phrase_is_many(victims) ? "s" : "");
		html_put_ranks(out, victims);
		fputs("</dd>\n", out);
	}
	fputs("</dl>\n</header>\n", out);
}

static void put_process(FILE *out, const json_t *who)
{
	char text[64], where[CW_DOC_WHERE_BYTES], pod[CW_DOC_POD_BYTES];

	fputs("<b>", out);
	html_put(out, phrase_doc_rank(who, text, sizeof(text)));
	fputs("</b>", out);
	html_put(out, cw_doc_where(who, true, where, sizeof(where)));
	html_put(out, cw_doc_pod(who, pod, sizeof(pod)));
}

/* Writes n culprits as one entry, because they share host and reason. */
static void put_processes(FILE *out, const json_t *culprits, size_t from, size_t n)
{
	const json_t *first = json_array_get(culprits, from);
	char text[128], where[CW_DOC_WHERE_BYTES];

	if (n == 1) {
		put_process(out, first);
		return;
	}
	fputs("<b>", out);
	html_put(out, phrase_doc_ranks(culprits, from, n, text, sizeof(text)));
	fputs("</b>", out);
	html_put(out, cw_doc_where(first, false, where, sizeof(where)));
}

static void put_culprit(FILE *out, const struct cw_bundle *b, size_t from, size_t n)
{
	const json_t *culprits = json_object_get(b->incident, "culprits");
	const json_t *culprit = json_array_get(culprits, from);
	const json_t *evidence = cw_incident_doc_evidence_of(culprit, b->evidence);

	fputs("<div class=\"who\">\n<h3>", out);
	put_processes(out, culprits, from, n);
	fputs("</h3>\n<p>", out);
	html_put_sentence(out, cw_json_str(culprit, "reason", ""));
	fputs("</p>\n", out);
	if (evidence)
		html_put_evidence(out, evidence);
	else
		fprintf(out, "<p class=\"dim\">%s</p>\n",
			phrase_doc_no_stacks(b->incident, b->evidence));
	fputs("</div>\n", out);
}

static void put_culprits(FILE *out, const struct cw_bundle *b)
{
	const json_t *culprits = json_object_get(b->incident, "culprits");
	size_t n = json_array_size(culprits), alike, shown = 0;

	html_section(out, "culprits",
		     n == 1 ? "Culprit"
		     : n    ? "Culprits"
			    : "No culprit can be named");
	for (size_t i = 0; i < n; i += alike) {
		if (shown++ == MAX_CULPRITS) {
			fprintf(out, "<p>… and %zu more.</p>\n", n - i);
			break;
		}
		alike = doc_culprits_alike(culprits, i, b->evidence);
		put_culprit(out, b, i, alike);
	}
	html_section_end(out);
}

static void put_advice(FILE *out, const json_t *incident)
{
	struct advice advice;

	cw_advice(incident, &advice);
	if (!advice.n)
		return;
	html_section(out, "next", "What to do next");
	fputs("<ol>\n", out);
	for (unsigned i = 0; i < advice.n; i++) {
		fputs("<li>", out);
		html_put(out, advice.steps[i].text);
		if (*advice.steps[i].command) {
			fputs("<pre>", out);
			html_put(out, advice.steps[i].command);
			fputs("</pre>", out);
		}
		fputs("</li>\n", out);
	}
	fputs("</ol>\n", out);
	html_section_end(out);
}

/* ---- why ---- */

static void put_where(FILE *out, const json_t *incident)
{
	const json_t *where = json_object_get(incident, "where");
	const json_t *sides = json_object_get(where, "sides"), *side;
	bool differs = strcmp(cw_json_str(incident, "class", ""), "mismatch") == 0;
	char text[512];
	size_t i;

	if (!json_is_object(where))
		return;
	html_section(out, "where", differs ? "First call that differs" : "Who waits for what");
	fputs("<p>On ", out);
	html_put(out, phrase_doc_comm(where, text, sizeof(text)));
	fprintf(out, "%s.</p>\n", phrase_doc_seq(where, text, sizeof(text)));
	if (json_array_size(sides))
		fputs("<table class=\"sides\">\n<tr><th>ranks</th><th>call</th></tr>\n", out);
	json_array_foreach (sides, i, side) {
		const json_t *op = json_object_get(side, "op");

		fputs("<tr><td>", out);
		html_put_ranks(out, cw_json_str(side, "ranks", "?"));
		fputs(json_is_object(op) ? "</td><td>" : "</td><td class=\"bad\">", out);
		html_put(out, json_is_object(op) ? phrase_doc_op(op, text, sizeof(text))
						 : phrase_doc_absence(incident));
		if (*phrase_doc_issued(op, text, sizeof(text))) {
			fputs("<br>", out);
			html_put(out, text);
		}
		fputs("</td></tr>\n", out);
	}
	if (json_array_size(sides))
		fputs("</table>\n", out);
	html_section_end(out);
}

static void put_wait_list(FILE *out, const json_t *incident, const json_t *waits)
{
	size_t n = json_array_size(waits);
	char text[512];

	fputs("<ul>\n", out);
	for (size_t i = 0; i < n; i++) {
		size_t omitted = doc_waits_omitted(n, i);

		if (omitted) {
			fprintf(out, "<li>… %zu more …</li>\n", omitted);
			i += omitted - 1;
			continue;
		}
		fputs("<li>", out);
		html_put(out,
			 phrase_doc_wait(incident, json_array_get(waits, i), text, sizeof(text)));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static void put_waits(FILE *out, const json_t *incident, const struct drawing *d)
{
	const json_t *cycle = json_object_get(incident, "cycle");
	const json_t *chain = json_object_get(incident, "chain");
	bool is_cycle = json_array_size(cycle) > 0;

	/*
	 * If calls differ but block no rank, the incident has neither waits nor a picture of them.
	 */
	if (!is_cycle && !json_array_size(chain))
		return;
	html_section(out, "waits", is_cycle ? "Circle of waits" : "Chain of waits");
	if (d)
		html_put_waits(out, d);
	if (json_array_size(is_cycle ? cycle : chain))
		put_wait_list(out, incident, is_cycle ? cycle : chain);
	html_section_end(out);
}

static void put_timeline(FILE *out, const struct drawing *d)
{
	if (!d)
		return;
	html_section(out, "timeline", "Calls around the hang");
	html_put_timeline(out, d);
	html_section_end(out);
}

/* Writes one line for each waiting rank that we inspected. A click opens its stacks. */
static void put_witnesses(FILE *out, const struct cw_bundle *b)
{
	const json_t *evidence;
	char where[512];
	size_t i, n = 0;

	json_array_foreach (b->evidence, i, evidence) {
		if (doc_is_culprit(b->incident, evidence))
			continue;
		if (n++ == MAX_WITNESSES)
			return;
		fputs("<details><summary>", out);
		put_process(out, evidence);
		if (*cw_evidence_position(evidence, where, sizeof(where))) {
			fputs(": ", out);
			html_put(out, where);
		}
		fputs("</summary>\n", out);
		html_put_evidence(out, evidence);
		fputs("</details>\n", out);
	}
}

static int put_stacks(FILE *out, const struct cw_bundle *b)
{
	bool has_witness = false;
	const json_t *evidence;
	size_t i;
	int r;

	json_array_foreach (b->evidence, i, evidence)
		has_witness |= !doc_is_culprit(b->incident, evidence);
	if (!has_witness && !b->stacks)
		return 0;
	html_section(out, "stacks",
		     b->stacks ? "Where all ranks were seen" : "Where the others were seen");
	r = html_put_stack_tree(out, b->stacks);
	put_witnesses(out, b);
	html_section_end(out);
	return r;
}

static void put_alternatives(FILE *out, const json_t *incident)
{
	const json_t *list = json_object_get(incident, "alternatives"), *alt;
	char class[128];
	size_t i;

	if (!json_array_size(list))
		return;
	html_section(out, "alternatives", "It could also be");
	fputs("<ul>\n", out);
	json_array_foreach (list, i, alt) {
		fprintf(out, "<li>%.0f %% ",
			json_number_value(json_object_get(alt, "probability")) * 100);
		html_put(out, cw_doc_class(alt, class, sizeof(class)));
		fputs(": ", out);
		html_put(out, cw_json_str(alt, "reason", ""));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

/* ---- the end ---- */

static void put_coverage(FILE *out, const json_t *incident, const char *no_pictures)
{
	const json_t *coverage = json_object_get(incident, "coverage");
	const char *missing = cw_json_str(coverage, "missing", "");
	json_int_t expected = cw_json_int(coverage, "ranks_expected", 0);
	char known[256];

	html_section(out, "coverage", "What was seen, and what was not");
	fprintf(out, "<div>%" JSON_INTEGER_FORMAT, cw_coverage_seen_now(coverage));
	if (expected)
		fprintf(out, " of %" JSON_INTEGER_FORMAT, expected);
	fputs(" ranks", out);
	if (cw_coverage_last_known(coverage, known, sizeof(known))) {
		fputs("; <span class=\"warn\">", out);
		html_put(out, known);
		fputs("</span>", out);
	}
	if (*missing) {
		fputs("; <div class=\"warn\">missing: ", out);
		html_put_ranks(out, missing);
		fputs("</div>", out);
	}
	fputs("</div>\n<ul>\n", out);
	html_put_sentences(out, json_object_get(coverage, "notes"));
	if (*no_pictures) {
		fputs("<li>No pictures: ", out);
		html_put(out, no_pictures);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

static int64_t put_time(FILE *out, const char *label, const char *text, int64_t since)
{
	int64_t at = *text ? cw_wall_parse(text) : -1;
	char buf[64];

	if (!*text)
		return since;
	fprintf(out, "<dt>%s</dt><dd>", label);
	html_put(out, text);
	if (at >= 0 && since >= 0 && at > since)
		fprintf(out, " <span class=\"dim\">(%s later)</span>",
			cw_format_duration(at - since, buf, sizeof(buf)));
	fputs("</dd>\n", out);
	return at;
}

static void put_times(FILE *out, const json_t *incident)
{
	const json_t *times = json_object_get(incident, "times");
	int64_t last;

	html_section(out, "times", "When");
	fputs("<dl class=\"facts\">\n", out);
	last = put_time(out, "last progress", cw_json_str(times, "last_progress", ""), -1);
	last = put_time(out, "stalled", cw_json_str(times, "stall", ""), last);
	last = put_time(out, "confirmed", cw_json_str(times, "confirmed", ""), last);
	(void)put_time(out, "resolved", cw_json_str(times, "resolved", ""), last);
	fputs("</dl>\n", out);
	html_section_end(out);
}

static void put_bundle(FILE *out, const json_t *incident)
{
	const char *path = cw_json_str(incident, "bundle", "");

	if (!*path)
		return;
	fputs("<footer><p class=\"dim\">Bundle: ", out);
	html_put(out, path);
	fputs(" on ", out);
	html_put(out, cw_json_str(incident, "leader", "?"));
	fputs(".</p></footer>\n", out);
}

static int put_nccl_errors(FILE *out, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nccl_error_sentences(incident);

	html_put_list(out, "nccl-errors", "What NCCL itself reported", sentences);
	json_decref(sentences);
	return sentences ? 0 : -ENOMEM;
}

static int put_torch_settings(FILE *out, const json_t *evidence)
{
	json_t *sentences = cw_torch_setting_sentences(evidence);

	html_put_list(out, "torch-settings", "What PyTorch was told", sentences);
	json_decref(sentences);
	return sentences ? 0 : -ENOMEM;
}

static int put_nonfinite_inputs(FILE *out, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nonfinite_inputs_sentences(incident);

	html_put_list(out, "nonfinite-inputs", "NaN and infinity fed in, the first of each rank",
		      sentences);
	json_decref(sentences);
	return sentences ? 0 : -ENOMEM;
}

/* Returns 0, -EIO, or -ENOMEM (then the page is incomplete). */
static int put_page(FILE *out, const struct cw_bundle *b, const struct cw_incident_facts *facts,
		    const struct drawing *d, const char *no_pictures)
{
	int r = 0, e;

	put_head(out, b->incident);
	put_headline(out, b->incident);
	put_culprits(out, b);
	put_advice(out, b->incident);
	put_where(out, b->incident);
	put_waits(out, b->incident, d);
	put_timeline(out, d);
	r |= put_stacks(out, b);
	r |= put_nccl_errors(out, facts);
	r |= put_torch_settings(out, b->evidence);
	r |= put_nonfinite_inputs(out, facts);
	html_put_ops(out, b->ops);
	html_put_list(out, "ruled-out", "Ruled out", json_object_get(b->incident, "ruled_out"));
	put_alternatives(out, b->incident);
	put_coverage(out, b->incident, no_pictures);
	put_times(out, b->incident);
	if (b->postmortem)
		html_put_postmortem(out, b->postmortem, false);
	put_bundle(out, b->incident);
	e = html_page_end(out);
	return r < 0 ? r : e;
}

/* Writes the page of a bundle that has only a post-mortem, because there was no alert. */
static int render_postmortem(FILE *out, const json_t *postmortem, const json_t *ops)
{
	if (!json_is_string(json_object_get(postmortem, "class")) ||
	    !json_is_string(json_object_get(postmortem, "summary")))
		return -EBADMSG;
	put_head(out, postmortem);
	html_put_postmortem(out, postmortem, true);
	html_put_ops(out, ops);
	return html_page_end(out);
}

static int render_incident(FILE *out, const struct cw_bundle *b,
			   const struct cw_incident_facts *facts)
{
	struct cw_err err = { "the bundle has no snapshot" };
	struct cw_snapshot *snap = NULL;
	struct drawing d = { 0 };
	bool has_drawing = false;
	int r;

	if (b->snapshot && cw_snapshot_from_doc(b->snapshot, &snap, &err) == 0) {
		if (snap->now_ns <= 0 || !snap->n_ranks)
			(void)cw_err_set(&err, EBADMSG, "the snapshot shows nobody");
		else if (drawing_init(b->incident, snap, &d) < 0)
			(void)cw_err_set(&err, ENOMEM, "out of memory");
		else
			has_drawing = true;
	}
	r = put_page(out, b, facts, has_drawing ? &d : NULL, has_drawing ? "" : err.text);
	drawing_fini(&d);
	(void)cw_snapshot_free(snap);
	return r;
}

int cw_render_html(FILE *out, const struct cw_bundle *b)
{
	struct cw_incident_facts facts;
	struct cw_arena arena = { 0 };
	int r;

	if (!b->incident && b->postmortem)
		return render_postmortem(out, b->postmortem, b->ops);
	r = cw_incident_facts_read(b->incident, &arena, &facts, NULL, NULL);
	if (r == 0 && (!facts.verdict_class.text || !facts.summary.text || !facts.culprits))
		r = -EBADMSG;
	if (r == 0)
		r = render_incident(out, b, &facts);
	cw_arena_fini(&arena);
	return r;
}
