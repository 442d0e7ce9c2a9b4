/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

size_t cw_text_decode(const char *text, uint32_t *ret)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char *p = (const unsigned char *)text;
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);

	if (!len || p[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((p[i] & 0xc0) != 0x80) /* the NUL at the end of the text fails here, too */
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*ret = c;
	return len;
}

/*
 * Direction marks and overrides can make code look harmless: "Trojan Source", Boucher and Anderson,
 * USENIX Security 2023.
 */
bool cw_text_is_treacherous(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || (c >= 0x200b && c <= 0x200f) || c == 0x61c ||
	       c == 0x2028 || c == 0x2029 || c == 0xfeff;
}

void cw_text_sanitise(char *text)
{
	while (*text) {
		uint32_t c;
		size_t n = cw_text_decode(text, &c);

		if (n == 0 || (cw_text_is_treacherous(c) && c != '\t' && c != '\n')) {
			*text = '?';
			n = 1; /* the rest of the sequence is invalid, too, byte by byte */
		}
		text += n;
	}
}

void cw_text_sanitise_line(char *text)
{
	cw_text_sanitise(text);
	for (; *text; text++)
		if (*text == '\t' || *text == '\n')
			*text = '?';
}

/* In a shell, single quotes protect all characters up to the next single quote: POSIX, 2.2.2. */
char *cw_text_argument(const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-./:+,@%=";
	bool is_plain = *path && *path != '=' && strspn(path, plain) == strlen(path);
	/*
	 * Each quote in the path becomes four characters. "./", two outer quotes and the final NUL
	 * add 5.
	 */
	char *quoted = malloc(4 * strlen(path) + 5), *p = quoted;

	if (!quoted)
		return NULL;
	if (!is_plain)
		*p++ = '\'';
	if (*path == '-')
		p = stpcpy(p, "./");
	for (; *path; path++) {
		if (*path == '\'')
			p = stpcpy(p, "'\\'");
		*p++ = *path;
	}
	if (!is_plain)
		*p++ = '\'';
	*p = '\0';
	return quoted;
}

char *cw_text_command(const char *command, const char *path)
{
	_cleanup_(freep) char *argument = cw_text_argument(path);
	char *line;

	return argument && asprintf(&line, "%s %s", command, argument) >= 0 ? line : NULL;
}

void cw_text_append(char *text, size_t len, const char *format, ...)
{
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(text + used, len - used, format, args);
	va_end(args);
}

const char *cw_text_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
