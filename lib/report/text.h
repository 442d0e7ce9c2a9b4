/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints strings from outside on a terminal. A bundle may come from anywhere, and a terminal obeys
 * control characters, so we never print one.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

enum cw_text_style {
	CW_TEXT_PLAIN = 0,
	CW_TEXT_BOLD,
	CW_TEXT_DIM,
	CW_TEXT_RED,
	CW_TEXT_YELLOW,
	CW_TEXT_GREEN,
};

struct cw_text {
	FILE *out;
	bool color;
	int width; /* columns, > 0 */
	/* set to true if memory runs out, so that a part is missing; NULL = not needed */
	bool *is_short;
};

/* Records that memory ran out: the printed text is incomplete. */
void cw_text_set_short(const struct cw_text *t);

/*
 * True for a terminal, unless the user disabled colour (NO_COLOR, TERM=dumb). Reads
 * the environment.
 */
bool cw_text_wants_color(FILE *out);

/* Prints value, with '?' for unsafe characters (common/text.h) and a space for each line break. */
void cw_text_put(const struct cw_text *t, enum cw_text_style style, const char *value);

/*
 * Prints a path as one argument of a command line (cw_text_argument()), because users paste printed
 * commands into a shell.
 */
void cw_text_put_argument(const struct cw_text *t, const char *path);

/* Prints "\nTitle\n". */
void cw_text_title(const struct cw_text *t, const char *title);

/*
 * Prints value word by word, with line breaks at the width, and ends the last line. The first line
 * continues at column `column`. Every further line begins with `indent` blanks.
 */
void cw_text_wrap(const struct cw_text *t, int column, int indent, const char *value);
