/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/text.h"

static const char *const style_codes[] = {
	[CW_TEXT_PLAIN] = "",         [CW_TEXT_BOLD] = "\033[1m",    [CW_TEXT_DIM] = "\033[2m",
	[CW_TEXT_RED] = "\033[1;31m", [CW_TEXT_YELLOW] = "\033[33m", [CW_TEXT_GREEN] = "\033[32m",
};

/* Prints len bytes of value safely. Returns the number of columns printed, one per code point. */
static int put_safely(FILE *out, const char *value, size_t len)
{
	int columns = 0;

	for (size_t i = 0; i < len; columns++) {
		uint32_t c;
		size_t used = cw_text_decode(value + i, &c);

		if (used && (c == '\n' || c == '\t'))
			fputc(' ', out);
		else if (!used || cw_text_is_treacherous(c))
			fputc('?', out);
		else
			(void)fwrite(value + i, 1, used, out); /* the stream remembers errors */
		i += used ? used : 1;
	}
	return columns;
}

/* See https://no-color.org. A terminal that cannot show colours gets none either. */
bool cw_text_wants_color(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) &&
	       !(term && strcmp(term, "dumb") == 0);
}

void cw_text_set_short(const struct cw_text *t)
{
	if (t->is_short)
		*t->is_short = true;
}

void cw_text_put(const struct cw_text *t, enum cw_text_style style, const char *value)
{
	bool styled = t->color && style != CW_TEXT_PLAIN;

	if (styled)
		fputs(style_codes[style], t->out);
	(void)put_safely(t->out, value, strlen(value));
	if (styled)
		fputs("\033[0m", t->out);
}

void cw_text_title(const struct cw_text *t, const char *title)
{
	fputc('\n', t->out);
	cw_text_put(t, CW_TEXT_BOLD, title);
	fputc('\n', t->out);
}

void cw_text_put_argument(const struct cw_text *t, const char *path)
{
	_cleanup_(freep) char *argument = cw_text_argument(path);

	if (argument)
		(void)put_safely(t->out, argument, strlen(argument));
	else
		cw_text_set_short(t);
}

void cw_text_wrap(const struct cw_text *t, int column, int indent, const char *value)
{
	bool at_start = true;

	for (const char *p = value; *p;) {
		size_t len = strcspn(p, " \n\t");
		int columns = 0;

		if (len == 0) {
			p++;
			continue;
		}
		for (size_t i = 0; i < len; i++)
			columns += ((unsigned char)p[i] & 0xc0) != 0x80;
		if (!at_start && column + 1 + columns > t->width) {
			fprintf(t->out, "\n%*s", indent, "");
			column = indent;
			at_start = true;
		}
		if (!at_start) {
			fputc(' ', t->out);
			column++;
		}
		column += put_safely(t->out, p, len);
		at_start = false;
		p += len;
	}
	fputc('\n', t->out);
}
