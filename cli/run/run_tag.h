/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies one output stream of a program with a prefix before each line. We add only the prefixes
 * and lose no byte. If the last line has no line feed, it gets none. '\r' also ends a line, so that
 * progress bars move. Writes block. A slow reader holds up the program, as it would without us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* We write a longer line in pieces, with one prefix. */
#define RUN_TAG_MAX_LINE 65536u

struct run_tag {
	int from, to; /* descriptors; from -1 = the stream has ended */
	const char *prefix;
	char *line;
	size_t len;
	bool is_continued; /* we have written the prefix of this line */
};

/* Takes ownership of the descriptor `from`. */
void run_tag_init(struct run_tag *t, int from, int to, const char *prefix);
/*
 * Call this when `from` is readable. Closes `from` at the end of the stream, or if no process reads
 * `to` any more.
 */
void run_tag_read(struct run_tag *t);
/* Writes the rest of the last line. */
void run_tag_fini(struct run_tag *t);
