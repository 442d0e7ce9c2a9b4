/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/cli/numerics_buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/text.h"
#include "model/op.h"
#include "numerics/judge/buckets.h"
#include "numerics/read/tensor_file.h"
#include "record/group_name.h"

#define NAME_BYTES 32 /* the size of a communicator's name in a flight record */
#define TEXT_BYTES 256
#define MODULES_SHOWN 2u

/* ---- wording ---- */

/*
 * Returns the length of the module's name in a parameter's name: "blocks.1.up"
 * in "blocks.1.up.weight".
 */
static size_t module_len(const char *parameter)
{
	const char *dot = strrchr(parameter, '.');

	return dot ? (size_t)(dot - parameter) : strlen(parameter);
}

static bool is_of_module(const char *parameter, const char *other)
{
	size_t len = module_len(other);

	return module_len(parameter) == len && strncmp(parameter, other, len) == 0;
}

/*
 * Writes "gradients of …" with the names of the parameters. The list has the parameters of a module
 * one after the other.
 */
static const char *say(const json_t *parameters, bool is_certain, char *buf, size_t len)
{
	const char *before = NULL;
	size_t i, n_modules = 0, n = json_array_size(parameters);
	json_t *each;

	buf[0] = '\0';
	cw_text_append(buf, len, "%sgradients of ", is_certain ? "" : "perhaps ");
	json_array_foreach (parameters, i, each) {
		const char *name = json_string_value(each);

		if (before && is_of_module(name, before))
			continue;
		before = name;
		if (n_modules++ < MODULES_SHOWN)
			cw_text_append(buf, len, "%s%.*s", n_modules > 1 ? ", " : "",
				       (int)module_len(name), name);
	}
	if (n_modules > MODULES_SHOWN)
		cw_text_append(buf, len, " and %zu more", n_modules - MODULES_SHOWN);
	cw_text_append(buf, len, " (%zu parameter%s)", n, n == 1 ? "" : "s");
	cw_text_sanitise_line(buf);
	return buf;
}

/* ---- one line ---- */

/*
 * Returns the index of the rank's communicator with this name. Only torch's groups matter here, and
 * they all have a name.
 */
static uint32_t comm_called(const struct cw_numerics_job *job,
			    const struct cw_numerics_rank_said *rank, const char *name)
{
	char said[NAME_BYTES];

	if (!*name)
		return CW_NUMERICS_NONE;
	(void)cw_group_name_of_comm(name, said, sizeof(said));
	for (uint32_t i = rank->first; i < rank->last; i++)
		if (strcmp(job->comms[job->samples[i].comm].name, said) == 0)
			return job->samples[i].comm;
	return CW_NUMERICS_NONE;
}

/* The texts of one line of the file. We make each text once. */
struct line_texts {
	struct cw_arena *arena;
	const json_t *buckets;
	int64_t until; /* the first step described by a newer line */
	const char **certain, **uncertain;
};

static const char *text_of(struct line_texts *t, const struct cw_numerics_bucket *f)
{
	const char **known = &(f->is_certain ? t->certain : t->uncertain)[f->bucket];
	char text[TEXT_BYTES];

	if (!*known)
		*known = cw_arena_strdup(
			t->arena,
			say(json_object_get(json_array_get(t->buckets, f->bucket), "parameters"),
			    f->is_certain, text, sizeof(text)));
	return *known;
}

static int fill(struct cw_numerics_input *in, const struct cw_numerics_buckets *b,
		struct line_texts *t)
{
	_cleanup_(freep) struct cw_numerics_bucket *found =
		malloc(((size_t)(b->last - b->first) + 1) * sizeof(*found));

	if (!found || cw_numerics_buckets_match(&in->job, b, found) < 0)
		return -ENOMEM;
	for (uint32_t i = b->first; i < b->last; i++) {
		const struct cw_numerics_bucket *f = &found[i - b->first];
		struct cw_numerics_sample *sample = &in->job.samples[i];

		/*
		 * The newest line about a step replaces older ones. But a guess does not replace a
		 * certain answer about earlier steps.
		 */
		if (f->bucket == CW_NUMERICS_NONE || sample->step >= t->until ||
		    (sample->carried && (sample->is_carried_certain || !f->is_certain)))
			continue;
		sample->carried = text_of(t, f);
		sample->is_carried_certain = f->is_certain;
		if (!sample->carried)
			return -ENOMEM;
	}
	return 0;
}

static int fill_from_line(struct cw_numerics_input *in, const struct cw_numerics_rank_said *rank,
			  const json_t *line, int64_t until)
{
	const json_t *buckets = json_object_get(line, "buckets");
	int kind = cw_op_kind_from_name(cw_tensor_line_text(line, "op"));
	struct cw_numerics_buckets b = {
		.first = rank->first,
		.last = rank->last,
		.comm = comm_called(&in->job, rank, cw_tensor_line_text(line, "comm")),
		.kind = (uint8_t)kind,
		.n = (uint32_t)json_array_size(buckets),
		.step = cw_tensor_line_number(line, "step", INT64_MAX),
	};
	_cleanup_(freep) uint64_t *elements = malloc(((size_t)b.n + 1) * sizeof(*elements));
	_cleanup_(freep) const char **texts = calloc(2 * (size_t)b.n + 1, sizeof(*texts));
	struct line_texts t = { .arena = &in->arena, .buckets = buckets, .until = until };

	if (!elements || !texts)
		return -ENOMEM;
	t.certain = texts;
	t.uncertain = texts + b.n;
	if (b.comm == CW_NUMERICS_NONE || kind < 0)
		return 0;
	for (uint32_t i = 0; i < b.n; i++)
		elements[i] = cw_tensor_line_count(json_array_get(buckets, i), "elements");
	b.elements = elements;
	return fill(in, &b, &t);
}

static bool is_of_same_calls(const json_t *a, const json_t *b)
{
	return strcmp(cw_tensor_line_text(a, "comm"), cw_tensor_line_text(b, "comm")) == 0 &&
	       strcmp(cw_tensor_line_text(a, "op"), cw_tensor_line_text(b, "op")) == 0;
}

static int fill_from_file(struct cw_numerics_input *in, const struct cw_numerics_rank_said *rank,
			  const struct cw_tensor_lines_file *file)
{
	int r = 0;

	for (size_t n = json_array_size(file->buckets); r == 0 && n > 0; n--) {
		const json_t *line = json_array_get(file->buckets, n - 1), *newer;
		int64_t until = INT64_MAX;
		size_t i;

		json_array_foreach (file->buckets, i, newer) {
			int64_t step = cw_tensor_line_number(newer, "step", INT64_MAX);

			if (i >= n && step < until && is_of_same_calls(line, newer))
				until = step;
		}
		r = fill_from_line(in, rank, line, until);
	}
	return r;
}

int numerics_buckets_fill(struct cw_numerics_input *in, const struct cw_numerics_report *said,
			  const struct cw_tensor_lines *lines)
{
	int r = 0;

	for (uint32_t i = 0; i < in->job.n_ranks; i++)
		for (uint32_t f = 0; f < lines->n && r == 0; f++)
			if (lines->files[f].rank >= 0 &&
			    lines->files[f].rank == in->job.ranks[i].rank)
				r = fill_from_file(in, &said->ranks[i], &lines->files[f]);
	return r;
}
