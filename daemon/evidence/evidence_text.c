/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/evidence/evidence_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

#define MAX_REASON_BYTES 256u
#define ELLIPSIS "\xe2\x80\xa6"

/* Returns the length of the printable UTF-8 character at text[0..len), or 0 if there is none. */
static size_t printable(const unsigned char *text, size_t len)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = text[0] < 0x80   ? 1
		   : text[0] < 0xc0 ? 0
		   : text[0] < 0xe0 ? 2
		   : text[0] < 0xf0 ? 3
				    : 4;
	uint32_t c;

	if (n == 1)
		return text[0] >= 0x20 && text[0] != 0x7f;
	if (n == 0 || n > len || text[0] > 0xf4)
		return 0;
	c = text[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (text[i] & 0x3f);
	}
	/*
	 * Reject overlong forms, surrogates, code points beyond Unicode, C1 controls, and
	 * bidirectional overrides.
	 */
	if (c < smallest[n] || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff || c < 0xa0 ||
	    (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return 0;
	return n;
}

json_t *cw_evidence_text(const char *text, size_t len, size_t max_bytes)
{
	_cleanup_(freep) char *buf = malloc(max_bytes + sizeof(ELLIPSIS));
	size_t used = 0, i = 0;

	if (!buf)
		return NULL;
	while (i < len) {
		size_t n = printable((const unsigned char *)text + i, len - i);
		size_t out = n ? n : 1;

		if (used + out > max_bytes) {
			/* Make room for the ellipsis without splitting a character. */
			while (used > 0 && (used + 3 > max_bytes || (buf[used] & 0xc0) == 0x80))
				used--;
			memcpy(buf + used, ELLIPSIS, 3);
			used += 3;
			break;
		}
		if (n)
			memcpy(buf + used, text + i, n);
		else
			buf[used] = '?';
		used += out;
		buf[used] = '\0';
		i += out;
	}
	return json_stringn(buf, used);
}

json_t *cw_evidence_text_or_null(const char *text, size_t max_bytes)
{
	return text ? cw_evidence_text(text, strlen(text), max_bytes) : json_null();
}

json_t *cw_evidence_clean(const json_t *value, size_t max_bytes)
{
	if (!json_is_string(value))
		return json_null();
	return cw_evidence_text(json_string_value(value), json_string_length(value), max_bytes);
}

json_t *cw_evidence_part(const char *status, const char *reason)
{
	return json_pack("{s:s, s:o, s:[]}", "status", status, "reason",
			 cw_evidence_text(reason, strlen(reason), MAX_REASON_BYTES), "threads");
}
