/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_modules.h"

#include <inttypes.h>
#include <string.h>

#include "common/text.h"
#include "report/json_util.h"

#define TEXT_BYTES 1024

struct line {
	char *buf;
	size_t len;
};

#define add(l, ...) cw_text_append((l)->buf, (l)->len, __VA_ARGS__)

static struct line begin(char *buf, size_t len)
{
	*buf = '\0';
	return (struct line){ .buf = buf, .len = len };
}

static char *end(const struct line *l)
{
	cw_text_sanitise_line(l->buf);
	return l->buf;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

static void add_rank(struct line *l, const struct cw_tensor_lines_file *f)
{
	if (f->rank >= 0)
		add(l, "rank %" PRId64, f->rank);
	else
		add(l, "%s", f->path);
}

/* Appends "blocks.1.ffn.up (Linear), addmm". */
static void add_call(struct line *l, const json_t *frame)
{
	const char *module = cw_json_str(frame, "module", ""), *op = cw_json_str(frame, "op", "");

	if (*module)
		add(l, "%s (%s)", module, cw_json_str(frame, "class", "?"));
	if (*op)
		add(l, "%s%s", *module ? ", " : "operator ", op);
	if (!*module && !*op)
		add(l, "the program");
	if (cw_json_int(frame, "call", 1) > 1)
		add(l, ", call %" JSON_INTEGER_FORMAT, cw_json_int(frame, "call", 1));
}

static void add_shape(struct line *l, const json_t *tensor)
{
	const json_t *shape = json_object_get(tensor, "shape"), *v;
	size_t i;

	add(l, "%s [", cw_json_str(tensor, "dtype", "?"));
	json_array_foreach (shape, i, v)
		add(l, "%s%" JSON_INTEGER_FORMAT, i ? ", " : "", json_integer_value(v));
	add(l, "]");
}

static const json_t *bad_tensor(const json_t *frame)
{
	json_int_t i = cw_json_int(frame, "tensor", 0);

	return json_array_get(json_object_get(frame, "tensors"), i > 0 ? (size_t)i : 0);
}

static void add_side(struct line *l, const json_t *tensor)
{
	const char *side = cw_json_str(tensor, "side", "?"),
		   *what = cw_json_str(tensor, "what", "");

	if (strncmp(what, "gradient", 8) == 0 || strcmp(what, side) == 0)
		add(l, "%s", what);
	else
		add(l, "%s%s%s", side, *what == '[' ? "" : " ", what);
}

static const json_t *first_line(const struct cw_tensor_lines *in,
				const struct cw_modules_report *said)
{
	return json_array_get(in->files[said->rank].bad, said->event);
}

char *numerics_modules_first(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     char *buf, size_t len)
{
	const json_t *frame = first_line(in, said), *tensor = bad_tensor(frame);
	const json_t *site = json_array_get(json_object_get(frame, "site"), 0);
	struct line l = begin(buf, len);

	add_rank(&l, &in->files[said->rank]);
	add(&l, " was the first with %s: ", cw_json_str(frame, "number", "?"));
	add_side(&l, tensor);
	add(&l, " of ");
	add_call(&l, frame);
	add(&l, ", ");
	add_shape(&l, tensor);
	add(&l, ", step %" JSON_INTEGER_FORMAT ", %s", cw_json_int(frame, "step", -1),
	    cw_json_str(frame, "phase", "?"));
	if (strcmp(cw_json_str(tensor, "side", ""), "output") == 0 &&
	    strcmp(cw_json_str(frame, "phase", ""), "backward") != 0)
		add(&l, json_is_true(json_object_get(frame, "inputs_finite"))
				? ", out of finite numbers"
				: ", into which some went");
	if (json_is_string(site))
		add(&l, ", from %s", json_string_value(site));
	if (said->is_first_by_clock)
		add(&l, " (of several in that step, by the clocks of their hosts)");
	return end(&l);
}

char *numerics_modules_row(const struct cw_tensor_lines *in, const struct cw_modules_row *row,
			   char *buf, size_t len)
{
	struct line l = begin(buf, len);

	add_rank(&l, &in->files[row->rank]);
	add(&l,
	    " had gradients with NaN or Inf in %u step%s (from step %" PRId64
	    "): loss scaling, harmless: its scale went from %g to %g",
	    row->n_steps, plural(row->n_steps), row->step, row->before, row->after);
	return end(&l);
}

char *numerics_modules_replica(const json_t *line, size_t i, char *buf, size_t len)
{
	const json_t *different = json_array_get(json_object_get(line, "different"), i), *group;
	struct line l = begin(buf, len);
	size_t g;

	add(&l,
	    "step %" JSON_INTEGER_FORMAT ": %s differs between members of the group, which should "
	    "have it alike: ",
	    cw_json_int(line, "step", -1), cw_json_str(different, "tensor", "?"));
	json_array_foreach (json_object_get(different, "groups"), g, group) {
		const json_t *member;
		size_t m;

		add(&l, "%s", g ? " | " : "");
		json_array_foreach (group, m, member)
			add(&l, "%s%" JSON_INTEGER_FORMAT, m ? "," : "",
			    json_integer_value(member));
	}
	return end(&l);
}

char *numerics_modules_coverage(const struct cw_tensor_lines *in, char *buf, size_t len)
{
	uint64_t steps = 0, frames = 0, dropped = 0, unread = 0, compared = 0;
	struct line l = begin(buf, len);
	int64_t world_size = -1;
	uint32_t n_open = 0;

	for (uint32_t i = 0; i < in->n; i++) {
		const struct cw_tensor_lines_file *f = &in->files[i];

		steps += f->n_steps;
		frames += f->n_frames;
		dropped += f->dropped;
		unread += f->unread;
		n_open += !f->is_ended;
		compared = f->n_compared > compared ? f->n_compared : compared;
		world_size = f->world_size > world_size ? f->world_size : world_size;
	}
	add(&l, "%u", in->n);
	if (world_size > in->n)
		add(&l, " of %" PRId64 " ranks", world_size);
	else
		add(&l, " rank%s", plural(in->n));
	add(&l,
	    ", %" PRIu64 " step%s and %" PRIu64
	    " call%s of modules and operators looked at; weights of replicas compared in %" PRIu64
	    " step%s",
	    steps, plural(steps), frames, plural(frames), compared, plural(compared));
	if (dropped)
		add(&l, "; %" PRIu64 " call%s left out", dropped, dropped == 1 ? " was" : "s were");
	if (unread)
		add(&l, "; %" PRIu64 " tensor%s of kinds that cannot be examined", unread,
		    unread == 1 ? " was" : "s were");
	for (uint32_t i = 0; i < in->n; i++) {
		const json_t *denied = in->files[i].denied, *each;
		size_t k;

		json_array_foreach (denied, k, each)
			add(&l, "%s%s",
			    k ? " " : "; modules not examined: ", json_string_value(each));
		if (json_array_size(denied))
			break;
	}
	if (n_open)
		add(&l, "; of %u rank%s the last two steps may be missing: the watch has not ended",
		    n_open, plural(n_open));
	return end(&l);
}

char *numerics_modules_stop(const struct cw_tensor_lines_file *file, const json_t *stop, char *buf,
			    size_t len)
{
	const json_t *site = json_array_get(json_object_get(stop, "site"), 0);
	struct line l = begin(buf, len);

	add_rank(&l, file);
	add(&l, " stopped before ");
	add_call(&l, stop);
	add(&l, ", step %" JSON_INTEGER_FORMAT ", %s", cw_json_int(stop, "step", -1),
	    cw_json_str(stop, "phase", "?"));
	if (json_is_string(site))
		add(&l, ", from %s", json_string_value(site));
	add(&l, ": stop_at %s", cw_json_str(stop, "stop_at", "?"));
	return end(&l);
}

bool numerics_modules_is_alarming(const struct cw_tensor_lines *in,
				  const struct cw_modules_report *said)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (json_array_size(in->files[i].replicas))
			return true;
	return said->has_first || said->n_bad_steps;
}

bool numerics_modules_has_looked(const struct cw_tensor_lines *in)
{
	for (uint32_t i = 0; i < in->n; i++)
		if (in->files[i].n_frames || json_array_size(in->files[i].replicas))
			return true;
	return false;
}

/* ---- report as text ---- */

static const char *number(const json_t *tensor, const char *key, char *buf, size_t len)
{
	const json_t *v = json_object_get(tensor, key);

	if (json_is_string(v))
		(void)snprintf(buf, len, "%.8s", json_string_value(v));
	else
		(void)snprintf(buf, len, "%.3g", json_number_value(v));
	return buf;
}

static void show_tensor(FILE *out, const json_t *tensor)
{
	char what[160], shape[160], absmin[24], absmax[24], mean[24];
	struct line l = begin(what, sizeof(what));
	struct line s = begin(shape, sizeof(shape));

	add_side(&l, tensor);
	add_shape(&s, tensor);
	fprintf(out, "      %-24s %-28s absmin %s  absmax %s  mean %s\n", end(&l), end(&s),
		number(tensor, "absmin", absmin, sizeof(absmin)),
		number(tensor, "absmax", absmax, sizeof(absmax)),
		number(tensor, "mean", mean, sizeof(mean)));
}

void numerics_modules_show_call(FILE *out, const json_t *frame)
{
	char text[TEXT_BYTES];
	struct line l = begin(text, sizeof(text));
	const json_t *tensor, *site = json_array_get(json_object_get(frame, "site"), 0);
	size_t i;

	add(&l, "step %" JSON_INTEGER_FORMAT ", %s: ", cw_json_int(frame, "step", -1),
	    cw_json_str(frame, "phase", "?"));
	add_call(&l, frame);
	if (json_is_string(site))
		add(&l, ", from %s", json_string_value(site));
	fprintf(out, "    %s\n", end(&l));
	json_array_foreach (json_object_get(frame, "tensors"), i, tensor)
		show_tensor(out, tensor);
}

static size_t from_of(const json_t *before, size_t last)
{
	size_t n = json_array_size(before);

	return n > last ? n - last : 0;
}

static void show_first(FILE *out, const struct cw_tensor_lines *in,
		       const struct cw_modules_report *said, size_t last)
{
	const json_t *before = json_array_get(in->files[said->rank].before, said->event);
	char text[TEXT_BYTES];
	size_t from = from_of(before, last), n = json_array_size(before) - from;

	fprintf(out, "%s\n", numerics_modules_first(in, said, text, sizeof(text)));
	fprintf(out, "  the %zu call%s before, and that:\n", n, plural(n));
	for (size_t i = 0; i < n; i++)
		numerics_modules_show_call(out, json_array_get(before, from + i));
	numerics_modules_show_call(out, first_line(in, said));
}

static void show_stop(FILE *out, const struct cw_tensor_lines_file *f, const json_t *stop,
		      size_t last)
{
	const json_t *lines = json_object_get(stop, "lines");
	size_t from = from_of(lines, last), n = json_array_size(lines);
	char text[TEXT_BYTES];

	fprintf(out, "%s\n", numerics_modules_stop(f, stop, text, sizeof(text)));
	if (n - from)
		fprintf(out, "  the last %zu of %zu line%s of the program before that:\n", n - from,
			n, plural(n));
	for (size_t i = from; i < n; i++) {
		const json_t *line = json_array_get(lines, i);
		struct line l = begin(text, sizeof(text));

		add(&l, "%s, %s: %s", cw_json_str(line, "thread", "?"),
		    cw_json_str(line, "site", "?"), cw_json_str(line, "text", ""));
		fprintf(out, "    %s\n", end(&l));
	}
}

void numerics_modules_show(FILE *out, const struct cw_tensor_lines *in,
			   const struct cw_modules_report *said, size_t last)
{
	char text[TEXT_BYTES];

	if (said->has_first)
		show_first(out, in, said, last);
	else if (said->n_bad_steps)
		fprintf(out,
			"%" PRIu64 " step%s with NaN or Inf, which loss scaling does not explain; "
			"their frames are not in these files\n",
			said->n_bad_steps, plural(said->n_bad_steps));
	for (uint32_t i = 0; i < said->n_rows; i++)
		fprintf(out, "%s\n", numerics_modules_row(in, &said->rows[i], text, sizeof(text)));
	if (said->n_rows_over_limit)
		fprintf(out, "  … and more of such rows: %u\n", said->n_rows_over_limit);
	for (uint32_t f = 0; f < in->n; f++) {
		/*
		 * All members found the same differences, so we show those of the first file that
		 * has some.
		 */
		const json_t *line = json_array_get(in->files[f].replicas, 0);
		size_t n = json_array_size(json_object_get(line, "different"));

		for (size_t i = 0; i < n; i++)
			fprintf(out, "%s\n", numerics_modules_replica(line, i, text, sizeof(text)));
		if (n)
			break;
	}
	for (uint32_t f = 0; f < in->n; f++)
		for (size_t i = 0; i < json_array_size(in->files[f].stops); i++)
			show_stop(out, &in->files[f], json_array_get(in->files[f].stops, i), last);
	if (!numerics_modules_is_alarming(in, said) && !numerics_modules_has_looked(in))
		fprintf(out, "no module was examined: the program ended in its first step, or the "
			     "model passed to watch() was not called, was compiled, or has only "
			     "excluded modules\n");
	else if (!numerics_modules_is_alarming(in, said) && !said->n_rows)
		fprintf(out, "no finding: no NaN, no infinity that was not an input, and no "
			     "replica that differs\n");
	fprintf(out, "%s\n", numerics_modules_coverage(in, text, sizeof(text)));
}

/* ---- report as a document ---- */

static json_t *rank_of(const struct cw_tensor_lines_file *f)
{
	return f->rank >= 0 ? json_integer(f->rank) : json_null();
}

static json_t *first_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said)
{
	const json_t *line = first_line(in, said);
	json_t *doc = json_copy((json_t *)line);
	char text[TEXT_BYTES];
	int bad = 0;

	(void)json_object_del(doc, "line");
	bad |= cw_json_add(doc, (struct cw_json_member[]){
					{ "rank", rank_of(&in->files[said->rank]) },
					{ "by_clock", json_boolean(said->is_first_by_clock) },
					{ "text", cw_json_text(numerics_modules_first(
							  in, said, text, sizeof(text))) },
					{ NULL },
				});
	return cw_json_finish(doc, bad);
}

static json_t *before_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			  size_t last)
{
	const json_t *before = json_array_get(in->files[said->rank].before, said->event);
	json_t *list = json_array();
	int bad = 0;

	for (size_t i = from_of(before, last); i < json_array_size(before); i++) {
		json_t *frame = json_copy(json_array_get(before, i));

		(void)json_object_del(frame, "line");
		bad |= json_array_append_new(list, frame);
	}
	return cw_json_finish(list, bad);
}

static json_t *rows_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said)
{
	json_t *list = json_array();
	char text[TEXT_BYTES];
	int bad = 0;

	for (uint32_t i = 0; i < said->n_rows; i++) {
		const struct cw_modules_row *row = &said->rows[i];
		json_t *doc;

		doc = cw_json_object((struct cw_json_member[]){
			{ "rank", rank_of(&in->files[row->rank]) },
			{ "step", json_integer(row->step) },
			{ "steps", json_integer(row->n_steps) },
			{ "scale_before", json_real(row->before) },
			{ "scale_after", json_real(row->after) },
			{ "text", cw_json_text(numerics_modules_row(in, row, text, sizeof(text))) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *replicas_doc(const struct cw_tensor_lines *in)
{
	json_t *list = json_array(), *line;
	char text[TEXT_BYTES];
	size_t l;
	int bad = 0;

	for (uint32_t f = 0; f < in->n && !json_array_size(list); f++)
		json_array_foreach (in->files[f].replicas, l, line)
			for (size_t i = 0; i < json_array_size(json_object_get(line, "different"));
			     i++) {
				json_t *doc = json_copy(
					json_array_get(json_object_get(line, "different"), i));

				bad |= json_object_set_new(
					doc, "step", json_integer(cw_json_int(line, "step", -1)));
				bad |= json_object_set_new(doc, "text",
							   cw_json_text(numerics_modules_replica(
								   line, i, text, sizeof(text))));
				bad |= json_array_append_new(list, doc);
			}
	return cw_json_finish(list, bad);
}

static json_t *stops_doc(const struct cw_tensor_lines *in, size_t last)
{
	json_t *list = json_array(), *line;
	char text[TEXT_BYTES];
	size_t l;
	int bad = 0;

	for (uint32_t f = 0; f < in->n; f++)
		json_array_foreach (in->files[f].stops, l, line) {
			json_t *doc = json_copy(line), *lines = json_array();
			const json_t *all = json_object_get(line, "lines");

			for (size_t i = from_of(all, last); i < json_array_size(all); i++)
				bad |= json_array_append(lines, json_array_get(all, i));
			(void)json_object_del(doc, "line");
			bad |= cw_json_add(
				doc, (struct cw_json_member[]){
					     { "lines", lines },
					     { "rank", rank_of(&in->files[f]) },
					     { "text",
					       cw_json_text(numerics_modules_stop(
						       &in->files[f], line, text, sizeof(text))) },
					     { NULL },
				     });
			bad |= json_array_append_new(list, doc);
		}
	return cw_json_finish(list, bad);
}

static json_t *traced_doc(const struct cw_tensor_lines_file *f)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < f->n_traces; i++) {
		json_t *doc;

		doc = cw_json_object((struct cw_json_member[]){
			{ "step", json_integer(f->traces[i].step) },
			{ "calls", cw_json_u64(f->traces[i].n_calls) },
			{ "lost", cw_json_u64(f->traces[i].n_lost) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

static json_t *ranks_doc(const struct cw_tensor_lines *in)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < in->n; i++) {
		const struct cw_tensor_lines_file *f = &in->files[i];
		json_t *doc;
		uint64_t n_bad = 0, n_bad_gradients = 0;

		for (uint32_t s = 0; s < f->n_steps; s++) {
			n_bad += f->steps[s].n_bad != 0;
			n_bad_gradients += f->steps[s].n_bad_gradients != 0;
		}
		doc = cw_json_object((struct cw_json_member[]){
			{ "rank", rank_of(f) },
			{ "file", cw_json_text(f->path) },
			{ "steps", cw_json_u64(f->n_steps) },
			{ "frames", cw_json_u64(f->n_frames) },
			{ "bad_steps", cw_json_u64(n_bad) },
			{ "bad_gradient_steps", cw_json_u64(n_bad_gradients) },
			{ "dropped", cw_json_u64(f->dropped) },
			{ "unread", cw_json_u64(f->unread) },
			{ "ended", json_boolean(f->is_ended) },
			{ "replicas_compared", cw_json_u64(f->n_compared) },
			{ "notes", json_incref(f->notes) },
			{ "denied_modules", json_incref(f->denied) },
			{ "traced", traced_doc(f) },
			{ NULL },
		});
		bad |= json_array_append_new(list, doc);
	}
	return cw_json_finish(list, bad);
}

json_t *numerics_modules_doc(const struct cw_tensor_lines *in, const struct cw_modules_report *said,
			     size_t last)
{
	char text[TEXT_BYTES];

	return cw_json_object((struct cw_json_member[]){
		{ "schema", json_string("collwatch.modules/1") },
		{ "alarm", json_boolean(numerics_modules_is_alarming(in, said)) },
		{ "coverage", cw_json_text(numerics_modules_coverage(in, text, sizeof(text))) },
		{ "first", said->has_first ? first_doc(in, said) : json_null() },
		{ "before", said->has_first ? before_doc(in, said, last) : json_array() },
		{ "bad_steps", cw_json_u64(said->n_bad_steps) },
		{ "scaling_steps", cw_json_u64(said->n_scaling_steps) },
		{ "rows", rows_doc(in, said) },
		{ "rows_over_limit", json_integer(said->n_rows_over_limit) },
		{ "replicas", replicas_doc(in) },
		{ "stops", stops_doc(in, last) },
		{ "ranks", ranks_doc(in) },
		{ NULL },
	});
}
