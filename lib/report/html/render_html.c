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
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/clock.h"
#include "common/parse.h"
#include "model/verdict_types.h"
#include "report/coverage.h"
#include "report/doc/advice.h"
#include "report/doc/doc_phrase.h"
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

/* Begins the page with the names of the class and the job. */
static void put_head(FILE *out, const struct cw_incident_facts *incident)
{
	char class[128];

	html_page_begin(out);
	html_put(out, cw_doc_class(incident->verdict_class.text, incident->detail.text, class,
				   sizeof(class)));
	fputs(", job ", out);
	html_put(out, cw_phrase_job(incident->job, ""));
	html_page_body(out);
}

/* ---- the top ---- */

static void put_headline(FILE *out, const struct cw_incident_facts *incident)
{
	const char *victims = incident->victims ? cw_fact_text(incident->victims->ranks) : "";
	char text[1280], class[128];

	fprintf(out, "<header>\n<span class=\"flag%s\">%s</span>\n<h1>",
		phrase_doc_is_resolved(incident) ? " over" : "", phrase_doc_flag(incident));
	html_put_sentence(out, phrase_doc_summary(incident, text, sizeof(text)));
	fputs("</h1>\n<dl class=\"facts\">\n", out);
	(void)snprintf(text, sizeof(text), "%s, %s",
		       cw_doc_class(incident->verdict_class.text, incident->detail.text, class,
				    sizeof(class)),
		       cw_fact_text(incident->confidence.text));
	html_put_fact(out, "class", text);
	html_put_fact(out, "job", cw_phrase_job(incident->job, ""));
	html_put_fact(out, "user", cw_doc_user(incident->uid, incident->user, text, sizeof(text)));
	if (incident->severity.number == CW_SEVERITY_FAILED) {
		html_put_fact(out, "post-mortem", cw_fact_text(incident->id));
		html_put_fact(out, "alerted", "no alert before the job ended");
	} else {
		html_put_fact(out, "incident", cw_fact_text(incident->id));
		html_put_fact(
			out, "closed as",
			cw_doc_words(cw_fact_text(incident->closed_as.text), class, sizeof(class)));
	}
	if (*victims) {
		fprintf(out, "<dt>waiting</dt><dd>rank%s ", phrase_is_many(victims) ? "s" : "");
		html_put_ranks(out, victims);
		fputs("</dd>\n", out);
	}
	fputs("</dl>\n</header>\n", out);
}

static void put_process(FILE *out, const struct cw_incident_process *who)
{
	char text[64], where[CW_DOC_WHERE_BYTES], place[CW_DOC_PLACE_BYTES];

	fputs("<b>", out);
	html_put(out, phrase_doc_rank(who->rank, text, sizeof(text)));
	fputs("</b>", out);
	html_put(out, cw_doc_where(who, true, where, sizeof(where)));
	html_put(out, cw_doc_place(who, place, sizeof(place)));
}

/* Writes n culprits as one entry, because they share host and reason. */
static void put_processes(FILE *out, const struct cw_incident_facts *incident, size_t from,
			  size_t n)
{
	struct cw_incident_process first = cw_phrase_process_of(&incident->culprits[from]);
	char text[128], where[CW_DOC_WHERE_BYTES];

	if (n == 1) {
		put_process(out, &first);
		return;
	}
	fputs("<b>", out);
	html_put(out, phrase_doc_ranks(incident, from, n, text, sizeof(text)));
	fputs("</b>", out);
	html_put(out, cw_doc_where(&first, false, where, sizeof(where)));
}

static void put_culprit(FILE *out, const struct cw_incident_facts *incident,
			const json_t *all_evidence, size_t from, size_t n)
{
	const struct cw_incident_culprit *culprit = &incident->culprits[from];
	const json_t *evidence = doc_evidence_of(culprit, all_evidence);

	fputs("<div class=\"who\">\n<h3>", out);
	put_processes(out, incident, from, n);
	fputs("</h3>\n<p>", out);
	html_put_sentence(out, cw_fact_text(culprit->reason.text));
	fputs("</p>\n", out);
	if (evidence)
		html_put_evidence(out, evidence);
	else
		fprintf(out, "<p class=\"dim\">%s</p>\n",
			phrase_doc_no_stacks(incident, all_evidence));
	fputs("</div>\n", out);
}

static void put_culprits(FILE *out, const struct cw_incident_facts *incident,
			 const json_t *evidence)
{
	size_t n = incident->n_culprits, alike, shown = 0;

	html_section(out, "culprits",
		     n == 1 ? "Culprit"
		     : n    ? "Culprits"
			    : "No culprit can be named");
	for (size_t i = 0; i < n; i += alike) {
		if (shown++ == MAX_CULPRITS) {
			fprintf(out, "<p>… and %zu more.</p>\n", n - i);
			break;
		}
		alike = doc_culprits_alike(incident, i, evidence);
		put_culprit(out, incident, evidence, i, alike);
	}
	html_section_end(out);
}

static void put_advice(FILE *out, const struct cw_incident_facts *incident)
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

static void put_where(FILE *out, const struct cw_incident_facts *incident)
{
	const struct cw_incident_where *where = incident->where;
	bool differs = incident->verdict_class.number == CW_CLASS_MISMATCH;
	char text[512];

	if (!where)
		return;
	html_section(out, "where", differs ? "First call that differs" : "Waits");
	fputs("<p>On ", out);
	html_put(out, phrase_doc_comm(where->comm, where->comm_name, text, sizeof(text)));
	fprintf(out, "%s.</p>\n", phrase_doc_seq(where, text, sizeof(text)));
	if (where->n_sides)
		fputs("<table class=\"sides\">\n<tr><th>ranks</th><th>call</th></tr>\n", out);
	for (uint32_t i = 0; i < where->n_sides; i++) {
		const struct cw_incident_call *op = where->sides[i].op;

		fputs("<tr><td>", out);
		html_put_ranks(out, where->sides[i].ranks ? where->sides[i].ranks : "?");
		fputs(op ? "</td><td>" : "</td><td class=\"bad\">", out);
		html_put(out,
			 op ? phrase_doc_op(op, text, sizeof(text)) : phrase_doc_absence(incident));
		if (*phrase_doc_issued(op, text, sizeof(text))) {
			fputs("<br>", out);
			html_put(out, text);
		}
		fputs("</td></tr>\n", out);
	}
	if (where->n_sides)
		fputs("</table>\n", out);
	html_section_end(out);
}

static void put_wait_list(FILE *out, const struct cw_incident_facts *incident,
			  const struct cw_incident_wait *waits, size_t n)
{
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
		html_put(out, phrase_doc_wait(incident, &waits[i], text, sizeof(text)));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
}

static void put_waits(FILE *out, const struct cw_incident_facts *incident, const struct drawing *d)
{
	bool is_cycle = incident->n_cycle > 0;

	/*
	 * If calls differ but block no rank, the incident has neither waits nor a picture of them.
	 */
	if (!is_cycle && !incident->n_chain)
		return;
	html_section(out, "waits", is_cycle ? "Circle of waits" : "Chain of waits");
	if (d)
		html_put_waits(out, d);
	put_wait_list(out, incident, is_cycle ? incident->cycle : incident->chain,
		      is_cycle ? incident->n_cycle : incident->n_chain);
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

/*
 * Writes one line for each waiting rank that we inspected. A click opens its stacks. Returns 0 or
 * -ENOMEM.
 */
static int put_witnesses(FILE *out, const struct cw_incident_facts *incident,
			 const json_t *all_evidence, struct cw_arena *arena)
{
	struct cw_incident_process who;
	const json_t *evidence;
	char where[512];
	size_t i, n = 0;

	json_array_foreach (all_evidence, i, evidence) {
		if (doc_is_culprit(incident, evidence))
			continue;
		if (n++ == MAX_WITNESSES)
			return 0;
		if (cw_incident_facts_read_process(evidence, arena, &who) < 0)
			return -ENOMEM;
		fputs("<details><summary>", out);
		put_process(out, &who);
		if (*cw_evidence_position(evidence, where, sizeof(where))) {
			fputs(": ", out);
			html_put(out, where);
		}
		fputs("</summary>\n", out);
		html_put_evidence(out, evidence);
		fputs("</details>\n", out);
	}
	return 0;
}

static int put_stacks(FILE *out, const struct cw_incident_facts *incident,
		      const struct cw_bundle *b, struct cw_arena *arena)
{
	bool has_witness = false;
	const json_t *evidence;
	size_t i;
	int r;

	json_array_foreach (b->evidence, i, evidence)
		has_witness |= !doc_is_culprit(incident, evidence);
	if (!has_witness && !b->stacks)
		return 0;
	html_section(out, "stacks",
		     b->stacks ? "Where all ranks were seen" : "Where the others were seen");
	r = html_put_stack_tree(out, b->stacks);
	if (put_witnesses(out, incident, b->evidence, arena) < 0)
		r = -ENOMEM;
	html_section_end(out);
	return r;
}

static void put_earlier_stacks(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_earlier_stacks)
		return;
	html_section(out, "before", "In the seconds before");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_earlier_stacks; i++)
		html_put_item(out, cw_fact_text(incident->earlier_stacks[i].text.text));
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_ruled_out(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_ruled_out)
		return;
	html_section(out, "ruled-out", "Ruled out");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_ruled_out; i++)
		html_put_item(out, incident->ruled_out[i].text);
	fputs("</ul>\n", out);
	html_section_end(out);
}

/* Differences that accuse no rank. */
static void put_also(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_also)
		return;
	html_section(out, "also", "Also");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_also; i++)
		html_put_item(out, incident->also[i].text);
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_alternatives(FILE *out, const struct cw_incident_facts *incident)
{
	char class[128];

	if (!incident->n_alternatives)
		return;
	html_section(out, "alternatives", "It could also be");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_alternatives; i++) {
		const struct cw_incident_alternative *alt = &incident->alternatives[i];

		fprintf(out, "<li>%.0f %% ", alt->probability * 100);
		html_put(out, cw_doc_class(alt->verdict_class.text, NULL, class, sizeof(class)));
		fputs(": ", out);
		html_put(out, cw_fact_text(alt->reason.text));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

/* ---- the end ---- */

static void put_coverage(FILE *out, const struct cw_incident_coverage *of, const char *no_pictures)
{
	static const struct cw_incident_coverage nothing;
	const struct cw_incident_coverage *coverage = of ? of : &nothing;
	char known[256];

	html_section(out, "coverage", "Coverage");
	fprintf(out, "<div>%" PRIu32, cw_coverage_seen_now(coverage));
	if (coverage->ranks_expected)
		fprintf(out, " of %" PRIu32, coverage->ranks_expected);
	fputs(" ranks", out);
	if (cw_coverage_last_known(coverage, known, sizeof(known))) {
		fputs("; <span class=\"warn\">", out);
		html_put(out, known);
		fputs("</span>", out);
	}
	if (*cw_fact_text(coverage->missing)) {
		fputs("; <div class=\"warn\">missing: ", out);
		html_put_ranks(out, coverage->missing);
		fputs("</div>", out);
	}
	fputs("</div>\n<ul>\n", out);
	for (uint32_t i = 0; i < coverage->n_notes; i++)
		html_put_item(out, coverage->notes[i]);
	if (*no_pictures) {
		fputs("<li>No pictures: ", out);
		html_put(out, no_pictures);
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

/* Writes a time, and its distance to the previous one. 0 = unknown. */
static int64_t put_time(FILE *out, const char *label, int64_t at, int64_t since)
{
	char buf[64];

	if (!at)
		return since;
	fprintf(out, "<dt>%s</dt><dd>%s", label, cw_wall_format(at, buf));
	if (since && at > since)
		fprintf(out, " <span class=\"dim\">(%s later)</span>",
			cw_format_duration(at - since, buf, sizeof(buf)));
	fputs("</dd>\n", out);
	return at;
}

static void put_times(FILE *out, const struct cw_incident_facts *incident)
{
	static const struct cw_incident_times nothing;
	const struct cw_incident_times *times = incident->times ? incident->times : &nothing;
	int64_t last;

	html_section(out, "times", "When");
	fputs("<dl class=\"facts\">\n", out);
	last = put_time(out, "last progress", times->last_progress_wall_ns, 0);
	last = put_time(out, "stalled", times->stall_wall_ns, last);
	last = put_time(out, "confirmed", times->confirmed_wall_ns, last);
	(void)put_time(out, "resolved", times->resolved_wall_ns, last);
	fputs("</dl>\n", out);
	html_section_end(out);
}

static void put_bundle(FILE *out, const struct cw_incident_facts *incident)
{
	if (!*cw_fact_text(incident->bundle))
		return;
	fputs("<footer><p class=\"dim\">Bundle: ", out);
	html_put(out, incident->bundle);
	fputs(" on ", out);
	html_put(out, incident->leader ? incident->leader : "?");
	fputs(".</p></footer>\n", out);
}

static int put_nccl_errors(FILE *out, const struct cw_incident_facts *incident)
{
	json_t *sentences = cw_nccl_error_sentences(incident);

	html_put_list(out, "nccl-errors", "Errors reported by NCCL", sentences);
	json_decref(sentences);
	return sentences ? 0 : -ENOMEM;
}

static int put_torch_settings(FILE *out, const json_t *evidence)
{
	json_t *sentences = cw_torch_setting_sentences(evidence);

	html_put_list(out, "torch-settings", "PyTorch's settings", sentences);
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
static int put_page(FILE *out, const struct cw_bundle *b, const struct cw_incident_facts *incident,
		    struct cw_arena *arena, const struct drawing *d, const char *no_pictures)
{
	int r = 0, e;

	put_head(out, incident);
	put_headline(out, incident);
	if (incident->severity.number == CW_SEVERITY_FAILED) {
		html_put_postmortem(out, incident);
		html_put_ops(out, b->ops);
		return html_page_end(out);
	}
	put_culprits(out, incident, b->evidence);
	put_advice(out, incident);
	put_where(out, incident);
	put_waits(out, incident, d);
	put_timeline(out, d);
	r |= put_stacks(out, incident, b, arena);
	put_earlier_stacks(out, incident);
	r |= put_nccl_errors(out, incident);
	r |= put_torch_settings(out, b->evidence);
	r |= put_nonfinite_inputs(out, incident);
	html_put_ops(out, b->ops);
	put_also(out, incident);
	put_ruled_out(out, incident);
	put_alternatives(out, incident);
	put_coverage(out, incident->coverage, no_pictures);
	put_times(out, incident);
	html_put_postmortem(out, incident);
	put_bundle(out, incident);
	e = html_page_end(out);
	return r < 0 ? r : e;
}

static int render_incident(FILE *out, const struct cw_bundle *b,
			   const struct cw_incident_facts *incident, struct cw_arena *arena)
{
	struct cw_err err = { "the bundle has no snapshot" };
	struct cw_snapshot *snap = NULL;
	struct drawing d = { 0 };
	bool has_drawing = false;
	int r;

	if (b->snapshot && cw_snapshot_from_doc(b->snapshot, &snap, &err) == 0) {
		if (snap->now_ns <= 0 || !snap->n_ranks)
			(void)cw_err_set(&err, EBADMSG, "the snapshot has no ranks");
		else if (drawing_init(incident, snap, &d) < 0)
			(void)cw_err_set(&err, ENOMEM, "out of memory");
		else
			has_drawing = true;
	}
	r = put_page(out, b, incident, arena, has_drawing ? &d : NULL, has_drawing ? "" : err.text);
	drawing_fini(&d);
	(void)cw_snapshot_free(snap);
	return r;
}

int cw_render_html(FILE *out, const struct cw_bundle *b)
{
	struct cw_incident_facts incident;
	struct cw_arena arena = { 0 };
	int r;

	r = cw_incident_facts_read(b->incident, &arena, &incident, NULL, NULL);
	if (r == 0 &&
	    (!incident.verdict_class.text || !incident.summary.text || !incident.culprits))
		r = -EBADMSG;
	if (r == 0)
		r = render_incident(out, b, &incident, &arena);
	cw_arena_fini(&arena);
	return r;
}
