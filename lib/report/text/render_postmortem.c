/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report begins with the summary. Then come the first failure and its reason, the awaited call,
 * the ends of the other ranks, and the open calls. We omit the line of a field that is missing or
 * has another type.
 */
#include "report/text/render_postmortem.h"

#include <stdio.h>
#include <string.h>

#include "report/doc/doc_phrase.h"
#include "report/json_util.h"
#include "report/process_doc.h"
#include "report/text.h"

#define MAX_ENDS 16
#define MAX_LINES 16

static void put_plain(const struct cw_text *t, const char *text)
{
	cw_text_put(t, CW_TEXT_PLAIN, text);
}

static void put_row(const struct cw_text *t, const char *label, const char *text)
{
	fprintf(t->out, "  %-16s", label);
	put_plain(t, text);
	fputc('\n', t->out);
}

static void put_headline(const struct cw_text *t, const json_t *e)
{
	char class[128], user[CW_DOC_USER_BYTES];

	cw_text_put(t, CW_TEXT_RED, "FAILED");
	fputs("  ", t->out);
	cw_text_wrap(t, 8, 8, cw_json_str(e, "summary", ""));
	fputc('\n', t->out);
	fputs("  class           ", t->out);
	put_plain(t, cw_doc_class(cw_json_str(e, "class", "?"), cw_json_str(e, "detail", ""), class,
				  sizeof(class)));
	fputs(", ", t->out);
	put_plain(t, cw_json_str(e, "confidence", "?"));
	fputc('\n', t->out);
	put_row(t, "job", cw_doc_job(e, "?"));
	if (*cw_doc_user(cw_json_int(e, "uid", -1), cw_json_str(e, "user", ""), user, sizeof(user)))
		put_row(t, "user", user);
	put_row(t, "post-mortem", cw_json_str(e, "id", "?"));
	fputs("  No alert was sent before the job ended.\n", t->out);
}

/* True if collwatch saw all ranks. A rank that it did not see may have failed as well. */
static bool is_all_seen(const json_t *e)
{
	const json_t *coverage = json_object_get(e, "coverage");
	json_int_t expected = cw_json_int(coverage, "ranks_expected", 0);

	return cw_json_int(coverage, "ranks_seen", expected) >= expected;
}

static void put_first(const struct cw_text *t, const json_t *e)
{
	const char *const reasons[][2] = {
		{ "only",
		  is_all_seen(e) ? "no other rank failed" : "no other visible rank failed" },
		{ "time", "it ended before all others" },
		{ "cause", "others ended at the same time, from causes that its end can explain" },
		{ "tie", "too close together to know which end caused the others" },
	};
	const json_t *first = json_object_get(e, "first");
	const char *by = cw_json_str(first, "by", "");
	double margin = json_number_value(json_object_get(first, "margin_s"));

	if (!json_is_object(first))
		return;
	cw_text_title(t, strcmp(by, "tie") == 0 ? "First: not known" : "First");
	fputs(cw_json_int(first, "count", 1) > 1 ? "  ranks " : "  rank ", t->out);
	cw_text_put(t, CW_TEXT_RED, cw_json_str(first, "ranks", "?"));
	for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
		if (strcmp(by, reasons[i][0]) == 0)
			fprintf(t->out, ": %s", reasons[i][1]);
	if (margin > 0)
		fprintf(t->out, "; the next one ended %.1f s later", margin);
	fputc('\n', t->out);
}

static void put_end(const struct cw_text *t, const json_t *end)
{
	const json_t *after = json_object_get(end, "after_s");
	const char *cause = cw_json_str(end, "cause", "");

	if (json_is_number(after))
		fprintf(t->out, "  %+8.2f s  ", json_number_value(after));
	else
		fputs("             ", t->out);
	fprintf(t->out, "rank %" JSON_INTEGER_FORMAT " on ", cw_json_int(end, "rank", -1));
	put_plain(t, cw_json_str(end, "host", "?"));
	fputs(" ", t->out);
	fputs(cw_process_doc_verb(end), t->out);
	cw_text_put(t, json_is_true(json_object_get(end, "first")) ? CW_TEXT_RED : CW_TEXT_PLAIN,
		    *cause ? cause : cw_json_str(end, "how", "?"));
	fputc('\n', t->out);
}

static void put_ends(const struct cw_text *t, const json_t *e)
{
	const json_t *list = json_object_get(e, "ends"), *groups = json_object_get(e, "ended"),
		     *one;
	size_t i;

	cw_text_title(t, "How they ended");
	json_array_foreach (list, i, one) {
		if (i == MAX_ENDS)
			break;
		put_end(t, one);
	}
	if (json_array_size(list) <= MAX_ENDS)
		return;
	fputs("  in all:\n", t->out);
	json_array_foreach (groups, i, one) {
		if (i == MAX_LINES)
			break;
		fprintf(t->out, "  %" JSON_INTEGER_FORMAT " ", cw_json_int(one, "count", 0));
		put_plain(t, cw_json_str(one, "how", "?"));
		fputs(": ", t->out);
		cw_text_wrap(t, 8, 4, cw_json_str(one, "ranks", ""));
	}
}

static void put_wait(const struct cw_text *t, const json_t *e)
{
	const json_t *wait = json_object_get(e, "waited_for");

	if (!json_is_object(wait))
		return;
	cw_text_title(t, "Waits when the first rank ended");
	fprintf(t->out, "  for %.1f s: ", json_number_value(json_object_get(wait, "for_s")));
	cw_text_wrap(t, 14, 4, cw_json_str(wait, "summary", "?"));
}

static void put_call(const struct cw_text *t, const json_t *call)
{
	put_plain(t, phrase_kind(cw_json_str(call, "kind", "?")));
	if (cw_json_int(call, "coll_seq", 0))
		fprintf(t->out, " #%" JSON_INTEGER_FORMAT, cw_json_int(call, "coll_seq", 0));
	if (*cw_json_str(call, "comm_name", "")) {
		fputs(" on ", t->out);
		put_plain(t, cw_json_str(call, "comm_name", ""));
	}
}

static void put_open(const struct cw_text *t, const json_t *e)
{
	const json_t *list = json_object_get(e, "open"), *one;
	size_t i;

	if (!json_array_size(list))
		return;
	cw_text_title(t, "Calls that had not completed");
	json_array_foreach (list, i, one) {
		if (i == MAX_LINES)
			break;
		fputs("  ", t->out);
		put_call(t, one);
		fputs(": ranks ", t->out);
		cw_text_wrap(t, 24, 4, cw_json_str(one, "ranks", "?"));
	}
}

static void put_last(const struct cw_text *t, const json_t *e)
{
	const json_t *list = json_object_get(e, "last_calls"), *one, *call;
	size_t i, k;

	if (!json_array_size(list))
		return;
	cw_text_title(t, "Last calls of the first failed rank, and of the awaited ranks");
	json_array_foreach (list, i, one) {
		if (i == MAX_LINES)
			break;
		fprintf(t->out, "  rank %" JSON_INTEGER_FORMAT ":", cw_json_int(one, "rank", -1));
		json_array_foreach (json_object_get(one, "calls"), k, call) {
			fputs(k ? ", " : " ", t->out);
			put_call(t, call);
			if (!json_is_true(json_object_get(call, "done")))
				fputs(" (open)", t->out);
		}
		fputc('\n', t->out);
	}
}

static void put_list(const struct cw_text *t, const json_t *list, const char *title)
{
	const json_t *one;
	size_t i;

	if (!json_array_size(list))
		return;
	cw_text_title(t, title);
	json_array_foreach (list, i, one) {
		if (i == MAX_LINES)
			break;
		fputs("  - ", t->out);
		cw_text_wrap(t, 4, 4, json_string_value(one) ? json_string_value(one) : "?");
	}
}

void cw_render_postmortem(const struct cw_text *t, const json_t *postmortem, bool is_alone)
{
	const json_t *times = json_object_get(postmortem, "times");

	if (is_alone) {
		put_headline(t, postmortem);
	} else {
		cw_text_title(t, "Cause of the job's end");
		fputs("  ", t->out);
		cw_text_wrap(t, 2, 2, cw_json_str(postmortem, "summary", ""));
	}
	put_first(t, postmortem);
	put_wait(t, postmortem);
	put_ends(t, postmortem);
	put_open(t, postmortem);
	put_last(t, postmortem);
	put_list(t, json_object_get(postmortem, "wrong_data"), "Wrong data, not told before");
	put_list(t, json_object_get(postmortem, "notes"), "Not visible");
	if (*cw_json_str(times, "first", "")) {
		cw_text_title(t, "When it ended");
		put_row(t, "first end", cw_json_str(times, "first", ""));
		put_row(t, "last end", cw_json_str(times, "last", ""));
	}
}
