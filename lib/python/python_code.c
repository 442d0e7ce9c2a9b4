/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of lines is a row of entries. Each entry covers some instructions.
 *
 *	lnotab, to 3.9		two bytes: bytes of code since the last entry, change of the line
 *				(signed); the change counts from there on
 *	deltas, 3.10		two bytes: bytes of code of this entry, change of its line (signed,
 *				-128 = this entry has no line)
 *	locations, from 3.11	at least one byte: bit 7 is set; bits 3 to 6 are the kind; bits 0 to
 *				2 are the number of instructions, minus one. Some kinds begin with
 *				a signed number, the change of the line.
 */
#include "python/python_code.h"

#include <string.h>

#define INSTRUCTION_BYTES 2
#define TABLE_MAX (1u << 20) /* no function has a larger table of lines */
#define DELTA_NO_LINE (-128)

enum {
	KIND_ONE_LINE_0 = 10,
	KIND_ONE_LINE_2 = 12,
	KIND_NO_COLUMNS = 13,
	KIND_LONG = 14,
	KIND_NONE = 15
};

struct table {
	const struct cw_python_memory *memory;
	uint64_t at, end;
	uint8_t bytes[256];
	uint32_t used, have;
};

/* Returns the next byte of the table; -1 at the table's end. */
static int next_byte(struct table *t)
{
	if (t->used == t->have) {
		uint64_t left = t->end - t->at;

		t->have = (uint32_t)(left < sizeof(t->bytes) ? left : sizeof(t->bytes));
		t->used = 0;
		if (!t->have || !cw_python_read(t->memory, t->at, t->bytes, t->have)) {
			t->have = 0;
			t->end = t->at;
			return -1;
		}
		t->at += t->have;
	}
	return t->bytes[t->used++];
}

static uint32_t checked_line(int64_t line)
{
	return line <= 0 || line > INT32_MAX ? 0 : (uint32_t)line;
}

static uint32_t find_in_lnotab(struct table *t, int64_t line, uint64_t wanted)
{
	uint64_t at = 0;
	int bytes, change;

	while ((bytes = next_byte(t)) >= 0 && (change = next_byte(t)) >= 0) {
		at += (unsigned)bytes;
		if (at > wanted)
			break;
		line += (int8_t)change;
	}
	return checked_line(line);
}

static uint32_t find_in_deltas(struct table *t, int64_t line, uint64_t wanted)
{
	uint64_t end = 0;
	int bytes, change;

	while ((bytes = next_byte(t)) >= 0 && (change = next_byte(t)) >= 0) {
		bool has_line = (int8_t)change != DELTA_NO_LINE;

		end += (unsigned)bytes;
		if (has_line)
			line += (int8_t)change;
		if (wanted < end)
			return has_line ? checked_line(line) : 0;
	}
	return 0;
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

static uint32_t find_in_locations(struct table *t, int64_t line, uint64_t wanted)
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
			return kind == KIND_NONE ? 0 : checked_line(line);
		do {
			byte = next_byte(t);
		} while (byte >= 0 && !(byte & 0x80));
	}
	return 0;
}

/*
 * Returns the offset of the instruction's first byte in the code; negative before the first
 * instruction.
 */
static int64_t offset_of(const struct cw_python_layout *layout, const struct cw_python_place *at)
{
	if (layout->has_frame_objects)
		return (int64_t)(int32_t)at->instr * layout->index_bytes;
	return (int64_t)(at->instr - (at->code + layout->instructions));
}

uint32_t cw_python_line(const struct cw_python_memory *memory,
			const struct cw_python_layout *layout, const struct cw_python_place *at)
{
	struct table t = { .memory = memory, .at = at->line_table + CW_PYTHON_BYTES_DATA };
	int64_t wanted = offset_of(layout, at);
	uint64_t length;

	/*
	 * A frame that has not begun points one instruction before its first one. We return the
	 * line of the first instruction.
	 */
	if (wanted < 0)
		return wanted >= -INSTRUCTION_BYTES ? checked_line(at->first_line) : 0;
	if (!cw_python_read(memory, at->line_table + CW_PYTHON_LENGTH, &length, sizeof(length)) ||
	    length > TABLE_MAX || wanted > TABLE_MAX)
		return 0;
	t.end = t.at + length;
	switch (layout->lines) {
	case CW_PYTHON_LINES_LNOTAB:
		return find_in_lnotab(&t, at->first_line, (uint64_t)wanted);
	case CW_PYTHON_LINES_DELTAS:
		return find_in_deltas(&t, at->first_line, (uint64_t)wanted);
	case CW_PYTHON_LINES_LOCATIONS:
		return find_in_locations(&t, at->first_line, (uint64_t)wanted);
	}
	return 0;
}

bool cw_python_characters(const struct cw_python_memory *memory,
			  const struct cw_python_layout *layout, uint64_t text,
			  struct cw_python_characters *ret)
{
	uint8_t head[CW_PYTHON_TEXT_STATE + sizeof(uint32_t)];
	uint64_t length;
	unsigned width;
	uint32_t state;

	if (!cw_python_read(memory, text, head, sizeof(head)))
		return false;
	memcpy(&length, head + CW_PYTHON_LENGTH, sizeof(length));
	memcpy(&state, head + CW_PYTHON_TEXT_STATE, sizeof(state));
	width = CW_PYTHON_TEXT_WIDTH(state);
	if (length > CW_PYTHON_TEXT_CHARACTERS || !(state & CW_PYTHON_TEXT_IS_COMPACT) ||
	    (width != 1 && width != 2 && width != 4))
		return false;
	*ret = (struct cw_python_characters){
		.from = text + (state & CW_PYTHON_TEXT_IS_ASCII ? layout->text_data
								: layout->wide_text_data),
		.n = (uint32_t)length,
		.width = width,
	};
	return true;
}
