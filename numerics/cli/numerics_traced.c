/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A traced step of a large model has 100,000 calls of a kilobyte each. So we do not keep a file's
 * calls in memory. We read the file again for the steps that the user named. Text output needs one
 * call in memory at a time. A document contains a limited number of calls.
 */
#include "numerics/cli/numerics_traced.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "common/parse.h"
#include "common/text.h"
#include "numerics/cli/numerics_modules.h"
#include "numerics/read/tensor_file.h"
#include "report/json_util.h"

/* Limit on the calls in a document. Each takes 5 KiB in memory. */
#define DOC_CALLS_MAX 50000u
#define STEPS_TEXT_BYTES 512
#define STEP_BYTES 21 /* the longest number, and a comma or hyphen */

static int parse_step(const char **text, int64_t *ret)
{
	uint64_t n;

	if (cw_parse_digits(text, 10, &n) < 0 || n > INT64_MAX)
		return -EINVAL;
	*ret = (int64_t)n;
	return 0;
}

int numerics_steps_parse(const char *text, struct numerics_steps *steps)
{
	struct numerics_steps found = *steps;

	if (strcmp(text, "all") == 0)
		text = "0-9223372036854775807";
	for (;; text++) {
		int64_t first, last;

		if (found.n == NUMERICS_STEPS_MAX)
			return -E2BIG;
		if (parse_step(&text, &first) < 0)
			return -EINVAL;
		last = first;
		if (*text == '-' && (text++, parse_step(&text, &last) < 0 || last < first))
			return -EINVAL;
		found.ranges[found.n].first = first;
		found.ranges[found.n++].last = last;
		if (*text == '\0')
			break;
		if (*text != ',')
			return -EINVAL;
	}
	*steps = found;
	return 0;
}

bool numerics_steps_has(const struct numerics_steps *steps, int64_t step)
{
	for (uint32_t i = 0; i < steps->n; i++)
		if (step >= steps->ranges[i].first && step <= steps->ranges[i].last)
			return true;
	return false;
}

/* ---- traces as text ---- */

static void name_rank(const struct cw_tensor_lines_file *f, char *buf, size_t len)
{
	if (f->rank >= 0)
		(void)snprintf(buf, len, "rank %" PRId64, f->rank);
	else
		(void)snprintf(buf, len, "%s", f->path);
	cw_text_sanitise_line(buf);
}

struct showing {
	FILE *out;
	const struct cw_tensor_lines_file *file;
	const struct numerics_steps *asked;
	int64_t step; /* the step of the last heading */
	bool has_heading;
	/* number of traces before the current one; traces are in the order of the file's lines */
	uint32_t n_traces_behind;
};

/*
 * Returns the number of calls of the step that did not fit the file. Call it once per step, in the
 * file's order.
 */
static uint64_t lost_of(struct showing *s, int64_t step)
{
	const struct cw_tensor_lines_file *f = s->file;

	while (s->n_traces_behind < f->n_traces) {
		const struct cw_tensor_lines_trace *t = &f->traces[s->n_traces_behind++];

		if (t->step == step)
			return t->n_lost;
	}
	return 0;
}

static void show_heading(struct showing *s, int64_t step)
{
	char name[STEPS_TEXT_BYTES];
	uint64_t n_lost;

	if (s->has_heading && s->step == step)
		return;
	s->has_heading = true;
	s->step = step;
	name_rank(s->file, name, sizeof(name));
	fprintf(s->out, "%s, each call of step %" PRId64, name, step);
	n_lost = lost_of(s, step);
	if (n_lost)
		fprintf(s->out, " but the last %" PRIu64 ", for which there was no room", n_lost);
	fprintf(s->out, ":\n");
}

static int on_show(const char *kind, json_t *line, void *user)
{
	struct showing *s = user;
	int64_t step = cw_tensor_line_number(line, "step", -1);

	if (strcmp(kind, "trace") != 0 || !numerics_steps_has(s->asked, step))
		return 0;
	show_heading(s, step);
	numerics_modules_show_call(s->out, line);
	return 0;
}

/*
 * Lists the file's steps as "1,3,10-20", the format of --trace-steps. Returns false if it had to
 * omit some.
 */
static bool name_steps(const struct cw_tensor_lines_file *f, char *buf, size_t len)
{
	uint32_t n = 0;

	*buf = '\0';
	for (uint32_t i = 0, end; i < f->n_traces; i = end) {
		if (n++ == NUMERICS_STEPS_MAX || strlen(buf) + 2 * STEP_BYTES >= len)
			return false;
		end = i + 1;
		while (end < f->n_traces && f->traces[end].step > f->traces[end - 1].step &&
		       f->traces[end].step - 1 == f->traces[end - 1].step)
			end++;
		cw_text_append(buf, len, "%s%" PRId64, i ? "," : "", f->traces[i].step);
		if (end - i > 1)
			cw_text_append(buf, len, "-%" PRId64, f->traces[end - 1].step);
	}
	return true;
}

/* Lists the steps of the first rank that has any. */
static void show_there(FILE *out, const struct cw_tensor_lines *in)
{
	const struct cw_tensor_lines_file *first = NULL;
	char name[STEPS_TEXT_BYTES], steps[STEPS_TEXT_BYTES];
	uint64_t n_calls = 0;
	uint32_t n = 0;
	bool are_all;

	for (uint32_t i = 0; i < in->n; i++) {
		n += in->files[i].n_traces != 0;
		if (in->files[i].n_traces && !first)
			first = &in->files[i];
	}
	if (!first)
		return;
	for (uint32_t i = 0; i < first->n_traces; i++)
		n_calls += first->traces[i].n_calls;
	name_rank(first, name, sizeof(name));
	are_all = name_steps(first, steps, sizeof(steps));
	fprintf(out, "%s has each call of step%s %s%s, %" PRIu64 " in all", name,
		first->n_traces == 1 ? "" : "s", steps, are_all ? "" : " and others", n_calls);
	if (n > 1)
		fprintf(out, " (and %u more rank%s)", n - 1, n == 2 ? "" : "s");
	fprintf(out, ": --trace-steps %s shows them\n", are_all ? steps : "all");
}

void numerics_traced_show(FILE *out, const struct cw_tensor_lines *in,
			  const struct numerics_steps *asked)
{
	bool is_shown = false;

	for (uint32_t i = 0; asked->n && i < in->n; i++) {
		struct showing s = { .out = out, .file = &in->files[i], .asked = asked };
		struct cw_err err = { "" };

		if (cw_tensor_file_each(in->files[i].path, on_show, &s, &err) < 0)
			fprintf(stderr, "collwatch: %s\n", err.text);
		is_shown = is_shown || s.has_heading;
	}
	if (asked->n && !is_shown)
		fprintf(out, "none of the steps in --trace-steps was traced: collwatch.torch "
			     "writes each call of the steps in its own --trace-steps only\n");
	if (!is_shown)
		show_there(out, in);
}

/* ---- traces as a document ---- */

struct collecting {
	const struct numerics_steps *asked;
	int64_t rank;
	json_t *list;
	uint64_t n_over_limit;
};

static int on_collect(const char *kind, json_t *line, void *user)
{
	struct collecting *c = user;
	json_t *doc;
	int bad = 0;

	if (strcmp(kind, "trace") != 0 ||
	    !numerics_steps_has(c->asked, cw_tensor_line_number(line, "step", -1)))
		return 0;
	if (json_array_size(c->list) == DOC_CALLS_MAX) {
		c->n_over_limit++;
		return 0;
	}
	doc = cw_or_exit(json_copy(line));
	(void)json_object_del(doc, "line");
	bad |= json_object_set_new(doc, "rank", c->rank >= 0 ? json_integer(c->rank) : json_null());
	bad |= json_array_append_new(c->list, doc);
	return cw_or_exit_result(bad ? -ENOMEM : 0);
}

int numerics_traced_doc(const struct cw_tensor_lines *in, const struct numerics_steps *asked,
			json_t *doc)
{
	struct collecting c = { .asked = asked, .list = cw_or_exit(json_array()) };

	for (uint32_t i = 0; asked->n && i < in->n; i++) {
		struct cw_err err = { "" };

		c.rank = in->files[i].rank;
		/* the file was complete at the first reading, so we show what it contains now */
		if (cw_or_exit_result(
			    cw_tensor_file_each(in->files[i].path, on_collect, &c, &err)) < 0)
			fprintf(stderr, "collwatch: %s\n", err.text);
	}
	if (json_object_set_new(doc, "trace", c.list) < 0)
		return -ENOMEM;
	return json_object_set_new(doc, "trace_over_limit", cw_json_u64(c.n_over_limit)) < 0
		       ? -ENOMEM
		       : 0;
}
