/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the opcodes of a pickle. Python's pickletools documents each opcode. */
#include "import/pickle/pickle_write.h"

#include <string.h>

/*
 * Writes the n bytes of a number, the least significant byte first, like all numbers in a pickle.
 */
static void put_bytes(FILE *out, uint64_t value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		fputc((int)(value >> 8 * i & 0xff), out);
}

void pickle_begin(FILE *out)
{
	fputs("\x80\x02", out);
}

void pickle_end(FILE *out)
{
	fputc('.', out);
}

void pickle_open_dict(FILE *out)
{
	fputs("}(", out);
}

void pickle_close_dict(FILE *out)
{
	fputc('u', out);
}

void pickle_open_list(FILE *out)
{
	fputs("](", out);
}

void pickle_close_list(FILE *out)
{
	fputc('e', out);
}

void pickle_pair(FILE *out)
{
	fputc(0x86, out);
}

void pickle_text(FILE *out, const char *text)
{
	size_t len = strlen(text);

	if (len > INT32_MAX)
		len = 0;
	fputc('X', out);
	put_bytes(out, len, 4);
	(void)fwrite(text, 1, len, out); /* the stream remembers errors */
}

void pickle_int(FILE *out, int64_t value)
{
	if (value >= INT32_MIN && value <= INT32_MAX) {
		fputc('J', out);
		put_bytes(out, (uint64_t)value, 4);
	} else {
		fputs("\x8a\x08", out);
		put_bytes(out, (uint64_t)value, 8);
	}
}

void pickle_bool(FILE *out, bool value)
{
	fputc(value ? 0x88 : 0x89, out);
}

void pickle_none(FILE *out)
{
	fputc('N', out);
}
