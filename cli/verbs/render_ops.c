/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verbs/render_ops.h"

#include <string.h>

#include "report/doc/doc_phrase.h"
#include "report/json_util.h"
#include "report/text.h"

#define WIDTH 140

/* Formats "1.5 GB". Units are decimal, as is the custom for bandwidths. */
static void put_bytes(FILE *out, double v)
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	unsigned i = 0;

	while (v >= 1000 && i + 1 < sizeof(units) / sizeof(units[0])) {
		v /= 1000;
		i++;
	}
	fprintf(out, " %7.*f %-2s", i ? 1 : 0, v, units[i]);
}

/* Prints "-" if no op of the row was timed on the device. */
static void put_number(FILE *out, const json_t *v, int width, int digits)
{
	if (json_is_number(v))
		fprintf(out, " %*.*f", width, digits, json_number_value(v));
	else
		fprintf(out, " %*s", width, "-");
}

/* Quantiles of the time that calls took on the host. */
static const char *const quantiles[] = { "p50", "p90", "p99", "max" };

static void put_row(const struct cw_text *t, const json_t *row)
{
	const char *name = cw_json_str(row, "comm_name", "");
	char comm[20], kind[20], size[16];

	if (!*name)
		name = cw_json_str(row, "comm", "");
	(void)snprintf(comm, sizeof(comm), "%-18.18s", name);
	(void)snprintf(kind, sizeof(kind), "  %-14.14s ", cw_json_str(row, "kind", "?"));
	(void)snprintf(size, sizeof(size), " %-10.10s", cw_json_str(row, "size", "?"));
	cw_text_put(t, CW_TEXT_PLAIN, kind);
	cw_text_put(t, CW_TEXT_PLAIN, comm);
	cw_text_put(t, CW_TEXT_DIM, size);
	fprintf(t->out, " %9" JSON_INTEGER_FORMAT, cw_json_int(row, "ops", 0));
	put_bytes(t->out, (double)cw_json_int(row, "bytes", 0));
	for (size_t i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++)
		put_number(t->out, json_object_get(json_object_get(row, "calls_us"), quantiles[i]),
			   8, 1);
	put_number(t->out, json_object_get(row, "device_us"), 9, 1);
	put_number(t->out, json_object_get(row, "algbw_gbs"), 8, 2);
	put_number(t->out, json_object_get(row, "busbw_gbs"), 8, 2);
	if (json_object_get(row, "ops_per_s")) {
		put_number(t->out, json_object_get(row, "ops_per_s"), 9, 1);
		put_bytes(t->out, json_number_value(json_object_get(row, "bytes_per_s")));
	}
	fputc('\n', t->out);
}

void cw_render_ops(FILE *out, const json_t *ops, bool color)
{
	struct cw_text t = { .out = out, .color = color, .width = WIDTH };
	const json_t *rows = json_object_get(ops, "rows"), *row;
	json_int_t omitted = cw_json_int(ops, "omitted", 0), lost = cw_json_int(ops, "lost", 0);
	const char *job = "";
	size_t i;

	if (!json_array_size(rows))
		fputs("no rank on this node has made a call yet\n", out);
	json_array_foreach (rows, i, row) {
		if (i == 0 || strcmp(job, cw_json_str(row, "job", "")) != 0) {
			job = cw_json_str(row, "job", "");
			fputs(i ? "\n" : "", out);
			cw_text_put(&t, CW_TEXT_BOLD, cw_doc_job(row, "(no job yet)"));
			fprintf(out,
				"\n  %-14s %-18s %-10s %9s %10s %8s %8s %8s %8s %9s %8s %8s%s\n",
				"kind", "comm", "size", "ops", "bytes", "p50 us", "p90 us",
				"p99 us", "max us", "device us", "alg GB/s", "bus GB/s",
				json_object_get(row, "ops_per_s") ? "     op/s    bytes/s" : "");
		}
		put_row(&t, row);
	}
	if (omitted)
		fprintf(out, "  %" JSON_INTEGER_FORMAT " row%s left out\n", omitted,
			omitted == 1 ? " is" : "s are");
	if (lost)
		fprintf(out, "  %" JSON_INTEGER_FORMAT " op%s not counted\n", lost,
			lost == 1 ? " was" : "s were");
}
