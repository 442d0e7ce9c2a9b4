/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes untrusted text into an HTML page. A bundle may come from anywhere, and an engineer on call
 * opens its page. So every string except constants and numbers passes through html_put(). The page
 * is also well-formed XML, and tests check that.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Writes text for element content and quoted attributes alike. It escapes mark-up and replaces line
 * breaks by blanks. These become U+FFFD: control characters, characters that change the text
 * direction, and bytes that are not UTF-8.
 */
void html_put(FILE *out, const char *text);

/*
 * Writes at most max characters of the text like html_put(), and an ellipsis if it is longer. Used
 * in drawings, where boxes have a fixed size.
 */
void html_put_short(FILE *out, const char *text, size_t max);

/*
 * Writes element content that contains long lists of numbers, like html_put(). Lines may break
 * after a comma, but never inside a number.
 */
void html_put_sentence(FILE *out, const char *text);

/*
 * html_section() writes "<h2 id="id">Title</h2>" at the start of a section; html_section_end()
 * writes the end. Both arguments must be constants, because we do not escape them.
 */
void html_section(FILE *out, const char *id, const char *title);
void html_section_end(FILE *out);

/* Writes a set of ranks. A long set is folded: one click opens it. */
void html_put_ranks(FILE *out, const char *ranks);

/* Writes one "<li>". */
void html_put_item(FILE *out, const char *sentence);
/*
 * Writes a section with the list, or nothing if the list is empty. id and title must be constants.
 */
void html_put_list(FILE *out, const char *id, const char *title, const json_t *list);

/*
 * Writes a term and its value, or nothing if the value is "". `what`, the term, must be a constant.
 */
void html_put_fact(FILE *out, const char *what, const char *value);
