/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/python/python_frame.h"

#include <stdbool.h>
#include <string.h>

#include "agent/record/own_memory.h"

#define FRAME_TEXT_MAX sizeof(((struct cw_rec_frame *)0)->file)

_Static_assert(FRAME_TEXT_MAX >= sizeof(((struct cw_rec_frame *)0)->function), "the longer text");

static bool read_own(void *user, uint64_t from, void *to, size_t len)
{
	return cw_own_read(from, to, len);
}

static const struct cw_python_memory own_memory = { .read = read_own };

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
 * Copies a text; "" if we cannot read it. If the text is too long, copies only its end. The end of
 * a path begins at a slash.
 */
static void copy_text(const struct cw_python_layout *layout, uint64_t from, char *to, size_t size)
{
	struct cw_python_characters text;
	uint32_t skip = 0;
	char *slash;

	memset(to, 0, size);
	if (!cw_python_characters(&own_memory, layout, from, &text))
		return;
	if (text.n >= size)
		skip = text.n - (uint32_t)(size - 1);
	if (!copy_characters(text.from + (uint64_t)skip * text.width, text.width, to,
			     text.n - skip)) {
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
	ret->line = cw_python_line(&own_memory, layout, at);
	copy_text(layout, at->file, ret->file, sizeof(ret->file));
	copy_text(layout, at->name, ret->function, sizeof(ret->function));
}
