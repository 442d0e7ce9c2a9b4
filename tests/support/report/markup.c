/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/report/markup.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define MAX_DEPTH 4096

struct name {
	const char *at;
	size_t len;
};

static bool is_name(const struct name *n, const char *text)
{
	return n->len == strlen(text) && strncmp(n->at, text, n->len) == 0;
}

static const char *read_name(const char *p, struct name *ret)
{
	ret->at = p;
	while (isalnum((unsigned char)*p) || strchr("-:!", *p ? *p : ' '))
		p++;
	ret->len = (size_t)(p - ret->at);
	return p;
}

/*
 * Skips an entity that our pages contain, such as "&amp;". Returns NULL if p points to something
 * else.
 */
static const char *skip_entity(const char *p)
{
	static const char *const known[] = { "&amp;", "&lt;", "&gt;", "&quot;", "&#39;" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strncmp(p, known[i], strlen(known[i])) == 0)
			return p + strlen(known[i]);
	return NULL;
}

static bool is_forbidden(const struct name *tag)
{
	static const char *const tags[] = { "script", "img",  "iframe", "object", "embed",
					    "link",   "base", "form",   "a",      "use" };

	for (size_t i = 0; i < sizeof(tags) / sizeof(*tags); i++)
		if (is_name(tag, tags[i]))
			return true;
	return false;
}

static bool is_forbidden_attribute(const struct name *name)
{
	return (name->len > 2 && strncmp(name->at, "on", 2) == 0) || is_name(name, "src") ||
	       is_name(name, "href") || is_name(name, "style");
}

/* Skips attributes such as name="value". Returns the end of the tag ('>' or "/>"), or NULL. */
static const char *skip_attributes(const char *p)
{
	for (;;) {
		struct name name;

		while (isspace((unsigned char)*p))
			p++;
		if (*p == '>' || strncmp(p, "/>", 2) == 0)
			return p;
		p = read_name(p, &name);
		if (!name.len || is_forbidden_attribute(&name) || strncmp(p, "=\"", 2) != 0)
			return NULL;
		for (p += 2; *p != '"';) {
			p = *p == '&' ? skip_entity(p) : *p && *p != '<' ? p + 1 : NULL;
			if (!p)
				return NULL;
		}
		p++;
	}
}

bool markup_is_harmless(const char *page, const char **ret_at)
{
	static const char doctype[] = "<!DOCTYPE html>\n";
	struct name open[MAX_DEPTH], tag;
	size_t depth = 0;
	const char *p = page, *next;

	*ret_at = page;
	if (strncmp(p, doctype, strlen(doctype)) != 0)
		return false;
	for (p += strlen(doctype); *p; p = next) {
		*ret_at = p;
		next = *p == '&' ? skip_entity(p) : p + 1;
		if (!next || ((unsigned char)*p < 0x20 && *p != '\n'))
			return false;
		if (*p != '<')
			continue;
		if (p[1] == '/') {
			next = read_name(p + 2, &tag);
			if (*next++ != '>' || !depth || tag.len != open[depth - 1].len ||
			    strncmp(tag.at, open[depth - 1].at, tag.len) != 0)
				return false;
			depth--;
			continue;
		}
		next = read_name(p + 1, &tag);
		next = tag.len && !is_forbidden(&tag) && depth < MAX_DEPTH ? skip_attributes(next)
									   : NULL;
		if (!next)
			return false;
		if (*next == '>')
			open[depth++] = tag;
		next += *next == '>' ? 1 : 2;
	}
	*ret_at = p;
	return depth == 0;
}
