/* SPDX-License-Identifier: Apache-2.0 */
#include "model/rankset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define MORE ",…"
/*
 * The size of a buffer for one item. "-2147483648-2147483647," is longer than any item, because
 * numbers are never negative here.
 */
#define ITEM_MAX 32

static int compare_i32(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/*
 * True if the numbers ascend. We ask this first, because most sets are already sorted, and sorting
 * the sets of a large job again takes long.
 */
static bool is_sorted(const int32_t *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i - 1] > v[i])
			return false;
	return true;
}

static size_t sort_unique(int32_t *v, size_t n)
{
	size_t out = 0;

	if (!is_sorted(v, n))
		qsort(v, n, sizeof(*v), compare_i32);
	for (size_t i = 0; i < n; i++)
		if (out == 0 || v[out - 1] != v[i])
			v[out++] = v[i];
	return out;
}

/* Returns a sorted copy of the non-negative numbers without duplicates; NULL = out of memory. */
static int32_t *sorted_copy(const int32_t *ranks, size_t n, size_t *ret_n)
{
	int32_t *v = calloc(n + 1, sizeof(*v));
	size_t out = 0;

	if (!v)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (ranks[i] >= 0)
			v[out++] = ranks[i];
	*ret_n = sort_unique(v, out);
	return v;
}

/*
 * Writes the item ("7" or "0-15") that starts at v[i], after a comma if i > 0. Returns the index of
 * the next item.
 */
static size_t format_item(const int32_t *v, size_t n, size_t i, char item[static ITEM_MAX])
{
	const char *comma = i ? "," : "";
	size_t end = i + 1;

	while (end < n && v[end] == v[end - 1] + 1)
		end++;
	if (end - i == 1)
		(void)snprintf(item, ITEM_MAX, "%s%" PRId32, comma, v[i]);
	else
		(void)snprintf(item, ITEM_MAX, "%s%" PRId32 "-%" PRId32, comma, v[i], v[end - 1]);
	return end;
}

char *cw_rankset_format(const int32_t *ranks, size_t n, char *buf, size_t len)
{
	_cleanup_(freep) int32_t *v = NULL;
	char item[ITEM_MAX];
	size_t used = 0, n_v = 0, next;

	if (len == 0)
		return buf;
	buf[0] = '\0';
	v = sorted_copy(ranks, n, &n_v);
	if (!v) {
		(void)snprintf(buf, len, "?");
		return buf;
	}
	for (size_t i = 0; i < n_v; i = next) {
		size_t item_len, reserve;

		next = format_item(v, n_v, i, item);
		item_len = strlen(item);
		reserve = next < n_v ? strlen(MORE) : 0;
		if (used + item_len + reserve + 1 > len) {
			/* MORE begins with a comma. At the start of the text we skip this comma. */
			const char *more = used ? MORE : &MORE[1];

			if (used + strlen(more) + 1 <= len)
				memcpy(buf + used, more, strlen(more) + 1);
			break;
		}
		memcpy(buf + used, item, item_len + 1);
		used += item_len;
	}
	return buf;
}

char *cw_rankset_format_alloc(const int32_t *ranks, size_t n)
{
	_cleanup_(freep) int32_t *v = NULL;
	_cleanup_(freep) char *text = NULL;
	size_t used = 0, capacity = 64, n_v = 0, next;
	char item[ITEM_MAX];

	v = sorted_copy(ranks, n, &n_v);
	text = malloc(capacity);
	if (!v || !text)
		return NULL;
	text[0] = '\0';
	for (size_t i = 0; i < n_v; i = next) {
		next = format_item(v, n_v, i, item);
		if (used + ITEM_MAX > capacity) {
			char *grown = realloc(text, capacity * 2);

			if (!grown)
				return NULL;
			text = grown;
			capacity *= 2;
		}
		memcpy(text + used, item, strlen(item) + 1);
		used += strlen(item);
	}
	return steal_ptr(&text);
}

struct list {
	int32_t *v;
	size_t n, capacity, max;
};

static void list_fini(struct list *l)
{
	free(l->v);
}

static int list_add_range(struct list *l, int32_t first, int32_t last)
{
	size_t more = (size_t)(last - first) + 1;

	if (more > l->max - l->n)
		return -E2BIG;
	if (l->n + more > l->capacity) {
		size_t capacity = (l->n + more) * 2;
		int32_t *v = realloc(l->v, capacity * sizeof(*v));

		if (!v)
			return -ENOMEM;
		l->v = v;
		l->capacity = capacity;
	}
	for (size_t i = 0; i < more; i++)
		l->v[l->n++] = first + (int32_t)i;
	return 0;
}

static bool read_number(const char **p, int32_t *ret)
{
	int64_t v = 0;

	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; (*p)++) {
		v = v * 10 + (**p - '0');
		if (v > INT32_MAX)
			return false;
	}
	*ret = (int32_t)v;
	return true;
}

static bool read_range(const char **p, int32_t *ret_first, int32_t *ret_last)
{
	if (!read_number(p, ret_first))
		return false;
	*ret_last = *ret_first;
	if (**p != '-')
		return true;
	(*p)++;
	return read_number(p, ret_last) && *ret_last >= *ret_first;
}

int cw_rankset_parse(const char *text, size_t max, int32_t **ret_ranks, size_t *ret_n)
{
	_cleanup_(list_fini) struct list list = { .max = max };
	const char *p = text;
	int32_t first, last;
	int r;

	while (*p) {
		if (!read_range(&p, &first, &last))
			return -EINVAL;
		if (*p == ',' && p[1] != '\0')
			p++;
		else if (*p != '\0')
			return -EINVAL;
		r = list_add_range(&list, first, last);
		if (r < 0)
			return r;
	}
	*ret_n = sort_unique(list.v, list.n);
	*ret_ranks = steal_ptr(&list.v);
	return 0;
}
