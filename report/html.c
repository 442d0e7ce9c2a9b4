/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define MAX_RANKS_SHOWN 60

/* The code point at p and its bytes; 0 bytes: not UTF-8. */
static size_t decode(const unsigned char *p, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);

	if (!len || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80) /* also the end of the text */
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return len;
}

/* Would not be seen, or would make the rest be seen otherwise than it is. */
static bool is_treacherous(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || (c >= 0x200b && c <= 0x200f) || c == 0x61c ||
	       c == 0x2028 || c == 0x2029 || c == 0xfeff || (c & 0xfffe) == 0xfffe ||
	       (c >= 0xfdd0 && c <= 0xfdef);
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
	else if (is_treacherous(c))
		fputs(REPLACEMENT, out);
	else
		(void)fwrite(text, 1, len, out); /* the stream remembers errors */
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* is_list: lines may end after the commas between numbers. */
static void put(FILE *out, const char *text, size_t max, bool is_list)
{
	char before = '\0';
	size_t n = 0;

	while (*text) {
		uint32_t c = 0;
		size_t len = decode((const unsigned char *)text, &c);

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

void html_put_sentences(FILE *out, const json_t *list)
{
	const json_t *sentence;
	size_t i;

	json_array_foreach (list, i, sentence) {
		fputs("<li>", out);
		html_put_sentence(out,
				  json_is_string(sentence) ? json_string_value(sentence) : "?");
		fputs("</li>\n", out);
	}
}
