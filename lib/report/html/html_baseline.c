/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html_baseline.h"

#include <stdbool.h>
#include <string.h>

#include "report/html/html.h"
#include "report/html/html_page.h"
#include "report/json_util.h"

/* The page shows at most this many ranks and only counts the others. */
#define MAX_RANKS 256u

static void put_value(FILE *out, const json_t *v)
{
	if (json_is_string(v))
		html_put_sentence(out, json_string_value(v));
	else if (json_is_integer(v))
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else if (json_is_real(v))
		fprintf(out, "%.9g", json_real_value(v));
	else
		fputs("–", out);
}

/*
 * Writes a table row with one property of both runs, or nothing if neither run has it. `what` is a
 * constant.
 */
static void put_row(FILE *out, const char *what, const json_t *a, const json_t *b)
{
	bool is_other = !json_equal(a ? a : json_null(), b ? b : json_null());

	if ((!a || json_is_null(a)) && (!b || json_is_null(b)))
		return;
	fprintf(out, "<tr><th>%s</th><td>", what);
	put_value(out, a);
	fprintf(out, "</td><td%s>", is_other ? " class=\"bad\"" : "");
	put_value(out, b);
	fputs("</td></tr>\n", out);
}

static void put_side(FILE *out, const json_t *a, const json_t *b, bool is_output)
{
	static const char *const keys[] = { "absmax", "mean", "l2", "nonfinite" };
	static const char *const names[2][4] = {
		{ "in: absmax", "in: mean", "in: norm", "in: not finite" },
		{ "out: absmax", "out: mean", "out: norm", "out: not finite" },
	};
	const char *side = is_output ? "output" : "input";

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		put_row(out, names[is_output][i],
			json_object_get(json_object_get(a, side), keys[i]),
			json_object_get(json_object_get(b, side), keys[i]));
}

static void put_both(FILE *out, const json_t *first)
{
	static const struct {
		const char *name, *key;
	} rows[] = {
		{ "call", "kind" },
		{ "number", "seq" },
		{ "step", "step" },
		{ "on", "comm_name" },
		{ "type", "dtype" },
		{ "elements", "count" },
		{ "operator", "redop" },
		{ "root", "root" },
		{ "which call of the step", "call" },
		{ "elements in", "elements_in" },
		{ "from", "site" },
	};
	const json_t *a = json_object_get(first, "baseline"), *b = json_object_get(first, "check");

	fputs("<table class=\"sides\">\n<tr><th></th><th>baseline</th><th>check</th></tr>\n", out);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		put_row(out, rows[i].name, json_object_get(a, rows[i].key),
			json_object_get(b, rows[i].key));
	put_side(out, a, b, false);
	put_side(out, a, b, true);
	fputs("</table>\n", out);
}

static void put_rank(FILE *out, const json_t *rank)
{
	const json_t *first = json_object_get(rank, "first"), *allowed;

	fprintf(out, "<div class=\"who\">\n<h3>");
	if (json_is_null(json_object_get(rank, "rank")))
		fprintf(out, "all ranks together");
	else
		fprintf(out, "rank %" JSON_INTEGER_FORMAT, cw_json_int(rank, "rank", -1));
	if (strcmp(cw_json_str(rank, "part", ""), "operators") == 0)
		fputs(", operators", out);
	fputs("</h3>\n<p>", out);
	html_put_sentence(out, cw_json_str(first, "text", "?"));
	allowed = json_object_get(first, "allowed");
	if (json_is_number(allowed))
		fprintf(out, " Allowed: %.3g.", json_number_value(allowed));
	fputs("</p>\n", out);
	put_both(out, first);
	fputs("</div>\n", out);
}

static void put_ranks(FILE *out, const json_t *check)
{
	const json_t *ranks = json_object_get(check, "ranks"), *rank;
	size_t i, n = 0;

	json_array_foreach (ranks, i, rank) {
		if (!json_is_object(json_object_get(rank, "first")))
			continue;
		if (n == 0)
			html_section(out, "ranks", "The first difference of each rank");
		if (n++ < MAX_RANKS)
			put_rank(out, rank);
	}
	if (n > MAX_RANKS)
		fprintf(out, "<p class=\"dim\">… and %zu more.</p>\n", n - MAX_RANKS);
	if (n)
		html_section_end(out);
}

static void put_tolerances(FILE *out, const json_t *check)
{
	const json_t *list = json_object_get(check, "tolerances"), *one;
	size_t i;

	if (!json_array_size(list))
		return;
	html_section(out, "tolerances", "Allowed differences of elements");
	fputs("<table class=\"sides\">\n<tr><th>type</th><th>rtol</th><th>atol</th></tr>\n", out);
	json_array_foreach (list, i, one) {
		fputs("<tr><td>", out);
		put_value(out, json_object_get(one, "dtype"));
		fputs("</td><td>", out);
		put_value(out, json_object_get(one, "rtol"));
		fputs("</td><td>", out);
		put_value(out, json_object_get(one, "atol"));
		fputs("</td></tr>\n", out);
	}
	fputs("</table>\n", out);
	html_section_end(out);
}

int cw_render_baseline_page(FILE *out, const json_t *check)
{
	const char *outcome = cw_json_str(check, "outcome", "");
	const char *first = cw_json_str(json_object_get(check, "first"), "text", "");
	bool is_equal = strcmp(outcome, "equal") == 0;

	html_page_begin(out);
	fputs("baseline check: ", out);
	html_put(out, outcome);
	html_page_body(out);
	fprintf(out, "<header>\n<span class=\"flag%s\">", is_equal ? " over" : "");
	html_put(out, outcome);
	fputs("</span>\n<h1>", out);
	if (*first)
		html_put_sentence(out, first);
	else if (is_equal)
		fputs("The runs are equal", out);
	else
		html_put_sentence(out, cw_json_str(check, "why", "?"));
	fputs("</h1>\n<p>", out);
	html_put_sentence(out, cw_json_str(check, "coverage", ""));
	fputs("</p>\n</header>\n", out);
	put_ranks(out, check);
	put_tolerances(out, check);
	return html_page_end(out);
}
