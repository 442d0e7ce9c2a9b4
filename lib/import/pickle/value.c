/* SPDX-License-Identifier: Apache-2.0 */
#include "import/pickle/value.h"

#include <errno.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "common/parse.h"

const struct cw_value *cw_value_get(const struct cw_value *dict, const char *key)
{
	if (!dict || dict->type != CW_VALUE_DICT || dict->n > 2 * CW_VALUE_MAX_FIELDS)
		return NULL;
	for (uint32_t i = dict->n; i >= 2; i -= 2)
		if (cw_value_is_text(dict->items[i - 2], key))
			return dict->items[i - 1];
	return NULL;
}

uint32_t cw_value_count(const struct cw_value *list)
{
	if (!list || (list->type != CW_VALUE_LIST && list->type != CW_VALUE_TUPLE))
		return 0;
	return list->n;
}

/* Reads a decimal number with an optional minus sign and nothing else. */
static bool parse_int(const char *text, size_t len, int64_t *ret)
{
	bool negative = len && text[0] == '-';
	uint64_t v = 0;

	if (len - negative < 1 || len - negative > 18)
		return false;
	for (size_t i = negative; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

bool cw_value_int(const struct cw_value *value, int64_t *ret)
{
	if (!value)
		return false;
	if (value->type == CW_VALUE_INT || value->type == CW_VALUE_BOOL) {
		*ret = value->integer;
		return true;
	}
	return value->type == CW_VALUE_STR && parse_int(value->text, value->len, ret);
}

bool cw_value_is_text(const struct cw_value *value, const char *text)
{
	return value && value->type == CW_VALUE_STR && value->len == strlen(text) &&
	       memcmp(value->text, text, value->len) == 0;
}

char *cw_value_copy_text(const struct cw_value *value, char *buf, size_t len)
{
	size_t n = value && value->type == CW_VALUE_STR ? value->len : 0;

	if (n > len - 1)
		n = len - 1;
	for (size_t i = 0; i < n; i++) {
		char c = value->text[i];

		buf[i] = c >= ' ' && c <= '~' ? c : '?';
	}
	buf[n] = '\0';
	return buf;
}

static int grow(struct cw_arena *arena, struct cw_value *v, size_t *spent)
{
	uint32_t room = v->room ? v->room * 2 : 4;
	struct cw_value **items;

	if (v->room > UINT32_MAX / 4)
		return -E2BIG;
	items = cw_or_exit(cw_arena_new_array(arena, struct cw_value *, room));
	*spent += room * sizeof(*items);
	if (v->n)
		memcpy(items, v->items, v->n * sizeof(*items));
	v->items = items;
	v->room = room;
	return 0;
}

int cw_value_append(struct cw_arena *arena, struct cw_value *to, struct cw_value *item,
		    size_t *spent)
{
	int r = 0;

	if (to->is_held || to == item)
		return -ELOOP;
	if (item->height >= CW_VALUE_MAX_HEIGHT)
		return -E2BIG;
	if (to->n == to->room)
		r = grow(arena, to, spent);
	if (r < 0)
		return r;
	item->is_held = true;
	to->items[to->n++] = item;
	if (item->height >= to->height)
		to->height = item->height + 1;
	return 0;
}
