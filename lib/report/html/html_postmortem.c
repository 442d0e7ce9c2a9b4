/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_postmortem.h"

#include <inttypes.h>

#include "report/doc/doc_phrase.h"
#include "report/html/html.h"
#include "report/json_util.h"
#include "report/process_doc.h"

/* A leader writes at most this many rows. We check the limit, because a bundle is untrusted. */
#define MAX_ROWS 64u

static void put_headline(FILE *out, const json_t *e)
{
	char text[CW_DOC_USER_BYTES], class[128];

	fputs("<header>\n<span class=\"flag\">FAILED</span>\n<h1>", out);
	html_put_sentence(out, cw_json_str(e, "summary", "?"));
	fputs("</h1>\n<dl class=\"facts\">\n", out);
	(void)snprintf(text, sizeof(text), "%s, %s",
		       cw_doc_class(cw_json_str(e, "class", "?"), cw_json_str(e, "detail", ""),
				    class, sizeof(class)),
		       cw_json_str(e, "confidence", "?"));
	html_put_fact(out, "class", text);
	html_put_fact(out, "job", cw_doc_job(e, ""));
	html_put_fact(out, "user",
		      cw_doc_user(cw_json_int(e, "uid", -1), cw_json_str(e, "user", ""), text,
				  sizeof(text)));
	html_put_fact(out, "post-mortem", cw_json_str(e, "id", ""));
	html_put_fact(out, "alerted", "no alert before the job ended");
	fputs("</dl>\n</header>\n", out);
}

static void put_wait(FILE *out, const json_t *e)
{
	const json_t *wait = json_object_get(e, "waited_for");

	if (!json_is_object(wait))
		return;
	html_section(out, "waited-for", "Waits when the first rank ended");
	fprintf(out, "<p>For %.1f s: ", json_number_value(json_object_get(wait, "for_s")));
	html_put_sentence(out, cw_json_str(wait, "summary", "?"));
	fputs("</p>\n", out);
	html_section_end(out);
}

static void put_end(FILE *out, const json_t *end)
{
	const json_t *after = json_object_get(end, "after_s");
	const char *cause = cw_json_str(end, "cause", "");

	fputs("<tr><td>", out);
	if (json_is_number(after))
		fprintf(out, "%+.2f s", json_number_value(after));
	fprintf(out, "</td><td>%" JSON_INTEGER_FORMAT "</td><td>", cw_json_int(end, "rank", -1));
	html_put(out, cw_json_str(end, "host", "?"));
	fputs(json_is_true(json_object_get(end, "first")) ? "</td><td class=\"bad\">" : "</td><td>",
	      out);
	fputs(cw_process_doc_verb(end), out);
	html_put(out, *cause ? cause : cw_json_str(end, "how", "?"));
	fputs("</td></tr>\n", out);
}

static void put_ends(FILE *out, const json_t *e)
{
	const json_t *list = json_object_get(e, "ends"), *one;
	json_int_t omitted = cw_json_int(e, "ends_omitted", 0);
	size_t i;

	if (!json_array_size(list))
		return;
	html_section(out, "ends", "How they ended");
	fputs("<table class=\"sides\">\n<tr><th>after</th><th>rank</th><th>host</th><th></th></tr>\n",
	      out);
	json_array_foreach (list, i, one) {
		if (i == MAX_ROWS)
			break;
		put_end(out, one);
	}
	fputs("</table>\n", out);
	if (omitted > 0) {
		fprintf(out, "<p>… and %" JSON_INTEGER_FORMAT " more. In all:</p>\n<ul>\n",
			omitted);
		json_array_foreach (json_object_get(e, "ended"), i, one) {
			if (i == MAX_ROWS)
				break;
			fprintf(out, "<li>%" JSON_INTEGER_FORMAT " ", cw_json_int(one, "count", 0));
			html_put(out, cw_json_str(one, "how", "?"));
			fputs(": ", out);
			html_put_ranks(out, cw_json_str(one, "ranks", "?"));
			fputs("</li>\n", out);
		}
		fputs("</ul>\n", out);
	}
	html_section_end(out);
}

static void put_call(FILE *out, const json_t *call)
{
	html_put(out, phrase_kind(cw_json_str(call, "kind", "?")));
	if (cw_json_int(call, "coll_seq", 0))
		fprintf(out, " #%" JSON_INTEGER_FORMAT, cw_json_int(call, "coll_seq", 0));
	if (*cw_json_str(call, "comm_name", "")) {
		fputs(" on ", out);
		html_put(out, cw_json_str(call, "comm_name", ""));
	}
}

static void put_open(FILE *out, const json_t *e)
{
	const json_t *list = json_object_get(e, "open"), *one;
	size_t i;

	if (!json_array_size(list))
		return;
	html_section(out, "open", "Calls that had not completed");
	fputs("<ul>\n", out);
	json_array_foreach (list, i, one) {
		if (i == MAX_ROWS)
			break;
		fputs("<li>", out);
		put_call(out, one);
		fputs(": ranks ", out);
		html_put_ranks(out, cw_json_str(one, "ranks", "?"));
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_last(FILE *out, const json_t *e)
{
	const json_t *list = json_object_get(e, "last_calls"), *one, *call;
	size_t i, k;

	if (!json_array_size(list))
		return;
	html_section(out, "last-calls",
		     "Last calls of the first failed rank, and of the awaited ranks");
	fputs("<ul>\n", out);
	json_array_foreach (list, i, one) {
		if (i == MAX_ROWS)
			break;
		fprintf(out, "<li>rank %" JSON_INTEGER_FORMAT ":", cw_json_int(one, "rank", -1));
		json_array_foreach (json_object_get(one, "calls"), k, call) {
			if (k == MAX_ROWS)
				break;
			fputs(k ? ", " : " ", out);
			put_call(out, call);
			if (!json_is_true(json_object_get(call, "done")))
				fputs(" (open)", out);
		}
		fputs("</li>\n", out);
	}
	fputs("</ul>\n", out);
	html_section_end(out);
}

static void put_times(FILE *out, const json_t *e)
{
	const json_t *times = json_object_get(e, "times");

	html_section(out, "ended", "When it ended");
	fputs("<dl class=\"facts\">\n", out);
	html_put_fact(out, "first end", cw_json_str(times, "first", ""));
	html_put_fact(out, "last end", cw_json_str(times, "last", ""));
	fputs("</dl>\n", out);
	html_section_end(out);
}

void html_put_postmortem(FILE *out, const json_t *e, bool is_alone)
{
	if (is_alone) {
		put_headline(out, e);
	} else {
		html_section(out, "died", "Cause of the job's end");
		fputs("<p>", out);
		html_put_sentence(out, cw_json_str(e, "summary", "?"));
		fputs("</p>\n", out);
		html_section_end(out);
	}
	put_wait(out, e);
	put_ends(out, e);
	put_open(out, e);
	put_last(out, e);
	html_put_list(out, "wrong-data", "Wrong data, not told before",
		      json_object_get(e, "wrong_data"));
	html_put_list(out, "unseen", "Not visible", json_object_get(e, "notes"));
	put_times(out, e);
}
