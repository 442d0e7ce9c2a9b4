/* SPDX-License-Identifier: Apache-2.0 */
#include "numerics/read/tensor_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "numerics/read/tensor_file.h"

#define STEPS_MAX 10000000u
/* Limits on a file. The writer makes at most 8 events of 21 frames. */
#define EVENTS_MAX 64u
#define FRAMES_MAX 1024u
#define DIFFERENT_MAX 64u
#define DENIED_MAX 256u
/*
 * Limit on the lines about buckets. The writer makes at most 16 lines, and a line has at most a
 * megabyte.
 */
#define BUCKET_LINES_MAX 32u

/*
 * Memory limit for all files together. A line takes 20 to 30 times its length in memory. A file of
 * our writer has at most 170 frames to keep, of some kilobytes each.
 */
#define KEPT_BYTES_MAX ((size_t)256 << 20)

struct reader {
	struct cw_tensor_lines_file *to;
	json_t *frames;        /* frames since the last event */
	size_t frames_bytes;   /* memory of these frames in bytes; part of *kept_bytes */
	size_t *kept_bytes;    /* memory in bytes that all files together keep */
	uint64_t n_over_limit; /* number of frames without room */
};

/*
 * Estimates the memory of the value and rounds up. It includes jansson's structs, the heap's
 * headers and half-full arrays.
 */
static size_t memory_of(const json_t *value)
{
	size_t bytes = 32, i;
	const char *key;
	json_t *each;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		bytes = 512;
		/* The macro takes no pointer to const, but changes nothing. */
		json_object_foreach ((json_t *)value, key, each)
			bytes += 96 + strlen(key) + memory_of(each);
		return bytes;
	case JSON_ARRAY:
		bytes = 192;
		json_array_foreach (value, i, each)
			bytes += 16 + memory_of(each);
		return bytes;
	case JSON_STRING:
		return 64 + json_string_length(value);
	default:
		return bytes;
	}
}

/*
 * Appends the line to an array that we keep. Returns 0 or -errno; -E2BIG: they take too much
 * memory.
 */
static int keep(struct reader *r, json_t *array, json_t *line)
{
	size_t bytes = memory_of(line);

	if (*r->kept_bytes + bytes > KEPT_BYTES_MAX)
		return -E2BIG;
	*r->kept_bytes += bytes;
	return json_array_append(array, line) < 0 ? -ENOMEM : 0;
}

static void drop_first_frame(struct reader *r)
{
	size_t bytes = memory_of(json_array_get(r->frames, 0));

	r->frames_bytes -= bytes;
	*r->kept_bytes -= bytes;
	(void)json_array_remove(r->frames, 0);
}

static int on_head(struct reader *r, const json_t *line)
{
	json_t *each;
	size_t i;

	json_array_foreach (json_object_get(line, "denied_modules"), i, each) {
		if (!json_is_string(each))
			return -EBADMSG;
		if (i < DENIED_MAX && json_array_append(r->to->denied, each) < 0)
			return -ENOMEM;
	}
	r->to->rank = cw_tensor_line_number(line, "rank", -1);
	r->to->world_size = cw_tensor_line_number(line, "world_size", -1);
	return 0;
}

/* Returns the last trace if it is of this step, or else a new one. NULL = out of memory. */
static struct cw_tensor_lines_trace *trace_of(struct cw_tensor_lines_file *to, int64_t step)
{
	uint32_t n = to->n_traces;
	struct cw_tensor_lines_trace *grown;

	if (n && to->traces[n - 1].step == step)
		return &to->traces[n - 1];
	if (n >= STEPS_MAX)
		return NULL;
	if (!(n & (n - 1))) {
		grown = realloc(to->traces, (n ? 2 * (size_t)n : 1) * sizeof(*grown));
		if (!grown)
			return NULL;
		to->traces = grown;
	}
	to->traces[n] = (struct cw_tensor_lines_trace){ .step = step };
	return &to->traces[to->n_traces++];
}

static int on_trace(struct reader *r, const json_t *line)
{
	struct cw_tensor_lines_trace *t;

	if (!json_is_array(json_object_get(line, "tensors")))
		return -EBADMSG;
	if (r->to->n_traces >= STEPS_MAX)
		return -E2BIG;
	t = trace_of(r->to, cw_tensor_line_number(line, "step", -1));
	if (!t)
		return -ENOMEM;
	t->n_calls++;
	return 0;
}

static int on_stop(struct reader *r, json_t *line)
{
	if (!json_is_array(json_object_get(line, "lines")))
		return -EBADMSG;
	if (json_array_size(r->to->stops) == EVENTS_MAX)
		return 0;
	return keep(r, r->to->stops, line);
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
		.step = cw_tensor_line_number(line, "step", -1),
		.n_bad = cw_tensor_line_count(line, "nonfinite"),
		.n_bad_gradients = cw_tensor_line_count(line, "nonfinite_gradients"),
		.scale = json_is_number(scale) ? json_number_value(scale) : NAN,
	};
	to->n_frames += cw_tensor_line_count(line, "frames");
	if (json_object_get(line, "traced")) {
		struct cw_tensor_lines_trace *t =
			trace_of(to, cw_tensor_line_number(line, "step", -1));

		if (!t)
			return -ENOMEM;
		t->n_lost = cw_tensor_line_count(line, "lost");
	}
	return 0;
}

static int on_frame(struct reader *r, json_t *line)
{
	size_t bytes;

	if (!json_is_array(json_object_get(line, "tensors")))
		return -EBADMSG;
	if (json_array_size(r->frames) == FRAMES_MAX)
		drop_first_frame(r);
	bytes = memory_of(line);
	/*
	 * If memory is short, we drop the oldest frames, because those right before an event tell
	 * the most.
	 */
	while (*r->kept_bytes + bytes > KEPT_BYTES_MAX && json_array_size(r->frames)) {
		drop_first_frame(r);
		r->n_over_limit++;
	}
	if (*r->kept_bytes + bytes > KEPT_BYTES_MAX) {
		r->n_over_limit++;
		return 0;
	}
	r->frames_bytes += bytes;
	return keep(r, r->frames, line);
}

/*
 * True if the rank received the bad number. In JSON, NaN and infinity are texts, so each number is
 * finite.
 */
static bool is_received(const json_t *line, size_t bad)
{
	const json_t *tensors = json_object_get(line, "tensors"), *each;
	size_t i;

	if (json_is_true(json_object_get(line, "inputs_finite")) ||
	    strcmp(cw_tensor_line_text(json_array_get(tensors, bad), "side"), "output") != 0)
		return false;
	json_array_foreach (tensors, i, each)
		if (strcmp(cw_tensor_line_text(each, "side"), "output") != 0 &&
		    !json_is_number(json_object_get(each, "absmax")))
			return false;
	return true;
}

static int on_bad(struct reader *r, json_t *line)
{
	const json_t *tensors = json_object_get(line, "tensors");
	struct cw_tensor_lines_file *to = r->to;
	int64_t tensor = cw_tensor_line_number(line, "tensor", -1);
	struct cw_modules_event *grown;
	int result;

	if (tensor < 0 || (uint64_t)tensor >= json_array_size(tensors))
		return -EBADMSG;
	if (to->n_events == EVENTS_MAX)
		return 0;
	grown = realloc(to->events, (to->n_events + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	to->events = grown;
	result = keep(r, to->bad, line);
	if (result == 0 && json_array_append(to->before, r->frames) < 0)
		result = -ENOMEM;
	if (result < 0)
		return result;
	r->frames_bytes = 0;
	to->events[to->n_events++] = (struct cw_modules_event){
		.step = cw_tensor_line_number(line, "step", -1),
		.is_backward = strcmp(cw_tensor_line_text(line, "phase"), "backward") == 0,
		.is_received = is_received(line, (size_t)tensor),
		/* borrowed from the line, which the array `bad` now owns */
		.at = cw_tensor_line_text(line, "at"),
	};
	json_decref(r->frames);
	r->frames = json_array();
	return r->frames ? 0 : -ENOMEM;
}

static bool is_bucket(const json_t *bucket)
{
	const json_t *elements = json_object_get(bucket, "elements"), *name;
	const json_t *parameters = json_object_get(bucket, "parameters");
	size_t i;

	if (!json_is_integer(elements) || json_integer_value(elements) <= 0 ||
	    json_array_size(parameters) == 0)
		return false;
	json_array_foreach (parameters, i, name)
		if (!json_is_string(name))
			return false;
	return true;
}

static int on_buckets(struct reader *r, json_t *line)
{
	const json_t *buckets = json_object_get(line, "buckets"), *each;
	size_t i;

	if (!json_is_array(buckets))
		return -EBADMSG;
	json_array_foreach (buckets, i, each)
		if (!is_bucket(each))
			return 0; /* the rest of the file is still useful */
	if (json_array_size(r->to->buckets) == BUCKET_LINES_MAX) {
		*r->kept_bytes -= memory_of(json_array_get(r->to->buckets, 0));
		(void)json_array_remove(r->to->buckets, 0);
	}
	return keep(r, r->to->buckets, line);
}

static int on_replicas(struct reader *r, json_t *line)
{
	const json_t *different = json_object_get(line, "different");

	r->to->n_compared++;
	if (!json_array_size(different) || json_array_size(r->to->replicas) == DIFFERENT_MAX)
		return 0;
	return keep(r, r->to->replicas, line);
}

static int on_note(struct reader *r, const json_t *line)
{
	json_t *text = json_object_get(line, "text");

	if (!json_is_string(text))
		return -EBADMSG;
	if (json_array_size(r->to->notes) == EVENTS_MAX)
		return 0;
	return keep(r, r->to->notes, text);
}

static int on_line(const char *kind, json_t *line, void *user)
{
	struct reader *r = user;

	if (strcmp(kind, "head") == 0)
		return on_head(r, line);
	if (strcmp(kind, "step") == 0)
		return on_step(r, line);
	if (strcmp(kind, "frame") == 0)
		return on_frame(r, line);
	if (strcmp(kind, "bad") == 0)
		return on_bad(r, line);
	if (strcmp(kind, "replicas") == 0)
		return on_replicas(r, line);
	if (strcmp(kind, "buckets") == 0)
		return on_buckets(r, line);
	if (strcmp(kind, "note") == 0)
		return on_note(r, line);
	if (strcmp(kind, "trace") == 0)
		return on_trace(r, line);
	if (strcmp(kind, "stop") == 0)
		return on_stop(r, line);
	if (strcmp(kind, "end") == 0) {
		r->to->dropped = cw_tensor_line_count(line, "dropped");
		r->to->unread = cw_tensor_line_count(line, "unread");
		r->to->is_ended = true;
	}
	return 0; /* the line is from a newer version */
}

static int note_over_limit(const struct reader *r)
{
	if (!r->n_over_limit)
		return 0;
	return json_array_append_new(r->to->notes,
				     json_sprintf("frames omitted before bad values: %llu; all of "
						  "them take more than %zu MiB of memory",
						  (unsigned long long)r->n_over_limit,
						  KEPT_BYTES_MAX >> 20)) < 0
		       ? -ENOMEM
		       : 0;
}

static int read_file(struct cw_tensor_lines_file *to, const char *path, size_t *kept_bytes,
		     struct cw_err *err)
{
	struct reader r = { .to = to, .frames = json_array(), .kept_bytes = kept_bytes };
	int result;

	to->path = path;
	to->bad = json_array();
	to->before = json_array();
	to->replicas = json_array();
	to->notes = json_array();
	to->denied = json_array();
	to->stops = json_array();
	to->buckets = json_array();
	if (to->bad && to->before && to->replicas && to->notes && to->denied && to->stops &&
	    to->buckets && r.frames)
		result = cw_tensor_file_each(path, on_line, &r, err);
	else
		result = cw_err_set(err, ENOMEM, "%s: %s", path, strerror(ENOMEM));
	if (result == -E2BIG)
		(void)cw_err_set(err, E2BIG,
				 "%s: needs more than %zu MiB of memory; give fewer files", path,
				 KEPT_BYTES_MAX >> 20);
	if (result == 0 && note_over_limit(&r) < 0)
		result = cw_err_set(err, ENOMEM, "%s: %s", path, strerror(ENOMEM));
	*kept_bytes -= r.frames_bytes;
	json_decref(r.frames);
	return result;
}

bool cw_tensor_lines_is(const char *path)
{
	_cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	char first;

	/* We do not inspect pipes, because we cannot put the first byte back. */
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, &first, 1) == 1 &&
	       first == '{';
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
	size_t kept_bytes = 0;
	int r = 0;

	if (n == 0 || n > CW_TENSOR_LINES_RANKS)
		return cw_err_set(err, n ? E2BIG : EINVAL, "%u files", n);
	l.files = calloc(n, sizeof(*l.files));
	l.ranks = calloc(n, sizeof(*l.ranks));
	if (!l.files || !l.ranks)
		r = cw_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = read_file(&l.files[i], paths[i], &kept_bytes, err);
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
		json_decref(f->denied);
		json_decref(f->stops);
		json_decref(f->buckets);
		free(f->traces);
	}
	free(lines->files);
	free(lines->ranks);
	*lines = (struct cw_tensor_lines){ .n = 0 };
}
