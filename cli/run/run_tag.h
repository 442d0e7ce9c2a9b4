/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One stream of a program on its way out, with a prefix before each line. No byte is lost, none but
 * the prefixes is added: a line without an end stays one. '\r' ends a line too, so that progress
 * bars move. Blocking writes: who does not read us holds up the program, as it would without us.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* A longer line is written in pieces, with one prefix. */
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
/* Once `from` is readable. Closes it at its end, and when nobody reads `to` any more. */
void run_tag_read(struct run_tag *t);
/* Writes what is left. */
void run_tag_fini(struct run_tag *t);
