/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_postmortem.h"

#include <inttypes.h>

#include "common/clock.h"
#include "model/verdict_types.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_facts.h"
#include "report/html/html.h"

/* A leader writes at most this many rows. We check the limit, because a bundle is untrusted. */
#define MAX_ROWS 64u

static const char *or_unknown(const char *text)
{
	return text ? text : "?";
}

static void put_wait(FILE *out, const struct cw_incident_last_wait *wait)
{
	if (!wait)
		return;
	html_section(out, "waited-for", "Waits when the first rank ended");
	fprintf(out, "<p>For %.1f s: ", wait->for_s);
	html_put_sentence(out, or_unknown(wait->summary));
	fputs("</p>\n", out);
	html_section_end(out);
}

static void put_end(FILE *out, const struct cw_incident_facts *incident,
		    const struct cw_incident_end *end)
{
	fputs("<tr><td>", out);
	if (end->ended_wall_ns && incident->first_end_wall_ns)
		fprintf(out, "%+.2f s", end->after_s);
	fprintf(out, "</td><td>%" PRId32 "</td><td>", end->rank);
	html_put(out, or_unknown(end->host));
	fputs(end->is_first ? "</td><td class=\"bad\">" : "</td><td>", out);
	fputs(cw_doc_end_verb(end), out);
	html_put(out, cw_doc_end_text(end));
	fputs("</td></tr>\n", out);
}

static void put_ends(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_ends)
		return;
	html_section(out, "ends", "How they ended");
	fputs("<table class=\"sides\">\n<tr><th>after</th><th>rank</th><th>host</th><th></th></tr>\n",
	      out);
	for (uint32_t i = 0; i < incident->n_ends && i < MAX_ROWS; i++)
		put_end(out, incident, &incident->ends[i]);
	fputs("</table>\n", out);
	if (incident->ends_omitted) {
		fprintf(out, "<p>… and %" PRIu32 " more. In all:</p>\n<ul>\n",
			incident->ends_omitted);
		for (uint32_t i = 0; i < incident->n_ended && i < MAX_ROWS; i++) {
			fprintf(out, "<li>%" PRIu32 " ", incident->ended[i].count);
			html_put(out, or_unknown(incident->ended[i].how));
			fputs(": ", out);
			html_put_ranks(out, or_unknown(incident->ended[i].ranks));
			fputs("</li>\n", out);
		}
		fputs("</ul>\n", out);
	}
	html_section_end(out);
}

static void put_call(FILE *out, const struct cw_incident_last_call *call)
{
	char text[CW_DOC_LAST_CALL_BYTES];

	html_put(out, cw_doc_last_call(call, text, sizeof(text)));
}

static void put_open(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_open)
		return;
	html_section(out, "open", "Calls that had not completed");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_open && i < MAX_ROWS; i++) {
		fputs("<li>", out);
		put_call(out, incident->open[i].op);
		fputs(": ranks ", out);
		html_put_ranks(out, or_unknown(incident->open[i].ranks));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_last(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->n_last_calls)
		return;
	html_section(out, "last-calls",
		     "Last calls of the first failed rank, and of the awaited ranks");
	fputs("<ul>\n", out);
	for (uint32_t i = 0; i < incident->n_last_calls && i < MAX_ROWS; i++) {
		const struct cw_incident_last_calls *of = &incident->last_calls[i];

		fprintf(out, "<li>rank %" PRId32 ":", of->rank);
		for (uint32_t k = 0; k < of->n_calls && k < MAX_ROWS; k++) {
			fputs(k ? ", " : " ", out);
			put_call(out, &of->calls[k]);
			if (!of->calls[k].is_done)
				fputs(" (open)", out);
		}
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_lists(FILE *out, const struct cw_incident_facts *incident)
{
	if (incident->n_wrong_data) {
		html_section(out, "wrong-data", "Wrong data, not told before");
		fputs("<ul>\n", out);
		for (uint32_t i = 0; i < incident->n_wrong_data && i < MAX_ROWS; i++)
			html_put_item(out, or_unknown(incident->wrong_data[i].text));
		fputs("</ul>\n", out);
		html_section_end(out);
	}
	if (incident->n_end_notes) {
		html_section(out, "unseen", "Not visible");
		fputs("<ul>\n", out);
		for (uint32_t i = 0; i < incident->n_end_notes && i < MAX_ROWS; i++)
			html_put_item(out, or_unknown(incident->end_notes[i]));
		fputs("</ul>\n", out);
		html_section_end(out);
	}
}

static void put_time(FILE *out, const char *label, int64_t wall_ns)
{
	char text[32];

	html_put_fact(out, label, wall_ns ? cw_wall_format(wall_ns, text) : "");
}

/* Writes the stacks of the first ranks that crashed. A page with an alert has them as evidence. */
static void put_crashes(FILE *out, const struct cw_incident_facts *incident)
{
	char rank[64];

	for (uint32_t i = 0; i < incident->n_culprits; i++) {
		const struct cw_incident_culprit *culprit = &incident->culprits[i];

		if (!culprit->n_crash_stack)
			continue;
		html_section(out, "crash", "Stack of the crash, innermost first");
		fputs("<p>", out);
		html_put(out, phrase_doc_rank(culprit->rank, rank, sizeof(rank)));
		fputs(", from its core file:</p>\n<ul>\n", out);
		for (uint32_t k = 0; k < culprit->n_crash_stack; k++)
			html_put_item(out, culprit->crash_stack[k]);
		fputs("</ul>\n", out);
		html_section_end(out);
	}
}

void html_put_postmortem(FILE *out, const struct cw_incident_facts *incident)
{
	if (!incident->ending)
		return;
	if (incident->severity.number != CW_SEVERITY_FAILED) {
		html_section(out, "died", "Cause of the job's end");
		fputs("<p>", out);
		html_put_sentence(out, incident->ending);
		fputs("</p>\n", out);
		html_section_end(out);
	}
	if (incident->severity.number == CW_SEVERITY_FAILED)
		put_crashes(out, incident);
	put_wait(out, incident->waited_for);
	put_ends(out, incident);
	put_open(out, incident);
	put_last(out, incident);
	put_lists(out, incident);
	html_section(out, "ended", "When it ended");
	fputs("<dl class=\"facts\">\n", out);
	put_time(out, "first end", incident->first_end_wall_ns);
	put_time(out, "last end", incident->last_end_wall_ns);
	fputs("</dl>\n", out);
	html_section_end(out);
}
