/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "import/pickle/value.h"

static int convert(const json_t *doc, struct cw_arena *arena, unsigned depth,
		   struct cw_value **ret);

static int convert_array(const json_t *doc, struct cw_arena *arena, unsigned depth,
			 struct cw_value *to)
{
	struct cw_value *item;
	const json_t *entry;
	size_t i, spent = 0;
	int r;

	to->type = CW_VALUE_LIST;
	json_array_foreach (doc, i, entry) {
		r = convert(entry, arena, depth + 1, &item);
		if (r == 0)
			r = cw_value_append(arena, to, item, &spent);
		if (r < 0)
			return r;
	}
	return 0;
}

static int convert_object(const json_t *doc, struct cw_arena *arena, unsigned depth,
			  struct cw_value *to)
{
	struct cw_value *key, *item;
	size_t spent = 0;
	const char *name;
	json_t *entry;
	int r;

	to->type = CW_VALUE_DICT;
	/* the macro takes no pointer to const, but we change nothing */
	json_object_foreach ((json_t *)doc, name, entry) {
		key = cw_or_exit(cw_arena_new(arena, struct cw_value));
		key->type = CW_VALUE_STR;
		key->text = name;
		key->len = (uint32_t)strlen(name);
		r = convert(entry, arena, depth + 1, &item);
		if (r == 0)
			r = cw_value_append(arena, to, key, &spent);
		if (r == 0)
			r = cw_value_append(arena, to, item, &spent);
		if (r < 0)
			return r;
	}
	return 0;
}

static int convert(const json_t *doc, struct cw_arena *arena, unsigned depth, struct cw_value **ret)
{
	struct cw_value *v = cw_or_exit(cw_arena_new(arena, struct cw_value));
	int r = 0;

	if (depth > CW_VALUE_MAX_HEIGHT)
		return -E2BIG;
	switch (json_typeof(doc)) {
	case JSON_OBJECT:
		r = convert_object(doc, arena, depth, v);
		break;
	case JSON_ARRAY:
		r = convert_array(doc, arena, depth, v);
		break;
	case JSON_STRING:
		v->type = CW_VALUE_STR;
		v->text = json_string_value(doc);
		v->len = (uint32_t)json_string_length(doc);
		break;
	case JSON_INTEGER:
		v->type = CW_VALUE_INT;
		v->integer = json_integer_value(doc);
		break;
	case JSON_REAL:
		v->type = CW_VALUE_FLOAT;
		v->real = json_real_value(doc);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		v->type = CW_VALUE_BOOL;
		v->integer = json_is_true(doc);
		break;
	case JSON_NULL:
		break; /* zeroed: CW_VALUE_NONE */
	}
	*ret = v;
	return r;
}

int cw_value_from_json(const json_t *doc, struct cw_arena *arena, struct cw_value **ret)
{
	return convert(doc, arena, 0, ret);
}
