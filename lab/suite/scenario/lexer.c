/* SPDX-License-Identifier: Apache-2.0 */
/*
 * We keep the text as lines. A block (repeat, define) ends at its closing word. We pass the block's
 * lines to the caller once for each value or use, with the current variables replaced. Blocks nest,
 * so the code is recursive, up to a limit. The caller gets no lines of the repetition syntax
 * itself.
 */
#include "lab/suite/scenario/lexer.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/or_exit/or_exit.h"

#define MAX_SOURCE_LINES 65536u
#define MAX_VARS 24u
#define MAX_DEFINES 64u
#define MAX_DEPTH 10u

struct span {
	const char *at;
	uint32_t len;
};

struct var {
	char name[LEXER_WORD_BYTES];
	char value[LEXER_WORD_BYTES];
};

struct define {
	char name[LEXER_WORD_BYTES];
	uint32_t first, last; /* lines of the body: [first, last) */
};

struct source {
	const char *file;
	struct span *lines;
	uint32_t n_lines;
	struct var vars[MAX_VARS];
	uint32_t n_vars;
	struct define defines[MAX_DEFINES];
	uint32_t n_defines;
	uint32_t depth;
	uint64_t left; /* number of lines that we may still pass on */
	lexer_fn fn;
	void *user;
	struct cw_err *err;
};

static int fail(const struct source *s, uint32_t line, int errno_value, const char *what,
		const char *word)
{
	return cw_err_set(s->err, errno_value, "%s:%u: %s%s%s%s", s->file, line + 1, what,
			  word ? " \"" : "", word ? word : "", word ? "\"" : "");
}

/* ---- words ---- */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts a line into words. Blanks separate words; "…" keeps blanks; # ends the line. */
static int cut(const struct source *s, uint32_t line, struct lexer_line *out)
{
	const char *p = s->lines[line].at, *end = p + s->lines[line].len;

	out->n = 0;
	out->line = line + 1;
	while (p < end) {
		const char *from;
		bool quoted;
		size_t len;

		while (p < end && is_space(*p))
			p++;
		if (p == end || *p == '#')
			break;
		quoted = *p == '"';
		from = p += quoted;
		while (p < end && (quoted ? *p != '"' : !is_space(*p) && *p != '#'))
			p++;
		if (quoted && p == end)
			return fail(s, line, EINVAL, "a quote that does not end", NULL);
		len = (size_t)(p - from);
		p += quoted;
		if (out->n == LEXER_WORDS_MAX)
			return fail(s, line, E2BIG, "too many words", NULL);
		if (len >= LEXER_WORD_BYTES)
			return fail(s, line, E2BIG, "a word is too long", NULL);
		if (memchr(from, 0, len))
			return fail(s, line, EINVAL, "a NUL byte", NULL);
		memcpy(out->w[out->n], from, len);
		out->w[out->n++][len] = 0;
	}
	return 0;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static const char *find_var(const struct source *s, const char *name, size_t len)
{
	for (uint32_t i = s->n_vars; i-- > 0;)
		if (strlen(s->vars[i].name) == len && memcmp(s->vars[i].name, name, len) == 0)
			return s->vars[i].value;
	return NULL;
}

/* Replaces each $name in one word. */
static int replace(const struct source *s, uint32_t line, char *word)
{
	char out[LEXER_WORD_BYTES];
	size_t n = 0;

	if (!strchr(word, '$'))
		return 0;
	for (const char *p = word; *p;) {
		const char *value, *name = p + 1;
		size_t len = 0;

		if (*p != '$') {
			if (n + 1 >= sizeof(out))
				return fail(s, line, E2BIG, "a word is too long", NULL);
			out[n++] = *p++;
			continue;
		}
		while (is_name_char(name[len]))
			len++;
		value = find_var(s, name, len);
		if (!value)
			return fail(s, line, EINVAL, "nothing is called", p);
		if (n + strlen(value) >= sizeof(out))
			return fail(s, line, E2BIG, "a word is too long", NULL);
		memcpy(&out[n], value, strlen(value));
		n += strlen(value);
		p = name + len;
	}
	memcpy(word, out, n);
	word[n] = 0;
	return 0;
}

static int replace_all(const struct source *s, uint32_t line, struct lexer_line *w)
{
	for (uint32_t i = 0; i < w->n; i++) {
		int r = replace(s, line, w->w[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- repeat, define, use ---- */

static int push_var(struct source *s, uint32_t line, const char *name, const char *value)
{
	struct var *v = &s->vars[s->n_vars];

	if (s->n_vars == MAX_VARS)
		return fail(s, line, E2BIG, "too many variables", NULL);
	(void)snprintf(v->name, sizeof(v->name), "%s", name);
	(void)snprintf(v->value, sizeof(v->value), "%s", value);
	s->n_vars++;
	return 0;
}

/* Finds the line that closes the block. The word `open` begins the block at `line`. */
static int find_close(const struct source *s, uint32_t line, uint32_t last, const char *open,
		      const char *close, uint32_t *ret)
{
	struct lexer_line *w = cw_or_exit(malloc(sizeof(*w)));
	uint32_t depth = 1;
	int r = 0;

	for (uint32_t i = line + 1; i < last; i++) {
		r = cut(s, i, w);
		if (r < 0)
			break;
		if (w->n && strcmp(w->w[0], open) == 0)
			depth++;
		if (w->n && strcmp(w->w[0], close) == 0 && --depth == 0) {
			*ret = i;
			free(w);
			return 0;
		}
	}
	free(w);
	return r < 0 ? r : fail(s, line, EINVAL, "this is never closed with", close);
}

static int give_lines(struct source *s, uint32_t first, uint32_t last);

static int give_nested(struct source *s, uint32_t line, uint32_t first, uint32_t last)
{
	int r;

	if (s->depth == MAX_DEPTH)
		return fail(s, line, E2BIG, "nested too deeply", NULL);
	s->depth++;
	r = give_lines(s, first, last);
	s->depth--;
	return r;
}

/* Passes on the body of: repeat NAME in VALUE… */
static int give_repeat(struct source *s, uint32_t line, uint32_t close, const struct lexer_line *w)
{
	uint32_t mark = s->n_vars;
	int r = 0;

	if (w->n < 4 || strcmp(w->w[2], "in") != 0)
		return fail(s, line, EINVAL, "not of the form: repeat NAME in VALUE…", NULL);
	for (uint32_t i = 3; i < w->n && r == 0; i++) {
		r = push_var(s, line, w->w[1], w->w[i]);
		if (r == 0)
			r = give_nested(s, line, line + 1, close);
		s->n_vars = mark;
	}
	return r;
}

static int add_define(struct source *s, uint32_t line, uint32_t close, const struct lexer_line *w)
{
	struct define *d = &s->defines[s->n_defines];

	if (w->n != 2)
		return fail(s, line, EINVAL, "not of the form: define NAME", NULL);
	if (s->n_defines == MAX_DEFINES)
		return fail(s, line, E2BIG, "too many definitions", NULL);
	(void)snprintf(d->name, sizeof(d->name), "%s", w->w[1]);
	d->first = line + 1;
	d->last = close;
	s->n_defines++;
	return 0;
}

/* Passes on the body of the definition in: use NAME [VAR=VALUE]… */
static int give_use(struct source *s, uint32_t line, struct lexer_line *w)
{
	uint32_t mark = s->n_vars;
	int r = 0;

	if (w->n < 2)
		return fail(s, line, EINVAL, "not of the form: use NAME [VAR=VALUE]…", NULL);
	for (uint32_t i = 2; i < w->n && r == 0; i++) {
		char *value = strchr(w->w[i], '=');

		if (!value)
			return fail(s, line, EINVAL, "not of the form VAR=VALUE:", w->w[i]);
		*value++ = 0;
		r = push_var(s, line, w->w[i], value);
	}
	for (uint32_t i = s->n_defines; r == 0 && i-- > 0;)
		if (strcmp(s->defines[i].name, w->w[1]) == 0) {
			r = give_nested(s, line, s->defines[i].first, s->defines[i].last);
			s->n_vars = mark;
			return r;
		}
	s->n_vars = mark;
	return r < 0 ? r : fail(s, line, EINVAL, "nothing is defined as", w->w[1]);
}

/* Handles the line at *line. Sets *line to the next line to handle. */
static int give_line(struct source *s, uint32_t *line, uint32_t last, struct lexer_line *w)
{
	uint32_t at = *line, close = at;
	int r = cut(s, at, w);

	*line = at + 1;
	if (r < 0 || w->n == 0)
		return r;
	if (s->left == 0)
		return fail(s, at, E2BIG, "too many lines", NULL);
	s->left--;
	if (strcmp(w->w[0], "define") == 0) {
		r = find_close(s, at, last, "define", "enddef", &close);
		*line = close + 1;
		return r < 0 ? r : add_define(s, at, close, w);
	}
	r = replace_all(s, at, w);
	if (r < 0)
		return r;
	if (strcmp(w->w[0], "repeat") == 0) {
		r = find_close(s, at, last, "repeat", "done", &close);
		*line = close + 1;
		return r < 0 ? r : give_repeat(s, at, close, w);
	}
	if (strcmp(w->w[0], "use") == 0)
		return give_use(s, at, w);
	return s->fn(s->user, w);
}

static int give_lines(struct source *s, uint32_t first, uint32_t last)
{
	struct lexer_line *w = cw_or_exit(malloc(sizeof(*w)));
	int r = 0;

	while (first < last && r == 0)
		r = give_line(s, &first, last, w);
	free(w);
	return r;
}

static int find_lines(struct source *s, const char *text, size_t len)
{
	const char *end = text + len;
	uint32_t n = 0;

	for (const char *p = text; p < end; p++)
		n += *p == '\n';
	if (n >= MAX_SOURCE_LINES)
		return cw_err_set(s->err, E2BIG, "%s: too many lines", s->file);
	s->lines = cw_or_exit(calloc(n + 1, sizeof(*s->lines)));
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		const char *to = nl ? nl : end;

		s->lines[s->n_lines++] = (struct span){ text, (uint32_t)(to - text) };
		text = to + 1;
	}
	return 0;
}

int lexer_read(const char *text, size_t len, const char *file, uint64_t max_lines, lexer_fn fn,
	       void *user, struct cw_err *err)
{
	_cleanup_(freep) struct source *s = cw_or_exit(calloc(1, sizeof(*s)));
	int r;

	if (len > UINT32_MAX / 2)
		return cw_err_set(err, E2BIG, "%s: too large", file);
	s->file = file;
	s->left = max_lines;
	s->fn = fn;
	s->user = user;
	s->err = err;
	r = find_lines(s, text, len);
	if (r == 0)
		r = give_lines(s, 0, s->n_lines);
	free(s->lines);
	return r;
}
