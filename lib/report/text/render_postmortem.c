/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First come the first failure and its reason, then the awaited call, the ends of the other ranks,
 * and the open calls. We omit the line of a missing fact.
 */
#include "report/text/render_postmortem.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "model/cause.h"
#include "model/verdict_types.h"
#include "report/doc/doc_phrase.h"
#include "report/doc/incident_facts.h"

#define MAX_ENDS 16
#define MAX_LINES 16

static void put_plain(const struct cw_text *t, const char *text)
{
	cw_text_put(t, CW_TEXT_PLAIN, text);
}

static const char *or_unknown(const char *text)
{
	return text ? text : "?";
}

/* True if collwatch saw all ranks. A rank that it did not see may have failed as well. */
static bool is_all_seen(const struct cw_incident_facts *incident)
{
	const struct cw_incident_coverage *coverage = incident->coverage;

	return !coverage || coverage->ranks_seen >= coverage->ranks_expected;
}

static void put_first(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	const char *const reasons[] = {
		[CW_FIRST_ONLY] = is_all_seen(incident) ? "no other rank failed"
							: "no other visible rank failed",
		[CW_FIRST_BY_TIME] = "it ended before all others",
		[CW_FIRST_BY_CAUSE] =
			"others ended at the same time, from causes that its end can explain",
		[CW_FIRST_TIE] = "too close together to know which end caused the others",
	};
	const struct cw_incident_first *first = incident->first;

	if (!first)
		return;
	cw_text_title(t, first->by.number == CW_FIRST_TIE ? "First: not known" : "First");
	fputs(first->count > 1 ? "  ranks " : "  rank ", t->out);
	cw_text_put(t, CW_TEXT_RED, or_unknown(first->ranks));
	if (first->by.number >= 0)
		fprintf(t->out, ": %s", reasons[first->by.number]);
	if (first->margin_s > 0)
		fprintf(t->out, "; the next one ended %.1f s later", first->margin_s);
	fputc('\n', t->out);
}

static void put_wait(const struct cw_text *t, const struct cw_incident_last_wait *wait)
{
	if (!wait)
		return;
	cw_text_title(t, "Waits when the first rank ended");
	fprintf(t->out, "  for %.1f s: ", wait->for_s);
	cw_text_wrap(t, 14, 4, or_unknown(wait->summary));
}

static void put_end(const struct cw_text *t, const struct cw_incident_facts *incident,
		    const struct cw_incident_end *end)
{
	if (end->ended_wall_ns && incident->first_end_wall_ns)
		fprintf(t->out, "  %+8.2f s  ", end->after_s);
	else
		fputs("             ", t->out);
	fprintf(t->out, "rank %" PRId32 " on ", end->rank);
	put_plain(t, or_unknown(end->host));
	fprintf(t->out, " %s", cw_doc_end_verb(end));
	cw_text_put(t, end->is_first ? CW_TEXT_RED : CW_TEXT_PLAIN, cw_doc_end_text(end));
	fputc('\n', t->out);
}

static void put_ends(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	cw_text_title(t, "How they ended");
	for (uint32_t i = 0; i < incident->n_ends && i < MAX_ENDS; i++)
		put_end(t, incident, &incident->ends[i]);
	if (incident->n_ends <= MAX_ENDS)
		return;
	fputs("  in all:\n", t->out);
	for (uint32_t i = 0; i < incident->n_ended && i < MAX_LINES; i++) {
		const struct cw_incident_ended *ended = &incident->ended[i];

		fprintf(t->out, "  %" PRIu32 " ", ended->count);
		put_plain(t, or_unknown(ended->how));
		fputs(": ", t->out);
		cw_text_wrap(t, 8, 4, cw_fact_text(ended->ranks));
	}
}

static void put_call(const struct cw_text *t, const struct cw_incident_last_call *call)
{
	char text[CW_DOC_LAST_CALL_BYTES];

	put_plain(t, cw_doc_last_call(call, text, sizeof(text)));
}

static void put_open(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (incident->n_open)
		cw_text_title(t, "Calls that had not completed");
	for (uint32_t i = 0; i < incident->n_open && i < MAX_LINES; i++) {
		fputs("  ", t->out);
		put_call(t, incident->open[i].op);
		fputs(": ranks ", t->out);
		cw_text_wrap(t, 24, 4, or_unknown(incident->open[i].ranks));
	}
}

static void put_last(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (incident->n_last_calls)
		cw_text_title(t, "Last calls of the first failed rank, and of the awaited ranks");
	for (uint32_t i = 0; i < incident->n_last_calls && i < MAX_LINES; i++) {
		const struct cw_incident_last_calls *of = &incident->last_calls[i];

		fprintf(t->out, "  rank %" PRId32 ":", of->rank);
		for (uint32_t k = 0; k < of->n_calls; k++) {
			fputs(k ? ", " : " ", t->out);
			put_call(t, &of->calls[k]);
			if (!of->calls[k].is_done)
				fputs(" (open)", t->out);
		}
		fputc('\n', t->out);
	}
}

static void put_line(const struct cw_text *t, const char *text)
{
	fputs("  - ", t->out);
	cw_text_wrap(t, 4, 4, or_unknown(text));
}

static void put_time(const struct cw_text *t, const char *label, int64_t wall_ns)
{
	char text[32];

	if (wall_ns)
		fprintf(t->out, "  %-16s%s\n", label, cw_wall_format(wall_ns, text));
}

/* Prints the stacks of the first ranks that crashed. A report with an alert has them as evidence. */
static void put_crashes(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	char rank[64];

	for (uint32_t i = 0; i < incident->n_culprits && i < MAX_LINES; i++) {
		const struct cw_incident_culprit *culprit = &incident->culprits[i];

		if (!culprit->n_crash_stack)
			continue;
		cw_text_title(t, "Stack of the crash, innermost first");
		fprintf(t->out, "  %s, from its core file:\n",
			phrase_doc_rank(culprit->rank, rank, sizeof(rank)));
		for (uint32_t k = 0; k < culprit->n_crash_stack; k++) {
			fputs("    ", t->out);
			cw_text_wrap(t, 4, 6, culprit->crash_stack[k]);
		}
	}
}

void cw_render_postmortem(const struct cw_text *t, const struct cw_incident_facts *incident)
{
	if (!incident->ending)
		return;
	if (incident->severity.number != CW_SEVERITY_FAILED) {
		cw_text_title(t, "Cause of the job's end");
		fputs("  ", t->out);
		cw_text_wrap(t, 2, 2, incident->ending);
	}
	put_first(t, incident);
	if (incident->severity.number == CW_SEVERITY_FAILED)
		put_crashes(t, incident);
	put_wait(t, incident->waited_for);
	put_ends(t, incident);
	put_open(t, incident);
	put_last(t, incident);
	if (incident->n_wrong_data)
		cw_text_title(t, "Wrong data, not told before");
	for (uint32_t i = 0; i < incident->n_wrong_data && i < MAX_LINES; i++)
		put_line(t, incident->wrong_data[i].text);
	if (incident->n_end_notes)
		cw_text_title(t, "Not visible");
	for (uint32_t i = 0; i < incident->n_end_notes && i < MAX_LINES; i++)
		put_line(t, incident->end_notes[i]);
	if (incident->first_end_wall_ns)
		cw_text_title(t, "When it ended");
	put_time(t, "first end", incident->first_end_wall_ns);
	put_time(t, "last end", incident->last_end_wall_ns);
}
