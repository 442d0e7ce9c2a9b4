/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/html.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/text.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define MAX_RANKS_SHOWN 60

/*
 * True for characters that a page must not contain: control characters and code points that stand
 * for no character.
 */
static bool is_unfit(uint32_t c)
{
	return cw_text_is_treacherous(c) || (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef);
}

static void put_char(FILE *out, const char *text, size_t len, uint32_t c)
{
	if (c == '&')
		fputs("&amp;", out);
	else if (c == '<')
		fputs("&lt;", out);
	else if (c == '>')
		fputs("&gt;", out);
	else if (c == '"')
		fputs("&quot;", out);
	else if (c == '\'')
		fputs("&#39;", out);
	else if (c == '\n' || c == '\t')
		fputc(' ', out);
	else if (is_unfit(c))
		fputs(REPLACEMENT, out);
	else
		(void)fwrite(text, 1, len, out); /* the stream remembers errors */
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Writes at most max characters of the text. is_list: allow a line break after each comma between
 * numbers.
 */
static void put(FILE *out, const char *text, size_t max, bool is_list)
{
	char before = '\0';
	size_t n = 0;

	while (*text) {
		uint32_t c = 0;
		size_t len = cw_text_decode(text, &c);

		if (n++ == max) {
			fputs("…", out);
			return;
		}
		if (!len)
			fputs(REPLACEMENT, out);
		else
			put_char(out, text, len, c);
		if (is_list && c == ',' && is_digit(before) && is_digit(text[1]))
			fputs("<wbr/>", out);
		before = *text;
		text += len ? len : 1;
	}
}

void html_put_short(FILE *out, const char *text, size_t max)
{
	put(out, text, max, false);
}

void html_put(FILE *out, const char *text)
{
	put(out, text, SIZE_MAX, false);
}

void html_put_sentence(FILE *out, const char *text)
{
	put(out, text, SIZE_MAX, strlen(text) > MAX_RANKS_SHOWN);
}

void html_put_ranks(FILE *out, const char *ranks)
{
	if (strlen(ranks) <= MAX_RANKS_SHOWN) {
		html_put(out, ranks);
		return;
	}
	fputs("<details><summary>", out);
	html_put_short(out, ranks, MAX_RANKS_SHOWN);
	fputs("</summary>", out);
	html_put_sentence(out, ranks);
	fputs("</details>", out);
}

void html_section(FILE *out, const char *id, const char *title)
{
	fprintf(out, "<section id=\"%s\">\n<h2>%s</h2>\n", id, title);
}

void html_section_end(FILE *out)
{
	fputs("</section>\n", out);
}

void html_put_item(FILE *out, const char *sentence)
{
	fputs("<li>", out);
	html_put_sentence(out, sentence);
	fputs("</li>\n", out);
}

void html_put_list(FILE *out, const char *id, const char *title, const json_t *list)
{
	const json_t *sentence;
	size_t i;

	if (!json_array_size(list))
		return;
	html_section(out, id, title);
	fputs("<ul>\n", out);
	json_array_foreach (list, i, sentence)
		html_put_item(out, json_is_string(sentence) ? json_string_value(sentence) : "?");
	fputs("</ul>\n", out);
	html_section_end(out);
}

void html_put_fact(FILE *out, const char *what, const char *value)
{
	if (!*value)
		return;
	fprintf(out, "<dt>%s</dt><dd>", what);
	html_put(out, value);
	fputs("</dd>\n", out);
}
