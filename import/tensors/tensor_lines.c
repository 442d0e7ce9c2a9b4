/* SPDX-License-Identifier: Apache-2.0 */
#include "import/tensors/tensor_lines.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"

#define SCHEMA "collwatch.tensors/1"
/* A frame of a module with a hundred tensors has 30 KiB. */
#define LINE_MAX_BYTES (1u << 20)
#define STEPS_MAX 10000000u
/* Of the writer there are at most 8 events of 21 frames. */
#define EVENTS_MAX 64u
#define FRAMES_MAX 1024u
#define DIFFERENT_MAX 64u

struct reader {
	struct cw_tensor_lines_file *to;
	json_t *frames; /* since the last event */
	bool has_head;
};

static const char *text_of(const json_t *line, const char *key)
{
	const char *text = json_string_value(json_object_get(line, key));

	return text ? text : "";
}

static int64_t whole_of(const json_t *line, const char *key, int64_t fallback)
{
	const json_t *v = json_object_get(line, key);

	return json_is_integer(v) ? json_integer_value(v) : fallback;
}

static uint64_t count_of(const json_t *line, const char *key)
{
	int64_t v = whole_of(line, key, 0);

	return v > 0 ? (uint64_t)v : 0;
}

static int on_head(struct reader *r, const json_t *line)
{
	if (strcmp(text_of(line, "schema"), SCHEMA) != 0)
		return -ENOTSUP;
	r->to->rank = whole_of(line, "rank", -1);
	r->to->world_size = whole_of(line, "world_size", -1);
	r->has_head = true;
	return 0;
}

static int on_step(struct reader *r, const json_t *line)
{
	struct cw_tensor_lines_file *to = r->to;
	const json_t *scale = json_object_get(line, "loss_scale");
	uint32_t room = to->room_steps ? to->room_steps : 64;
	struct cw_modules_step *grown;

	if (to->n_steps == STEPS_MAX)
		return -E2BIG;
	while (room <= to->n_steps)
		room *= 2;
	if (room != to->room_steps) {
		grown = realloc(to->steps, room * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		to->steps = grown;
		to->room_steps = room;
	}
	to->steps[to->n_steps++] = (struct cw_modules_step){
		.step = whole_of(line, "step", -1),
		.n_bad = count_of(line, "nonfinite"),
		.n_bad_gradients = count_of(line, "nonfinite_gradients"),
		.scale = json_is_number(scale) ? json_number_value(scale) : NAN,
	};
	to->n_frames += count_of(line, "frames");
	return 0;
}

static int on_frame(struct reader *r, json_t *line)
{
	if (!json_is_array(json_object_get(line, "tensors")))
		return -EBADMSG;
	if (json_array_size(r->frames) == FRAMES_MAX)
		(void)json_array_remove(r->frames, 0);
	return json_array_append(r->frames, line) < 0 ? -ENOMEM : 0;
}

static int on_bad(struct reader *r, json_t *line)
{
	const json_t *tensors = json_object_get(line, "tensors");
	struct cw_tensor_lines_file *to = r->to;
	int64_t tensor = whole_of(line, "tensor", -1);
	struct cw_modules_event *grown;

	if (tensor < 0 || (uint64_t)tensor >= json_array_size(tensors))
		return -EBADMSG;
	if (to->n_events == EVENTS_MAX)
		return 0;
	grown = realloc(to->events, (to->n_events + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	to->events = grown;
	if (json_array_append(to->bad, line) < 0 || json_array_append(to->before, r->frames) < 0)
		return -ENOMEM;
	to->events[to->n_events++] = (struct cw_modules_event){
		.step = whole_of(line, "step", -1),
		.is_backward = strcmp(text_of(line, "phase"), "backward") == 0,
		.at = text_of(line, "at"), /* which is among the bad ones now */
	};
	json_decref(r->frames);
	r->frames = json_array();
	return r->frames ? 0 : -ENOMEM;
}

static int on_replicas(struct reader *r, json_t *line)
{
	const json_t *different = json_object_get(line, "different");

	r->to->n_compared++;
	if (!json_array_size(different) || json_array_size(r->to->replicas) == DIFFERENT_MAX)
		return 0;
	return json_array_append(r->to->replicas, line) < 0 ? -ENOMEM : 0;
}

static int on_note(struct reader *r, const json_t *line)
{
	json_t *text = json_object_get(line, "text");

	if (!json_is_string(text))
		return -EBADMSG;
	if (json_array_size(r->to->notes) == EVENTS_MAX)
		return 0;
	return json_array_append(r->to->notes, text) < 0 ? -ENOMEM : 0;
}

static int on_line(struct reader *r, json_t *line)
{
	const char *kind = text_of(line, "line");

	if (!r->has_head)
		return strcmp(kind, "head") == 0 ? on_head(r, line) : -EBADMSG;
	if (strcmp(kind, "step") == 0)
		return on_step(r, line);
	if (strcmp(kind, "frame") == 0)
		return on_frame(r, line);
	if (strcmp(kind, "bad") == 0)
		return on_bad(r, line);
	if (strcmp(kind, "replicas") == 0)
		return on_replicas(r, line);
	if (strcmp(kind, "note") == 0)
		return on_note(r, line);
	if (strcmp(kind, "end") == 0) {
		r->to->dropped = count_of(line, "dropped");
		r->to->unread = count_of(line, "unread");
		r->to->is_ended = true;
	}
	return 0; /* of a later version */
}

static int read_lines(struct reader *r, FILE *f, uint64_t *ret_line)
{
	_cleanup_(freep) char *text = malloc(LINE_MAX_BYTES);
	int result = text ? 0 : -ENOMEM;

	for (*ret_line = 1; result == 0; (*ret_line)++) {
		json_t *line;
		size_t n;

		if (!fgets(text, LINE_MAX_BYTES, f))
			return ferror(f) ? -EIO : r->has_head ? 0 : -EBADMSG;
		n = strlen(text);
		/* Half a line: of one that is written, or with NUL, or longer than there are. */
		if (n == 0 || text[n - 1] != '\n')
			return feof(f) && r->has_head ? 0 : -EBADMSG;
		line = cw_json_parse(text, n, JSON_REJECT_DUPLICATES, NULL);
		result = json_is_object(line) ? on_line(r, line) : -EBADMSG;
		json_decref(line);
		if (result < 0)
			return result;
	}
	return result;
}

static void file_close(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static int read_file(struct cw_tensor_lines_file *to, const char *path, struct cw_err *err)
{
	_cleanup_(file_close) FILE *f = fopen(path, "re");
	struct reader r = { .to = to, .frames = json_array() };
	uint64_t line = 0;
	int result;

	if (!f) {
		json_decref(r.frames);
		return cw_err_set(err, errno, "%s: %s", path, strerror(errno));
	}
	to->path = path;
	to->bad = json_array();
	to->before = json_array();
	to->replicas = json_array();
	to->notes = json_array();
	result = to->bad && to->before && to->replicas && to->notes && r.frames ? 0 : -ENOMEM;
	if (result == 0)
		result = read_lines(&r, f, &line);
	json_decref(r.frames);
	if (result == -EBADMSG)
		return cw_err_set(err, EBADMSG, "%s:%llu: no line of %s", path,
				  (unsigned long long)line, SCHEMA);
	return result < 0 ? cw_err_set(err, -result, "%s: %s", path, strerror(-result)) : 0;
}

bool cw_tensor_lines_is(const char *path)
{
	_cleanup_(file_close) FILE *f = fopen(path, "re");

	return f && fgetc(f) == '{';
}

static int refuse_doubles(const struct cw_tensor_lines *l, struct cw_err *err)
{
	for (uint32_t i = 0; i < l->n; i++)
		for (uint32_t k = 0; k < i && l->files[i].rank >= 0; k++)
			if (l->files[k].rank == l->files[i].rank)
				return cw_err_set(err, EEXIST, "%s and %s are both of rank %lld",
						  l->files[k].path, l->files[i].path,
						  (long long)l->files[i].rank);
	return 0;
}

int cw_tensor_lines_read(char *const *paths, uint32_t n, struct cw_tensor_lines *ret,
			 struct cw_err *err)
{
	struct cw_tensor_lines l = { .n = n };
	int r = 0;

	if (n == 0 || n > CW_TENSOR_LINES_RANKS)
		return cw_err_set(err, n ? E2BIG : EINVAL, "%u files", n);
	l.files = calloc(n, sizeof(*l.files));
	l.ranks = calloc(n, sizeof(*l.ranks));
	if (!l.files || !l.ranks)
		r = cw_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = read_file(&l.files[i], paths[i], err);
	if (r == 0)
		r = refuse_doubles(&l, err);
	for (uint32_t i = 0; i < n && r == 0; i++)
		l.ranks[i] = (struct cw_modules_rank){ .steps = l.files[i].steps,
						       .n_steps = l.files[i].n_steps,
						       .events = l.files[i].events,
						       .n_events = l.files[i].n_events };
	if (r < 0)
		cw_tensor_lines_fini(&l);
	else
		*ret = l;
	return r;
}

void cw_tensor_lines_fini(struct cw_tensor_lines *lines)
{
	for (uint32_t i = 0; lines->files && i < lines->n; i++) {
		struct cw_tensor_lines_file *f = &lines->files[i];

		free(f->steps);
		free(f->events);
		json_decref(f->bad);
		json_decref(f->before);
		json_decref(f->replicas);
		json_decref(f->notes);
	}
	free(lines->files);
	free(lines->ranks);
	*lines = (struct cw_tensor_lines){ .n = 0 };
}
