/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table of a summary's fields, in order, drives both writing and reading. A bundle may contain
 * thousands of summaries. So each summary is an array of values, and the names of the columns
 * appear only once.
 */
#include "numerics/doc/tensor_samples_doc.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/text.h"
#include "report/json_util.h"

enum column_type {
	TYPE_U8 = 0,
	TYPE_U32,
	TYPE_I32,
	TYPE_U64,
	TYPE_I64,
	TYPE_HEX,
	TYPE_F32,
	TYPE_F64
};

struct column {
	const char *name;
	enum column_type type;
	size_t offset;
};

#define COLUMN(type, field)                                                                        \
	{                                                                                          \
#field, type, offsetof(struct cw_numerics_sample, field)                           \
	}

/*
 * The columns of a summary. The call site, a text or null, follows them. We add columns at the end
 * and never change existing ones.
 */
static const struct column columns[] = {
	COLUMN(TYPE_U32, rank),     COLUMN(TYPE_U32, comm),         COLUMN(TYPE_U32, order),
	COLUMN(TYPE_U8, kind),      COLUMN(TYPE_U8, dtype),         COLUMN(TYPE_U8, redop),
	COLUMN(TYPE_U8, is_output), COLUMN(TYPE_I32, root_or_peer), COLUMN(TYPE_U64, seq),
	COLUMN(TYPE_I64, step),     COLUMN(TYPE_I64, at_ns),        COLUMN(TYPE_U64, elements),
	COLUMN(TYPE_U64, offered),  COLUMN(TYPE_U64, nans),         COLUMN(TYPE_U64, infs),
	COLUMN(TYPE_U64, zeros),    COLUMN(TYPE_F64, abs_max),      COLUMN(TYPE_F64, abs_min),
	COLUMN(TYPE_F64, mean),     COLUMN(TYPE_F64, l2),           COLUMN(TYPE_HEX, checksum),
	COLUMN(TYPE_F32, at_limit), COLUMN(TYPE_F32, denormal),     COLUMN(TYPE_U32, stride),
};

#define N_COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* ---- writing ---- */

/*
 * Makes a JSON value. JSON has neither NaN nor infinity, so NaN becomes null, and infinities
 * become texts.
 */
static json_t *real_doc(double v)
{
	if (isfinite(v))
		return json_real(v);
	if (isnan(v))
		return json_null();
	return json_string(v > 0 ? "Inf" : "-Inf");
}

static json_t *field_doc(const struct cw_numerics_sample *l, const struct column *c)
{
	const void *at = (const char *)l + c->offset;

	switch (c->type) {
	case TYPE_U8:
		return json_integer(*(const uint8_t *)at);
	case TYPE_U32:
		return json_integer(*(const uint32_t *)at);
	case TYPE_I32:
		return json_integer(*(const int32_t *)at);
	case TYPE_U64:
		return cw_json_u64(*(const uint64_t *)at);
	case TYPE_I64:
		return json_integer(*(const int64_t *)at);
	case TYPE_HEX:
		return cw_json_hex(*(const uint64_t *)at);
	case TYPE_F32:
		return real_doc((double)*(const float *)at);
	default:
		return real_doc(*(const double *)at);
	}
}

static json_t *site_doc(const char *site)
{
	char text[CW_TENSOR_SAMPLES_DOC_SITE_BYTES];

	if (!site)
		return json_null();
	(void)snprintf(text, sizeof(text), "%s", site);
	return cw_json_text(text);
}

static json_t *sample_doc(const struct cw_numerics_sample *l)
{
	json_t *doc = json_array();
	int bad = 0;

	for (size_t i = 0; i < N_COLUMNS; i++)
		bad |= json_array_append_new(doc, field_doc(l, &columns[i]));
	bad |= json_array_append_new(doc, site_doc(l->site));
	return cw_json_finish(doc, bad);
}

static json_t *comm_doc(const struct cw_numerics_comm *c)
{
	return cw_json_object((struct cw_json_member[]){
		{ "id", cw_json_hex(c->id) },
		{ "instance", json_integer(c->instance) },
		{ "name", cw_json_text(c->name ? c->name : "") },
		{ "nranks", json_integer(c->nranks) },
		{ "counted", json_boolean(!c->is_uncounted) },
		{ NULL },
	});
}

static json_t *rank_doc(const struct cw_numerics_rank *r, const struct cw_tensor_samples_source *s)
{
	return cw_json_object((struct cw_json_member[]){
		{ "rank", json_integer(r->rank) },
		{ "pid", json_integer(s->pid) },
		{ "world_size", json_integer(s->world_size) },
		{ "calls", cw_json_u64(s->n_ops) },
		{ "tensors", cw_json_u64(s->n_samples) },
		{ "kept", cw_json_u64(s->n_kept) },
		{ "not_collected", cw_json_u64(s->n_dropped) },
		{ "whole", json_boolean(r->is_whole) },
		{ "lives", json_boolean(s->lives) },
		{ "created_ns", json_integer(s->created_wall_ns) },
		{ "ended_ns", json_integer(s->ended_wall_ns) },
		{ "device_model", cw_json_text(r->device ? r->device : "") },
		{ "cuda_driver_version", json_integer(r->cuda_driver) },
		{ "nccl_version", json_integer(r->nccl) },
		{ NULL },
	});
}

static json_t *columns_doc(void)
{
	json_t *doc = json_array();
	int bad = 0;

	for (size_t i = 0; i < N_COLUMNS; i++)
		bad |= json_array_append_new(doc, json_string(columns[i].name));
	bad |= json_array_append_new(doc, json_string("site"));
	return cw_json_finish(doc, bad);
}

json_t *cw_tensor_samples_doc(const struct cw_tensor_samples_head *head,
			      const struct cw_numerics_job *job,
			      const struct cw_tensor_samples_source *sources)
{
	json_t *doc, *ranks = json_array(), *comms = json_array();
	json_t *samples = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < job->n_ranks && !bad; i++)
		bad |= json_array_append_new(ranks, rank_doc(&job->ranks[i], &sources[i]));
	for (uint32_t i = 0; i < job->n_comms && !bad; i++)
		bad |= json_array_append_new(comms, comm_doc(&job->comms[i]));
	for (uint32_t i = 0; i < job->n_samples && !bad; i++)
		bad |= json_array_append_new(samples, sample_doc(&job->samples[i]));
	doc = cw_json_object((struct cw_json_member[]){
		{ "schema", json_string(CW_TENSOR_SAMPLES_DOC_SCHEMA) },
		{ "node", cw_json_text(head->node) },
		{ "taken", cw_json_wall(head->taken_wall_ns) },
		{ "ranks_omitted", json_integer(head->n_omitted) },
		{ "ranks", ranks },
		{ "comms", comms },
		{ "columns", columns_doc() },
		{ "samples", samples },
		{ NULL },
	});
	return cw_json_finish(doc, bad);
}

json_t *cw_tensor_samples_doc_of_none(const struct cw_tensor_samples_head *head,
				      const json_t *silent, unsigned count, const char *why)
{
	const struct cw_numerics_job none = { .n_samples = 0 };
	json_t *doc = cw_tensor_samples_doc(head, &none, NULL);
	int bad = doc ? 0 : -1;

	bad |= json_object_set_new(doc, "silent", silent ? json_deep_copy(silent) : json_array());
	bad |= json_object_set_new(doc, "silent_count", json_integer(count));
	if (why)
		bad |= json_object_set_new(doc, "why", json_string(why));
	return cw_json_finish(doc, bad);
}

/* ---- reading ---- */

static int bad_doc(struct cw_err *err, const char *what)
{
	return cw_err_set(err, EBADMSG, "the tensor summaries have %s", what);
}

/* Reads an integer from min to max. Returns false for any other value. */
static bool read_int(const json_t *v, json_int_t min, json_int_t max, json_int_t *ret)
{
	if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max)
		return false;
	*ret = json_integer_value(v);
	return true;
}

static bool read_real(const json_t *v, double *ret)
{
	if (json_is_number(v))
		*ret = json_number_value(v);
	else if (json_is_null(v))
		*ret = NAN;
	else if (json_is_string(v) && strcmp(json_string_value(v), "Inf") == 0)
		*ret = INFINITY;
	else if (json_is_string(v) && strcmp(json_string_value(v), "-Inf") == 0)
		*ret = -INFINITY;
	else
		return false;
	return true;
}

static bool read_share(const json_t *v, float *ret)
{
	double share;

	if (!read_real(v, &share) || !(share >= 0 && share <= 1))
		return false;
	*ret = (float)share;
	return true;
}

static bool read_field(const json_t *v, const struct column *c, struct cw_numerics_sample *l)
{
	void *at = (char *)l + c->offset;
	json_int_t n = 0;
	bool is_read;

	switch (c->type) {
	case TYPE_U8:
		is_read = read_int(v, 0, UINT8_MAX, &n);
		*(uint8_t *)at = (uint8_t)n;
		return is_read;
	case TYPE_U32:
		is_read = read_int(v, 0, UINT32_MAX, &n);
		*(uint32_t *)at = (uint32_t)n;
		return is_read;
	case TYPE_I32:
		is_read = read_int(v, INT32_MIN, INT32_MAX, &n);
		*(int32_t *)at = (int32_t)n;
		return is_read;
	case TYPE_I64:
		is_read = read_int(v, INT64_MIN, INT64_MAX, &n);
		*(int64_t *)at = n;
		return is_read;
	case TYPE_U64:
	case TYPE_HEX:
		return cw_json_read_u64(v, at);
	case TYPE_F32:
		return read_share(v, at);
	default:
		return read_real(v, at);
	}
}

static char *text_of(struct cw_arena *arena, const char *text)
{
	char *copy = cw_arena_strdup(arena, text);

	if (copy)
		cw_text_sanitise_line(copy);
	return copy;
}

static int read_sample(const json_t *doc, struct cw_arena *arena, const struct cw_numerics_job *job,
		       struct cw_numerics_sample *ret, struct cw_err *err)
{
	const json_t *site = json_array_get(doc, N_COLUMNS);

	for (size_t i = 0; i < N_COLUMNS; i++)
		if (!read_field(json_array_get(doc, i), &columns[i], ret))
			return cw_err_set(err, EBADMSG, "a tensor summary has no %s",
					  columns[i].name);
	if (ret->rank >= job->n_ranks || ret->comm >= job->n_comms)
		return bad_doc(err, "one of an unknown rank or communicator");
	if (ret->stride & (ret->stride - 1) || ret->is_output > 1)
		return bad_doc(err, "an invalid one");
	if (!json_is_string(site))
		return 0;
	ret->site = text_of(arena, json_string_value(site));
	return ret->site ? 0 : -ENOMEM;
}

static int read_samples(const json_t *list, struct cw_arena *arena, struct cw_numerics_job *job,
			struct cw_err *err)
{
	const json_t *doc;
	size_t i;

	job->samples = cw_arena_new_array(arena, struct cw_numerics_sample, json_array_size(list));
	if (!job->samples)
		return -ENOMEM;
	json_array_foreach (list, i, doc) {
		int r = read_sample(doc, arena, job, &job->samples[i], err);

		if (r < 0)
			return r;
	}
	job->n_samples = (uint32_t)json_array_size(list);
	return 0;
}

static int read_comms(const json_t *list, struct cw_arena *arena, struct cw_numerics_job *job,
		      struct cw_err *err)
{
	struct cw_numerics_comm *comms;
	json_int_t nranks, instance;
	const json_t *doc;
	size_t i;

	comms = cw_arena_new_array(arena, struct cw_numerics_comm, json_array_size(list));
	if (!comms)
		return -ENOMEM;
	json_array_foreach (list, i, doc) {
		if (!cw_json_read_u64(json_object_get(doc, "id"), &comms[i].id) ||
		    !read_int(json_object_get(doc, "nranks"), 0, UINT32_MAX, &nranks) ||
		    !read_int(json_object_get(doc, "instance"), 0, UINT32_MAX, &instance))
			return bad_doc(err, "an invalid communicator");
		comms[i].nranks = (uint32_t)nranks;
		comms[i].instance = (uint32_t)instance;
		comms[i].is_uncounted = json_is_false(json_object_get(doc, "counted"));
		comms[i].name = text_of(arena, cw_json_str(doc, "name", ""));
		if (!comms[i].name)
			return -ENOMEM;
	}
	job->comms = comms;
	job->n_comms = (uint32_t)json_array_size(list);
	return 0;
}

static bool read_source(const json_t *doc, struct cw_tensor_samples_source *ret)
{
	json_int_t rank, pid, world_size, created, ended;

	if (!read_int(json_object_get(doc, "rank"), -1, INT32_MAX, &rank) ||
	    !read_int(json_object_get(doc, "pid"), 0, INT32_MAX, &pid) ||
	    !read_int(json_object_get(doc, "world_size"), -1, INT32_MAX, &world_size) ||
	    !json_is_boolean(json_object_get(doc, "lives")) ||
	    !read_int(json_object_get(doc, "created_ns"), 0, INT64_MAX, &created) ||
	    !read_int(json_object_get(doc, "ended_ns"), 0, INT64_MAX, &ended))
		return false;
	ret->rank = (int32_t)rank;
	ret->pid = (int32_t)pid;
	ret->world_size = (int32_t)world_size;
	ret->lives = json_is_true(json_object_get(doc, "lives"));
	ret->created_wall_ns = created;
	ret->ended_wall_ns = ended;
	return cw_json_read_u64(json_object_get(doc, "calls"), &ret->n_ops) &&
	       cw_json_read_u64(json_object_get(doc, "tensors"), &ret->n_samples) &&
	       cw_json_read_u64(json_object_get(doc, "kept"), &ret->n_kept) &&
	       cw_json_read_u64(json_object_get(doc, "not_collected"), &ret->n_dropped);
}

/*
 * Reads the rank's platform. A missing or odd value counts as unknown. Returns false if out of
 * memory.
 */
static bool read_rank(const json_t *doc, struct cw_arena *arena, struct cw_numerics_rank *ret)
{
	char model[CW_TENSOR_SAMPLES_DOC_MODEL_BYTES];
	json_int_t n;

	ret->is_whole = json_is_true(json_object_get(doc, "whole"));
	if (read_int(json_object_get(doc, "cuda_driver_version"), 0, UINT32_MAX, &n))
		ret->cuda_driver = (uint32_t)n;
	if (read_int(json_object_get(doc, "nccl_version"), 0, UINT32_MAX, &n))
		ret->nccl = (uint32_t)n;
	(void)snprintf(model, sizeof(model), "%s", cw_json_str(doc, "device_model", ""));
	ret->device = text_of(arena, model);
	return ret->device;
}

static int read_ranks(const json_t *list, struct cw_arena *arena, struct cw_numerics_job *job,
		      struct cw_tensor_samples_source **ret_sources, struct cw_err *err)
{
	size_t n = json_array_size(list), i;
	struct cw_tensor_samples_source *sources =
		cw_arena_new_array(arena, struct cw_tensor_samples_source, n);
	struct cw_numerics_rank *ranks = cw_arena_new_array(arena, struct cw_numerics_rank, n);
	const json_t *doc;

	if (!sources || !ranks)
		return -ENOMEM;
	json_array_foreach (list, i, doc) {
		if (!read_source(doc, &sources[i]))
			return bad_doc(err, "an invalid rank");
		ranks[i].rank = sources[i].rank;
		if (!read_rank(doc, arena, &ranks[i]))
			return -ENOMEM;
	}
	job->ranks = ranks;
	job->n_ranks = (uint32_t)n;
	*ret_sources = sources;
	return 0;
}

int cw_tensor_samples_doc_read(const json_t *doc, struct cw_arena *arena,
			       struct cw_numerics_job *ret,
			       struct cw_tensor_samples_source **ret_sources, struct cw_err *err)
{
	const json_t *ranks = json_object_get(doc, "ranks"), *comms = json_object_get(doc, "comms");
	const json_t *samples = json_object_get(doc, "samples");
	struct cw_tensor_samples_source *sources = NULL;
	struct cw_numerics_job job = { .n_samples = 0 };
	int r;

	if (strcmp(cw_json_str(doc, "schema", ""), CW_TENSOR_SAMPLES_DOC_SCHEMA) != 0 ||
	    !json_is_array(ranks) || !json_is_array(comms) || !json_is_array(samples))
		return cw_err_set(err, EBADMSG,
				  "the tensor summaries are no " CW_TENSOR_SAMPLES_DOC_SCHEMA);
	if (json_array_size(ranks) > CW_TENSOR_SAMPLES_DOC_MAX_RANKS ||
	    json_array_size(comms) > CW_TENSOR_SAMPLES_DOC_MAX_COMMS ||
	    json_array_size(samples) > CW_TENSOR_SAMPLES_DOC_MAX)
		return cw_err_set(err, E2BIG, "there are too many tensor summaries");
	r = read_ranks(ranks, arena, &job, &sources, err);
	if (r == 0)
		r = read_comms(comms, arena, &job, err);
	if (r == 0)
		r = read_samples(samples, arena, &job, err);
	if (r < 0)
		return r;
	*ret = job;
	*ret_sources = sources;
	return 0;
}

uint32_t cw_tensor_samples_doc_omitted(const json_t *doc)
{
	json_int_t n = 0;

	return read_int(json_object_get(doc, "ranks_omitted"), 0, UINT32_MAX, &n) ? (uint32_t)n : 0;
}
