/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each group of facts has one table. The writer and the reader both walk these tables, so they know
 * the same keys.
 */
#include "report/doc/incident_facts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "model/cause.h"
#include "model/facts.h"
#include "model/op.h"
#include "model/verdict_types.h"
#include "report/doc/said_doc.h"
#include "report/json_util.h"

enum form {
	FORM_TEXT,
	FORM_SET,
	FORM_I32,
	FORM_U32,
	FORM_U64,
	FORM_REAL,
	FORM_BOOL,
	FORM_ID,
	FORM_RANK,
	FORM_SEQ,
	FORM_UID,
	FORM_TIME,
	FORM_NAME,
	FORM_NAMES,
	FORM_TEXTS,
	FORM_SAID,
	FORM_SAIDS,
	FORM_GROUP,
	FORM_LIST,
};

enum presence {
	ALWAYS,
	NULLABLE,
	OPTIONAL,
};

struct group;

struct fact {
	const char *key;
	uint8_t form, presence;
	size_t at, at_n; /* offset of the field, and of the number of a list's elements */
	int (*from_name)(const char *name);
	const char *(*name_of)(unsigned number);
	const struct group *group; /* for GROUP and LIST: the group of facts */
};

struct group {
	const struct fact *facts;
	uint32_t n;
	size_t size; /* size of the group's struct */
};

/* ---- tables ---- */

static int end_by_from_name(const char *name)
{
	return (int)cw_end_by_from_name(name);
}

static int host_wait_from_name(const char *name)
{
	return (int)cw_host_wait_from_name(name);
}

static int cause_kind_from_name(const char *name)
{
	return (int)cw_cause_kind_from_name(name);
}

#define FROM_CLASS cw_class_from_name
#define FROM_DETAIL cw_detail_from_name
#define FROM_CONFIDENCE cw_confidence_from_name
#define FROM_HANG cw_hang_from_name
#define FROM_SEVERITY cw_severity_from_name
#define FROM_CLOSED_AS cw_closed_as_from_name
#define FROM_OP_KIND cw_op_kind_from_name
#define FROM_DTYPE cw_dtype_from_name
#define FROM_REDOP cw_redop_from_name
#define FROM_HOST_WAIT host_wait_from_name
#define FROM_END_BY end_by_from_name
#define FROM_CAUSE_KIND cause_kind_from_name
#define FROM_FIRST_REASON cw_first_reason_from_name
#define FROM_BLIND_SPOT cw_blind_spot_from_name
#define NAME_OF_BLIND_SPOT cw_blind_spot_name

/* clang-format off */
#define FACT(form, type, name, key, presence, ...) ROW_##form(form, type, name, key, presence)
#define ROW(form, name, key, presence, ...) \
	{ key, FORM_##form, presence, offsetof(STRUCT, name), __VA_ARGS__ },
#define ROW_TEXT(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_SET(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_I32(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_U32(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_U64(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_REAL(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_BOOL(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_ID(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_RANK(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_SEQ(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_UID(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_TIME(form, type, name, key, presence) ROW(form, name##_wall_ns, key, presence)
#define ROW_NAME(form, type, name, key, presence) ROW(form, name, key, presence, .from_name = FROM_##type)
#define ROW_NAMES(form, type, name, key, presence) \
	ROW(form, name, key, presence, .from_name = FROM_##type, .name_of = NAME_OF_##type)
#define ROW_TEXTS(form, type, name, key, presence) ROW(form, name, key, presence, .at_n = offsetof(STRUCT, n_##name))
#define ROW_SAID(form, type, name, key, presence) ROW(form, name, key, presence)
#define ROW_SAIDS(form, type, name, key, presence) ROW(form, name, key, presence, .at_n = offsetof(STRUCT, n_##name))
#define ROW_GROUP(form, type, name, key, presence) ROW(form, name, key, presence, .group = &type##_group)
#define ROW_LIST(form, type, name, key, presence) \
	ROW(form, name, key, presence, .at_n = offsetof(STRUCT, n_##name), .group = &type##_group)
#define TABLE(name, FACTS) \
	static const struct fact name##_facts[] = { FACTS(FACT) }; \
	static const struct group name##_group = { \
		name##_facts, sizeof(name##_facts) / sizeof(*name##_facts), sizeof(STRUCT) \
	};
/* clang-format on */

#define STRUCT struct cw_incident_call
TABLE(call, CW_INCIDENT_CALL_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_process
TABLE(process, CW_INCIDENT_PROCESS_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_culprit
TABLE(culprit, CW_INCIDENT_CULPRIT_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_victims
TABLE(victims, CW_INCIDENT_VICTIMS_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_side
TABLE(side, CW_INCIDENT_SIDE_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_link
TABLE(link, CW_INCIDENT_LINK_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_where
TABLE(where, CW_INCIDENT_WHERE_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_wait
TABLE(wait, CW_INCIDENT_WAIT_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_alternative
TABLE(alternative, CW_INCIDENT_ALTERNATIVE_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_known_hang
TABLE(known_hang, CW_INCIDENT_KNOWN_HANG_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_nccl_error
TABLE(nccl_error, CW_INCIDENT_NCCL_ERROR_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_nonfinite_input
TABLE(nonfinite_input, CW_INCIDENT_NONFINITE_INPUT_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_stack_reading
TABLE(stack_reading, CW_INCIDENT_STACK_READING_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_earlier_stack
TABLE(earlier_stack, CW_INCIDENT_EARLIER_STACK_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_last_known
TABLE(last_known, CW_INCIDENT_LAST_KNOWN_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_coverage
TABLE(coverage, CW_INCIDENT_COVERAGE_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_times
TABLE(times, CW_INCIDENT_TIMES_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_timeout
TABLE(timeout, CW_INCIDENT_TIMEOUT_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_objection
TABLE(objection, CW_INCIDENT_OBJECTION_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_first
TABLE(first, CW_INCIDENT_FIRST_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_end
TABLE(end, CW_INCIDENT_END_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_ended
TABLE(ended, CW_INCIDENT_ENDED_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_last_wait
TABLE(last_wait, CW_INCIDENT_LAST_WAIT_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_last_call
TABLE(last_call, CW_INCIDENT_LAST_CALL_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_open_call
TABLE(open_call, CW_INCIDENT_OPEN_CALL_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_last_calls
TABLE(last_calls, CW_INCIDENT_LAST_CALLS_FACTS)
#undef STRUCT
#define STRUCT struct cw_incident_facts
TABLE(facts, CW_INCIDENT_FACTS)
#undef STRUCT

static void name_said(const char *key, char buf[static 64])
{
	(void)snprintf(buf, 64, "%s" CW_SAID_SUFFIX, key);
}

/* ---- writing ---- */

static json_t *write_group(const struct group *group, const void *from);

static json_t *write_texts(const char *const *texts, uint32_t n)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, cw_json_text(texts[i]));
	return cw_json_finish(list, bad);
}

/*
 * Returns a time as text. Returns null for a time in the last months of the clock's range, because
 * we could not read back its text.
 */
static json_t *write_time(int64_t wall_ns)
{
	char text[32];

	return cw_wall_parse(cw_wall_format(wall_ns, text)) < 0 ? json_null()
								: cw_json_wall(wall_ns);
}

static json_t *write_names(const struct fact *fact, uint32_t bits)
{
	json_t *list = json_array();
	int bad = 0;

	for (unsigned i = 0; i < 30; i++)
		if (bits & 1u << i)
			bad |= json_array_append_new(list, json_string(fact->name_of(i)));
	return cw_json_finish(list, bad);
}

static json_t *write_list(const struct group *group, const char *items, uint32_t n)
{
	json_t *list = json_array();
	int bad = 0;

	for (uint32_t i = 0; i < n; i++)
		bad |= json_array_append_new(list, write_group(group, items + i * group->size));
	return cw_json_finish(list, bad);
}

/*
 * Sets the sayings first and the text last, as cw_said_set() does. Returns 0, or -1 if out of
 * memory.
 */
static int write_said(json_t *doc, const char *key, const struct cw_incident_sentence *sentence)
{
	char said_key[64];

	name_said(key, said_key);
	if (json_object_set_new(doc, said_key, cw_said_doc(&sentence->said)) < 0)
		return -1;
	return json_object_set_new(doc, key, cw_json_text(sentence->text));
}

static int write_saids(json_t *doc, const char *key, const struct cw_incident_sentence *sentences,
		       uint32_t n)
{
	json_t *texts = json_array(), *said = json_array();
	char said_key[64];
	int bad = 0;

	name_said(key, said_key);
	for (uint32_t i = 0; i < n; i++) {
		bad |= json_array_append_new(texts, cw_json_text(sentences[i].text));
		bad |= json_array_append_new(said, cw_said_doc(&sentences[i].said));
	}
	bad |= json_object_set_new(doc, key, texts);
	bad |= json_object_set_new(doc, said_key, said);
	return bad;
}

static bool is_unset(const struct fact *fact, const void *at)
{
	switch (fact->form) {
	case FORM_I32:
		return *(const int32_t *)at == 0;
	case FORM_U32:
		return *(const uint32_t *)at == 0;
	case FORM_U64:
	case FORM_ID:
		return *(const uint64_t *)at == 0;
	case FORM_REAL:
		return *(const double *)at == 0;
	case FORM_BOOL:
		return !*(const bool *)at;
	case FORM_RANK:
		return *(const int32_t *)at == -1;
	case FORM_SEQ:
		return *(const uint64_t *)at == CW_INCIDENT_NO_SEQ;
	case FORM_UID:
		return *(const int64_t *)at == -1;
	case FORM_TIME:
		return *(const int64_t *)at == 0;
	case FORM_NAME: {
		const struct cw_named *named = at;

		return !named->text || !*named->text;
	}
	case FORM_TEXT:
	case FORM_SET: {
		const char *text = *(const char *const *)at;

		return !text || !*text;
	}
	case FORM_GROUP:
		return !*(const void *const *)at;
	default:
		return false;
	}
}

static json_t *value_of(const struct fact *fact, const void *from)
{
	const void *at = (const char *)from + fact->at;
	uint32_t n = fact->at_n ? *(const uint32_t *)((const char *)from + fact->at_n) : 0;

	switch (fact->form) {
	case FORM_I32:
	case FORM_RANK:
		return json_integer(*(const int32_t *)at);
	case FORM_U32:
		return json_integer(*(const uint32_t *)at);
	case FORM_U64:
	case FORM_SEQ:
		return cw_json_u64(*(const uint64_t *)at);
	case FORM_ID:
		return cw_json_hex(*(const uint64_t *)at);
	case FORM_UID:
		return json_integer(*(const int64_t *)at);
	case FORM_REAL:
		return json_real(*(const double *)at);
	case FORM_BOOL:
		return json_boolean(*(const bool *)at);
	case FORM_TIME:
		return write_time(*(const int64_t *)at);
	case FORM_NAME:
		return cw_json_text(((const struct cw_named *)at)->text);
	case FORM_NAMES:
		return write_names(fact, *(const uint32_t *)at);
	case FORM_TEXTS:
		return write_texts(*(const char *const *const *)at, n);
	case FORM_GROUP:
		return write_group(fact->group, *(const void *const *)at);
	case FORM_LIST:
		return write_list(fact->group, *(const char *const *)at, n);
	default: /* a text or a set of ranks */
		return cw_json_text(*(const char *const *)at);
	}
}

static bool is_omitted(const struct fact *fact, const void *from)
{
	if (fact->presence != OPTIONAL)
		return false;
	if (fact->at_n)
		return *(const uint32_t *)((const char *)from + fact->at_n) == 0;
	return is_unset(fact, (const char *)from + fact->at);
}

static int write_fact(json_t *doc, const struct fact *fact, const void *from)
{
	const void *at = (const char *)from + fact->at;

	if (is_omitted(fact, from))
		return 0;
	if (fact->form == FORM_SAID)
		return write_said(doc, fact->key, at);
	if (fact->form == FORM_SAIDS)
		return write_saids(doc, fact->key, *(const struct cw_incident_sentence *const *)at,
				   *(const uint32_t *)((const char *)from + fact->at_n));
	if (fact->presence == NULLABLE && is_unset(fact, at))
		return json_object_set_new(doc, fact->key, json_null());
	return json_object_set_new(doc, fact->key, value_of(fact, from));
}

static json_t *write_group(const struct group *group, const void *from)
{
	json_t *doc = json_object();
	int bad = 0;

	for (uint32_t i = 0; i < group->n && !bad; i++)
		bad |= write_fact(doc, &group->facts[i], from);
	return cw_json_finish(doc, bad);
}

json_t *cw_incident_facts_write(const struct cw_incident_facts *facts)
{
	return write_group(&facts_group, facts);
}

/* ---- the end of a job ---- */

#define KEY(form, type, name, key, ...) key,
static const char *const ending_keys[] = { CW_INCIDENT_ENDING_FACTS(KEY) };

bool cw_incident_facts_has_ending(const json_t *doc)
{
	return json_object_get(doc, ending_keys[0]);
}

int cw_incident_facts_copy_ending(const json_t *from, json_t *to)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(ending_keys) / sizeof(*ending_keys); i++) {
		json_t *value = json_object_get(from, ending_keys[i]), *said;
		char said_key[64];

		name_said(ending_keys[i], said_key);
		said = json_object_get(from, said_key);
		bad |= value ? json_object_set(to, ending_keys[i], value) : 0;
		bad |= said ? json_object_set(to, said_key, said) : 0;
	}
	return bad;
}

/* ---- reading ---- */

/* The path of a value: "culprits[0].pid". */
struct path {
	const struct path *up; /* NULL = the document */
	const char *key;
	long index; /* index in a list; -1 = not in a list */
};

struct reader {
	struct cw_arena *arena;
	struct cw_incident_newer *newer; /* NULL = not wanted */
	struct cw_err *err;
	bool is_lenient; /* skips values of the wrong kind, and does not look for newer keys */
};

static void format_path(const struct path *path, char *buf, size_t len)
{
	buf[0] = '\0';
	if (path->up) {
		format_path(path->up, buf, len);
		if (*buf)
			(void)snprintf(buf + strlen(buf), len - strlen(buf), ".");
	}
	(void)snprintf(buf + strlen(buf), len - strlen(buf), "%.64s", path->key);
	if (path->index >= 0)
		(void)snprintf(buf + strlen(buf), len - strlen(buf), "[%ld]", path->index);
}

static int refuse(const struct reader *r, const struct path *path, const char *kind)
{
	char text[256];

	if (r->is_lenient)
		return 0;
	format_path(path, text, sizeof(text));
	return cw_err_set(r->err, EBADMSG, "\"%s\" is not %s", text, kind);
}

static int read_group(struct reader *r, const struct path *path, const struct group *group,
		      const json_t *doc, void *to);

static void *make(struct reader *r, size_t n, size_t size)
{
	return cw_arena_array(r->arena, n ? n : 1, size);
}

static int read_text(struct reader *r, const struct path *path, const json_t *value,
		     const char **ret)
{
	if (!json_is_string(value))
		return refuse(r, path, "a text");
	*ret = cw_arena_strdup(r->arena, json_string_value(value));
	return *ret ? 0 : -ENOMEM;
}

static int read_i32(struct reader *r, const struct path *path, const json_t *value, int32_t *ret)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < INT32_MIN || number > INT32_MAX)
		return refuse(r, path, "a whole number of 32 bits");
	*ret = (int32_t)number;
	return 0;
}

static int read_u32(struct reader *r, const struct path *path, const json_t *value, uint32_t *ret)
{
	json_int_t number = json_integer_value(value);

	if (!json_is_integer(value) || number < 0 || number > UINT32_MAX)
		return refuse(r, path, "a count of 32 bits");
	*ret = (uint32_t)number;
	return 0;
}

static int read_u64(struct reader *r, const struct path *path, const json_t *value, uint64_t *ret)
{
	return cw_json_read_u64(value, ret) ? 0 : refuse(r, path, "a count or an id");
}

static int read_uid(struct reader *r, const struct path *path, const json_t *value, int64_t *ret)
{
	uint32_t uid = 0;
	int e = read_u32(r, path, value, &uid);

	if (e == 0)
		*ret = uid;
	return e;
}

static int read_real(struct reader *r, const struct path *path, const json_t *value, double *ret)
{
	if (!json_is_number(value))
		return refuse(r, path, "a number");
	*ret = json_number_value(value);
	return 0;
}

static int read_bool(struct reader *r, const struct path *path, const json_t *value, bool *ret)
{
	if (!json_is_boolean(value))
		return refuse(r, path, "true or false");
	*ret = json_is_true(value);
	return 0;
}

static int read_time(struct reader *r, const struct path *path, const json_t *value, int64_t *ret)
{
	int64_t at = json_is_string(value) ? cw_wall_parse(json_string_value(value)) : -1;

	if (at < 0)
		return refuse(r, path, "a time");
	*ret = at;
	return 0;
}

static int read_name(struct reader *r, const struct path *path, const struct fact *fact,
		     const json_t *value, struct cw_named *ret)
{
	int e = read_text(r, path, value, &ret->text);

	if (e == 0 && ret->text)
		ret->number = fact->from_name(ret->text);
	return e;
}

static int read_names(struct reader *r, const struct path *path, const struct fact *fact,
		      const json_t *value, uint32_t *ret)
{
	const json_t *one;
	uint32_t bits = 0;
	size_t i;

	if (!json_is_array(value))
		return refuse(r, path, "a list");
	json_array_foreach (value, i, one) {
		int number;

		if (!json_is_string(one))
			return refuse(r, path, "a list of texts");
		number = fact->from_name(json_string_value(one));
		bits |= number < 0 ? CW_INCIDENT_NAMES_NEWER : 1u << number;
	}
	*ret = bits;
	return 0;
}

static int read_texts(struct reader *r, const struct path *path, const json_t *value,
		      const char ***ret, uint32_t *ret_n)
{
	struct path of = *path;
	const char **texts;
	const json_t *one;
	size_t i;
	int e = 0;

	if (!json_is_array(value))
		return refuse(r, path, "a list");
	texts = make(r, json_array_size(value), sizeof(*texts));
	if (!texts)
		return -ENOMEM;
	json_array_foreach (value, i, one) {
		of.index = (long)i;
		e = read_text(r, &of, one, &texts[i]);
		if (e < 0)
			return e;
	}
	*ret = texts;
	*ret_n = (uint32_t)json_array_size(value);
	return 0;
}

/*
 * Reads the sayings of a sentence. If this version does not know one of them, we read none, because
 * the text says the same.
 */
static int read_sayings(struct reader *r, const json_t *value, struct cw_clause *clause)
{
	int e;

	clause->arena = r->arena;
	e = cw_said_read(value, clause);
	return e == -ENOMEM ? e : 0;
}

static int read_said(struct reader *r, const struct path *path, const json_t *doc,
		     const json_t *value, struct cw_incident_sentence *ret)
{
	char said_key[64];
	int e = read_text(r, path, value, &ret->text);

	name_said(path->key, said_key);
	return e == 0 ? read_sayings(r, json_object_get(doc, said_key), &ret->said) : e;
}

static int read_saids(struct reader *r, const struct path *path, const json_t *doc,
		      const json_t *value, struct cw_incident_sentence **ret, uint32_t *ret_n)
{
	struct cw_incident_sentence *sentences;
	const json_t *said;
	char said_key[64];
	const char **texts;
	uint32_t n;
	int e = read_texts(r, path, value, &texts, &n);

	if (e < 0)
		return e;
	name_said(path->key, said_key);
	said = json_object_get(doc, said_key);
	sentences = make(r, n, sizeof(*sentences));
	if (!sentences)
		return -ENOMEM;
	for (uint32_t i = 0; i < n && e == 0; i++) {
		sentences[i].text = texts[i];
		e = read_sayings(r, json_array_get(said, i), &sentences[i].said);
	}
	*ret = sentences;
	*ret_n = n;
	return e;
}

static int read_list(struct reader *r, const struct path *path, const struct group *group,
		     const json_t *value, char **ret, uint32_t *ret_n)
{
	struct path of = *path;
	const json_t *one;
	char *items;
	size_t i;
	int e;

	if (!json_is_array(value))
		return refuse(r, path, "a list");
	/*
	 * Check the elements before we allocate their structs. A hostile list of short values such
	 * as 0 would otherwise make us allocate many times its own size. An object's text is not so
	 * short.
	 */
	json_array_foreach (value, i, one)
		if (!json_is_object(one))
			return refuse(r, path, "a list of objects");
	items = make(r, json_array_size(value), group->size);
	if (!items)
		return -ENOMEM;
	json_array_foreach (value, i, one) {
		of.index = (long)i;
		e = read_group(r, &of, group, one, items + i * group->size);
		if (e < 0)
			return e;
	}
	*ret = items;
	*ret_n = (uint32_t)json_array_size(value);
	return 0;
}

static int read_inner(struct reader *r, const struct path *path, const struct group *group,
		      const json_t *value, void **ret)
{
	void *inner = make(r, 1, group->size);
	int e = inner ? read_group(r, path, group, value, inner) : -ENOMEM;

	if (e == 0)
		*ret = inner;
	return e;
}

static int read_fact(struct reader *r, const struct path *path, const struct fact *fact,
		     const json_t *doc, void *to)
{
	const json_t *value = json_object_get(doc, fact->key);
	void *at = (char *)to + fact->at;
	void *at_n = (char *)to + fact->at_n;

	switch (fact->form) {
	case FORM_I32:
	case FORM_RANK:
		return read_i32(r, path, value, at);
	case FORM_U32:
		return read_u32(r, path, value, at);
	case FORM_U64:
	case FORM_SEQ:
	case FORM_ID:
		return read_u64(r, path, value, at);
	case FORM_UID:
		return read_uid(r, path, value, at);
	case FORM_REAL:
		return read_real(r, path, value, at);
	case FORM_BOOL:
		return read_bool(r, path, value, at);
	case FORM_TIME:
		return read_time(r, path, value, at);
	case FORM_NAME:
		return read_name(r, path, fact, value, at);
	case FORM_NAMES:
		return read_names(r, path, fact, value, at);
	case FORM_TEXTS:
		return read_texts(r, path, value, at, at_n);
	case FORM_SAID:
		return read_said(r, path, doc, value, at);
	case FORM_SAIDS:
		return read_saids(r, path, doc, value, at, at_n);
	case FORM_GROUP:
		return read_inner(r, path, fact->group, value, at);
	case FORM_LIST:
		return read_list(r, path, fact->group, value, at, at_n);
	default: /* a text or a set of ranks */
		return read_text(r, path, value, at);
	}
}

/* Unsets a fact whose unset value is not zero. */
static void unset(const struct fact *fact, void *to)
{
	void *at = (char *)to + fact->at;

	if (fact->form == FORM_RANK)
		*(int32_t *)at = -1;
	else if (fact->form == FORM_SEQ)
		*(uint64_t *)at = CW_INCIDENT_NO_SEQ;
	else if (fact->form == FORM_UID)
		*(int64_t *)at = -1;
	else if (fact->form == FORM_NAME)
		*(struct cw_named *)at = (struct cw_named){ .number = -1 };
	else if (fact->form == FORM_NAMES)
		*(uint32_t *)at = CW_INCIDENT_NAMES_ABSENT;
}

static bool has_key(const struct group *group, const char *key)
{
	char said_key[64];

	for (uint32_t i = 0; i < group->n; i++) {
		const struct fact *fact = &group->facts[i];

		name_said(fact->key, said_key);
		if (strcmp(key, fact->key) == 0 ||
		    ((fact->form == FORM_SAID || fact->form == FORM_SAIDS) &&
		     strcmp(key, said_key) == 0))
			return true;
	}
	return false;
}

static void note_newer(struct reader *r, const struct path *path, const struct group *group,
		       const json_t *doc)
{
	for (void *iter = json_object_iter((json_t *)doc); iter;
	     iter = json_object_iter_next((json_t *)doc, iter)) {
		const struct path of = { path, json_object_iter_key(iter), -1 };

		if (has_key(group, of.key))
			continue;
		if (r->newer->n++ == 0)
			format_path(&of, r->newer->first, sizeof(r->newer->first));
	}
}

static int read_group(struct reader *r, const struct path *path, const struct group *group,
		      const json_t *doc, void *to)
{
	int e = 0;

	if (!json_is_object(doc))
		return refuse(r, path, "an object");
	for (uint32_t i = 0; i < group->n && e == 0; i++) {
		const struct fact *fact = &group->facts[i];
		const struct path of = { path, fact->key, -1 };
		const json_t *value = json_object_get(doc, fact->key);

		unset(fact, to);
		if (value && !json_is_null(value))
			e = read_fact(r, &of, fact, doc, to);
	}
	if (e == 0 && r->newer)
		note_newer(r, path, group, doc);
	return e;
}

int cw_incident_facts_read(const json_t *doc, struct cw_arena *arena, struct cw_incident_facts *ret,
			   struct cw_incident_newer *ret_newer, struct cw_err *err)
{
	struct cw_incident_newer newer = { 0 };
	struct reader r = { .arena = arena, .newer = &newer, .err = err };
	struct cw_incident_facts facts = { 0 };
	const struct path top = { NULL, "", -1 };
	int e = read_group(&r, &top, &facts_group, doc, &facts);

	if (e == -ENOMEM)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (e < 0)
		return e;
	*ret = facts;
	if (ret_newer)
		*ret_newer = newer;
	return 0;
}

int cw_incident_facts_read_process(const json_t *doc, struct cw_arena *arena,
				   struct cw_incident_process *ret)
{
	struct reader r = { .arena = arena, .is_lenient = true };
	struct cw_incident_process process = { .rank = -1 };
	const struct path top = { NULL, "", -1 };
	int e = read_group(&r, &top, &process_group, doc, &process);

	if (e == 0)
		*ret = process;
	return e;
}
