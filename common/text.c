/* SPDX-License-Identifier: Apache-2.0 */
#include "common/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static bool is_continuation(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* Bytes of the sequence that a lead byte promises; 0 = no lead byte. */
static size_t promised_length(unsigned char c)
{
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf) /* 0xc0, 0xc1 would be overlong */
		return 2;
	if (c >= 0xe0 && c <= 0xef)
		return 3;
	if (c >= 0xf0 && c <= 0xf4)
		return 4;
	return 0;
}

/* Overlong three- and four-byte forms, surrogates, above U+10FFFF: Unicode 15, table 3-7. */
static bool is_allowed_second(unsigned char lead, unsigned char second)
{
	switch (lead) {
	case 0xe0:
		return second >= 0xa0;
	case 0xed:
		return second <= 0x9f;
	case 0xf0:
		return second >= 0x90;
	case 0xf4:
		return second <= 0x8f;
	case 0xc2:
		return second >= 0xa0; /* C1 control characters */
	default:
		return true;
	}
}

/* Length of the valid, printable sequence at p; 0 = there is none. The NUL ends every sequence. */
static size_t sequence_length(const unsigned char *p)
{
	size_t n = promised_length(*p);

	if (n == 1)
		return (*p >= 0x20 && *p != 0x7f) || *p == '\t' || *p == '\n' ? 1 : 0;
	for (size_t i = 1; i < n; i++)
		if (!is_continuation(p[i]))
			return 0;
	return n && is_allowed_second(p[0], p[1]) ? n : 0;
}

void cw_text_sanitise(char *text)
{
	unsigned char *p = (unsigned char *)text;

	while (*p) {
		size_t n = sequence_length(p);

		if (n == 0)
			*p = '?';
		p += n ? n : 1;
	}
}

void cw_text_sanitise_line(char *text)
{
	cw_text_sanitise(text);
	for (; *text; text++)
		if (*text == '\t' || *text == '\n')
			*text = '?';
}
