/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A name folds at its last number, or at its last letter if it has no digit. The text before it and
 * behind it is the same for all names of a fold.
 */
#include "say/hosts.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/text.h"

/* Longer numbers are no numbers of hosts. */
#define MOST_DIGITS 9

/* A name in three parts: text, a number or a letter, text. */
struct parts {
	const char *name, *behind;
	size_t before_bytes, key_bytes;
	uint32_t key;
	bool is_number;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
	return c >= 'a' && c <= 'z';
}

static struct parts parts_of(const char *name)
{
	struct parts p = { .name = name, .behind = name };
	size_t end = strlen(name), begin;

	/* A domain is the same for all, and may contain digits. */
	if (strchr(name, '.'))
		end = (size_t)(strchr(name, '.') - name);
	for (begin = end; begin > 0 && !is_digit(name[begin - 1]);)
		begin--;
	p.is_number = begin > 0;
	if (p.is_number) {
		end = begin;
		while (begin > 0 && is_digit(name[begin - 1]) && end - begin < MOST_DIGITS)
			begin--;
		for (size_t i = begin; i < end; i++)
			p.key = p.key * 10 + (uint32_t)(name[i] - '0');
	} else if (end > 0 && is_letter(name[end - 1])) {
		begin = end - 1;
		p.key = (uint32_t)name[begin];
	} else {
		begin = end;
	}
	p.before_bytes = begin;
	p.key_bytes = end - begin;
	p.behind = name + end;
	return p;
}

static bool is_padded(const struct parts *p)
{
	return p->key_bytes > 1 && p->name[p->before_bytes] == '0';
}

static bool fold_together(const struct parts *a, const struct parts *b)
{
	/* "9" and "10" have no width, but "09" and "10" have. */
	bool is_as_wide =
		a->key_bytes == b->key_bytes || (a->is_number && !is_padded(a) && !is_padded(b));

	return a->key_bytes && b->key_bytes && is_as_wide && a->is_number == b->is_number &&
	       a->before_bytes == b->before_bytes &&
	       memcmp(a->name, b->name, a->before_bytes) == 0 && strcmp(a->behind, b->behind) == 0;
}

static void put_key(const struct parts *p, char *buf, size_t len)
{
	cw_text_append(buf, len, "%.*s", (int)p->key_bytes, p->name + p->before_bytes);
}

/* Writes the names [first, end), which fold together, as ranges of their keys. */
static void put_fold(const char *const *names, uint32_t first, uint32_t end, char *buf, size_t len)
{
	struct parts head = parts_of(names[first]);

	cw_text_append(buf, len, "%.*s[", (int)head.before_bytes, head.name);
	for (uint32_t i = first; i < end;) {
		struct parts from = parts_of(names[i]), to = from;
		uint32_t k = i + 1;

		for (; k < end && parts_of(names[k]).key == to.key + 1; k++)
			to = parts_of(names[k]);
		if (i > first)
			cw_text_append(buf, len, ",");
		put_key(&from, buf, len);
		if (k - i > 1) {
			cw_text_append(buf, len, k - i > 2 ? "-" : ",");
			put_key(&to, buf, len);
		}
		i = k;
	}
	cw_text_append(buf, len, "]%s", head.behind);
}

char *cw_say_hosts(const char *const *names, uint32_t n, char *buf, size_t len)
{
	char end[32];
	size_t room;

	*buf = '\0';
	(void)snprintf(end, sizeof(end), "… (%" PRIu32 " hosts)", n);
	room = len > sizeof(end) ? len - sizeof(end) : 0;
	for (uint32_t i = 0; i < n;) {
		struct parts head = parts_of(names[i]);
		size_t before = strlen(buf);
		uint32_t k = i + 1;

		while (k < n) {
			struct parts next = parts_of(names[k]);

			if (!fold_together(&head, &next))
				break;
			k++;
		}
		if (i)
			cw_text_append(buf, len, ",");
		if (k - i > 1)
			put_fold(names, i, k, buf, len);
		else
			cw_text_append(buf, len, "%s", names[i]);
		if (strlen(buf) >= room) {
			buf[before] = '\0';
			cw_text_append(buf, len, "%s", end);
			return buf;
		}
		i = k;
	}
	return buf;
}
