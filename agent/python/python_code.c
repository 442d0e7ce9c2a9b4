/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of lines (CPython's Objects/locations.md) consists of entries of at least one byte. The
 * first byte of an entry has bit 7 set. Its bits 3 to 6 are the kind. Its bits 0 to 2 are the
 * number of instructions that the entry covers, minus one. For the line we need only the kind, and
 * the signed number at the start of some kinds.
 */
#include "agent/python/python_code.h"

#include <stdbool.h>
#include <string.h>

#include "agent/record/own_memory.h"

#define INSTRUCTION_BYTES 2
#define TABLE_MAX (1u << 20) /* no function has a larger table of lines */
#define TEXT_MAX 4096u       /* PATH_MAX */
#define FRAME_TEXT_MAX sizeof(((struct cw_rec_frame *)0)->file)

_Static_assert(FRAME_TEXT_MAX >= sizeof(((struct cw_rec_frame *)0)->function), "the longer text");

enum {
	KIND_ONE_LINE_0 = 10,
	KIND_ONE_LINE_2 = 12,
	KIND_NO_COLUMNS = 13,
	KIND_LONG = 14,
	KIND_NONE = 15
};

struct table {
	uint64_t at, end;
	uint8_t bytes[256];
	uint32_t used, have;
};

/* Returns the next byte of the table, -1 at its end. */
static int next_byte(struct table *t)
{
	if (t->used == t->have) {
		uint64_t left = t->end - t->at;

		t->have = (uint32_t)(left < sizeof(t->bytes) ? left : sizeof(t->bytes));
		t->used = 0;
		if (!t->have || !cw_own_read(t->at, t->bytes, t->have)) {
			t->have = 0;
			t->end = t->at;
			return -1;
		}
		t->at += t->have;
	}
	return t->bytes[t->used++];
}

/*
 * Decodes a signed number: six bits per byte, and bit 6 is set if more bytes follow. The lowest bit
 * of the number is the sign.
 */
static int64_t signed_number(struct table *t)
{
	uint64_t v = 0;
	int byte;

	for (unsigned shift = 0; shift < 36; shift += 6) {
		byte = next_byte(t);
		if (byte < 0)
			break;
		v |= (uint64_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return v & 1 ? -(int64_t)(v >> 1) : (int64_t)(v >> 1);
}

/* Returns the line of the instruction at byte offset `wanted`; 0 = none. */
static uint32_t find_line(struct table *t, int64_t line, uint64_t wanted)
{
	uint64_t end = 0;
	int byte = next_byte(t);

	while (byte >= 0) {
		unsigned kind = (unsigned)byte >> 3 & 15;

		end += ((unsigned)byte % 8 + 1) * INSTRUCTION_BYTES;
		if (kind == KIND_NO_COLUMNS || kind == KIND_LONG)
			line += signed_number(t);
		else if (kind >= KIND_ONE_LINE_0 && kind <= KIND_ONE_LINE_2)
			line += kind - KIND_ONE_LINE_0;
		if (wanted < end)
			return kind == KIND_NONE || line <= 0 || line > INT32_MAX ? 0
										  : (uint32_t)line;
		do {
			byte = next_byte(t);
		} while (byte >= 0 && !(byte & 0x80));
	}
	return 0;
}

static uint32_t line_of(const struct cw_python_layout *layout, const struct cw_python_place *at)
{
	struct table t = { .at = at->line_table + CW_PYTHON_BYTES_DATA };
	uint64_t wanted = at->instr - (at->code + layout->instructions);
	uint64_t length;

	if (!cw_own_read(at->line_table + CW_PYTHON_LENGTH, &length, sizeof(length)) ||
	    length > TABLE_MAX || wanted > TABLE_MAX)
		return 0;
	t.end = t.at + length;
	return find_line(&t, at->first_line, wanted);
}

/* Copies n characters of `width` bytes each. A character that is not ASCII becomes '?'. */
static bool copy_characters(uint64_t from, unsigned width, char *to, size_t n)
{
	unsigned char wide[4 * FRAME_TEXT_MAX];

	if (n > FRAME_TEXT_MAX || !cw_own_read(from, wide, n * width))
		return false;
	for (size_t i = 0; i < n; i++) {
		uint32_t c = 0;

		memcpy(&c, wide + i * width, width);
		to[i] = c && c < 0x80 ? (char)c : '?';
	}
	return true;
}

/*
 * Copies a text. If the text is too long, copies its end, which then begins at a slash if it is a
 * path. Copies "" if we cannot read the text.
 */
static void copy_text(const struct cw_python_layout *layout, uint64_t from, char *to, size_t size)
{
	uint64_t length, skip = 0;
	unsigned width, data;
	uint32_t state;
	char *slash;

	memset(to, 0, size);
	if (!cw_own_read(from + CW_PYTHON_LENGTH, &length, sizeof(length)) ||
	    !cw_own_read(from + CW_PYTHON_TEXT_STATE, &state, sizeof(state)))
		return;
	width = CW_PYTHON_TEXT_WIDTH(state);
	if (length > TEXT_MAX || !(state & CW_PYTHON_TEXT_IS_COMPACT) ||
	    (width != 1 && width != 2 && width != 4))
		return;
	data = state & CW_PYTHON_TEXT_IS_ASCII ? layout->text_data : layout->wide_text_data;
	if (length >= size)
		skip = length - (size - 1);
	if (!copy_characters(from + data + skip * width, width, to, length - skip)) {
		memset(to, 0, size);
		return;
	}
	slash = skip ? memchr(to, '/', size - 1) : NULL;
	if (slash)
		memmove(to, slash, strlen(slash) + 1);
}

void cw_python_describe(const struct cw_python_layout *layout, const struct cw_python_place *at,
			struct cw_rec_frame *ret)
{
	ret->line = line_of(layout, at);
	copy_text(layout, at->file, ret->file, sizeof(ret->file));
	copy_text(layout, at->name, ret->function, sizeof(ret->function));
}
