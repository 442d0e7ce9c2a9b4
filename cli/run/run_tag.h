/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies one output stream of a program with a prefix before each line. It loses no byte and adds
 * none but the prefixes: a last line without an end stays one. '\r' ends a line too, so that
 * progress bars move. Writes block: a slow reader holds up the program, as it would without us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* We write a longer line in pieces, with one prefix. */
#define RUN_TAG_MAX_LINE 65536u

struct run_tag {
	int from, to; /* from: -1 = at its end */
	const char *prefix;
	char *line;
	size_t len;
	bool is_continued; /* the prefix of this line is written */
};

/* Takes `from`. */
void run_tag_init(struct run_tag *t, int from, int to, const char *prefix);
/* Call it when `from` is readable. Closes `from` at its end, and when `to` has lost its reader. */
void run_tag_read(struct run_tag *t);
/* Writes the rest. */
void run_tag_fini(struct run_tag *t);
