/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of calls with a picture in each row. A row is one kind of call on one communicator, in
 * one class of sizes. All pictures share a logarithmic scale from a microsecond to 100 seconds. A
 * box spans the 10th to the 90th percentile of the durations, with a line at the 50th. A mark shows
 * the 99th percentile and a dot the longest call.
 */
#include "report/html/html_ops.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "report/doc/doc_phrase.h"
#include "report/html/html.h"
#include "report/html/html_page.h"
#include "report/json_util.h"

/* This limit equals that of a daemon's document (daemon/control/ops_doc.h). */
#define MAX_ROWS 400u
#define MAX_LATE 8u
#define PICTURE_WIDTH 160.0
#define DECADES 8

/* ---- numbers ---- */

/*
 * Writes a table cell with v / divisor. The cell is empty if the number is missing or implausible.
 */
static void put_cell(FILE *out, const json_t *v, double divisor)
{
	double n = json_number_value(v) / divisor;

	fputs("<td class=\"n\">", out);
	if (json_is_number(v) && n >= 0 && n < 1e15)
		fprintf(out, "%.*f", n < 100 && json_is_real(v) ? 2 : 0, n);
	fputs("</td>", out);
}

static void put_bytes(FILE *out, const json_t *v)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB", "EB" };
	double n = json_number_value(v);
	unsigned i = 0;

	while (n >= 1000 && i + 1 < sizeof(units) / sizeof(units[0])) {
		n /= 1000;
		i++;
	}
	fputs("<td class=\"n\">", out);
	if (json_is_number(v) && n >= 0 && n < 1000)
		fprintf(out, "%.*f %s", i ? 1 : 0, n, units[i]);
	fputs("</td>", out);
}

/* ---- the picture ---- */

/* Returns the x coordinate of a duration in microseconds. */
static double x_of(double us)
{
	double x = us > 1 ? log10(us) / DECADES * PICTURE_WIDTH : 0;

	return x < PICTURE_WIDTH ? x : PICTURE_WIDTH;
}

static double us_of(const json_t *calls, const char *key)
{
	return json_number_value(json_object_get(calls, key)); /* 0 if it is not a number */
}

static void put_line(FILE *out, const char *class, double x, int top, int bottom)
{
	fprintf(out, "<line class=\"%s\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", class, x,
		x, top, bottom);
}

static void put_picture(FILE *out, const json_t *calls)
{
	double p90 = us_of(calls, "p90"), low = x_of(p90 - us_of(calls, "jitter")),
	       high = x_of(p90);

	fputs("<td>", out);
	if (json_is_object(calls)) {
		fprintf(out,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" aria-label=\"how "
			"long calls took\" viewBox=\"-4 0 %.0f 18\" width=\"%.0f\" height=\"18\">",
			PICTURE_WIDTH + 8, PICTURE_WIDTH + 8);
		for (int i = 0; i <= DECADES; i++)
			put_line(out, "grid", i * PICTURE_WIDTH / DECADES, 0, 18);
		fprintf(out, "<rect class=\"c4\" x=\"%.1f\" y=\"4\" width=\"%.1f\" height=\"10\"/>",
			low < high ? low : high, high - low > 1 ? high - low : 1);
		put_line(out, "middle", x_of(us_of(calls, "p50")), 2, 16);
		put_line(out, "arrow", x_of(us_of(calls, "p99")), 6, 12);
		fprintf(out, "<circle class=\"c5\" cx=\"%.1f\" cy=\"9\" r=\"2.5\"/></svg>",
			x_of(us_of(calls, "max")));
	}
	fputs("</td>", out);
}

/* ---- the table ---- */

static void put_row(FILE *out, const json_t *row)
{
	static const char *const times[] = { "p50", "p90", "p99", "max", "jitter" };
	const json_t *calls = json_object_get(row, "calls_us");
	const char *name = cw_json_str(row, "comm_name", "");

	fputs("<tr><td>", out);
	html_put(out, cw_json_str(row, "kind", "?"));
	fputs("</td><td>", out);
	html_put_short(out, *name ? name : cw_json_str(row, "comm", ""), 24);
	fputs("</td><td>", out);
	html_put(out, cw_json_str(row, "size", "?"));
	fputs("</td>", out);
	put_cell(out, json_object_get(row, "ops"), 1);
	put_bytes(out, json_object_get(row, "bytes"));
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		put_cell(out, json_object_get(calls, times[i]), 1);
	put_picture(out, calls);
	put_cell(out, json_object_get(row, "device_us"), 1);
	put_cell(out, json_object_get(row, "algbw_gbs"), 1);
	put_cell(out, json_object_get(row, "busbw_gbs"), 1);
	fputs("</tr>\n", out);
}

static void put_table_head(FILE *out)
{
	fputs("<div class=\"scroll\"><table class=\"ops\">\n<tr><th>call</th><th>communicator</th>"
	      "<th>size</th><th>calls</th><th>bytes</th><th>p50 µs</th><th>p90 µs</th>"
	      "<th>p99 µs</th><th>max µs</th><th>jitter µs</th><th>1 µs to 100 s</th>"
	      "<th>device µs</th><th>alg GB/s</th><th>bus GB/s</th></tr>\n",
	      out);
}

static void put_explanation(FILE *out, const json_t *ops)
{
	json_int_t omitted = cw_json_int(ops, "omitted", 0), lost = cw_json_int(ops, "lost", 0);
	size_t n = json_array_size(json_object_get(ops, "rows"));

	fputs("<p class=\"dim\">Of the ranks on ", out);
	html_put(out, cw_json_str(ops, "node", "?"));
	fputs(". Times are those of the calls on the host, which mostly only enqueue work. Jitter "
	      "is p90 minus p10. The box shows p10 to p90, the line in it p50, the mark p99, and "
	      "the dot the maximum. Each grid line is ten times the previous one. Device time and "
	      "bandwidth appear if ops are timed.",
	      out);
	if (n > MAX_ROWS)
		omitted += (json_int_t)(n - MAX_ROWS);
	if (omitted > 0)
		fprintf(out, " %" JSON_INTEGER_FORMAT " row%s left out.", omitted,
			omitted == 1 ? " is" : "s are");
	if (lost > 0)
		fprintf(out, " %" JSON_INTEGER_FORMAT " call%s not counted.", lost,
			lost == 1 ? " was" : "s were");
	fputs("</p>\n", out);
}

void html_put_ops(FILE *out, const json_t *ops)
{
	const json_t *rows = json_object_get(ops, "rows"), *row;
	size_t i;

	if (!json_array_size(rows))
		return;
	html_section(out, "ops", "Totals of its calls");
	put_table_head(out);
	json_array_foreach (rows, i, row) {
		if (i == MAX_ROWS)
			break;
		put_row(out, row);
	}
	fputs("</table></div>\n", out);
	put_explanation(out, ops);
	html_section_end(out);
}

/* ---- a page of its own ---- */

static bool is_same_job(const json_t *a, const json_t *b)
{
	return strcmp(cw_json_str(a, "job", ""), cw_json_str(b, "job", "")) == 0 &&
	       cw_json_int(a, "uid", -1) == cw_json_int(b, "uid", -1);
}

static void put_late(FILE *out, const json_t *late)
{
	const json_t *one;
	size_t i;

	json_array_foreach (late, i, one) {
		if (i == MAX_LATE)
			break;
		fputs("<p class=\"warn\">", out);
		html_put_sentence(out, cw_json_str(one, "summary", "?"));
		fputs("</p>\n", out);
	}
}

static void put_job_head(FILE *out, const json_t *row, const json_t *status)
{
	const json_t *jobs = json_object_get(status, "jobs"), *job;
	bool is_known = false;
	size_t i, n_late = 0;

	fputs("<section>\n<h2>", out);
	html_put(out, cw_doc_job(row, "(no job yet)"));
	fputs("</h2>\n", out);
	json_array_foreach (jobs, i, job) {
		const json_t *late = json_object_get(job, "late");

		if (!is_same_job(job, row))
			continue;
		is_known = true;
		n_late += json_array_size(late);
		put_late(out, late);
	}
	if (is_known && !n_late)
		fputs("<p class=\"dim\">No rank was late again and again.</p>\n", out);
	put_table_head(out);
}

int cw_render_ops_page(FILE *out, const json_t *ops, const json_t *status)
{
	const json_t *rows = json_object_get(ops, "rows"), *row, *before = NULL;
	size_t i;

	html_page_begin(out);
	fputs("calls on ", out);
	html_put(out, cw_json_str(ops, "node", "?"));
	html_page_body(out);
	fputs("<header>\n<h1>Totals of the calls of ranks on ", out);
	html_put(out, cw_json_str(ops, "node", "?"));
	fputs("</h1>\n</header>\n", out);
	json_array_foreach (rows, i, row) {
		if (i == MAX_ROWS)
			break;
		if (before && !is_same_job(before, row))
			fputs("</table></div>\n</section>\n", out);
		if (!before || !is_same_job(before, row))
			put_job_head(out, row, status);
		put_row(out, row);
		before = row;
	}
	fputs(before ? "</table></div>\n</section>\n" : "<p>No rank has made a call yet.</p>\n",
	      out);
	put_explanation(out, ops);
	return html_page_end(out);
}
