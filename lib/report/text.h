/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a terminal made of strings that came from elsewhere: a bundle may be anybody's, and a
 * terminal obeys what is printed to it, so control characters never get through.
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
	int width;      /* columns, > 0 */
	bool *is_short; /* set when memory ran out for some of it; NULL = nobody asks */
};

/* Memory has run out: what is printed is not all. */
void cw_text_set_short(const struct cw_text *t);

/* A terminal, and nobody has said otherwise (NO_COLOR, TERM=dumb). Reads the environment. */
bool cw_text_wants_color(FILE *out);

/* Prints value as it is, but for treacherous characters (common/text.h: '?'), line breaks (a
 * space). */
void cw_text_put(const struct cw_text *t, enum cw_text_style style, const char *value);

/*
 * Prints a path as one argument of a command line (cw_text_argument()): what is printed as a
 * command is pasted into a shell.
 */
void cw_text_put_argument(const struct cw_text *t, const char *path);

/* "\nTitle\n" */
void cw_text_title(const struct cw_text *t, const char *title);

/*
 * Prints value word by word, broken at the width. Every line but the first begins with `indent`
 * blanks; the first continues at column `column`. Ends the line.
 */
void cw_text_wrap(const struct cw_text *t, int column, int indent, const char *value);
