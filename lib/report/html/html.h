/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes untrusted text into a page. A bundle may come from anywhere, and an engineer on call opens
 * the page. So every string except constants and numbers passes through html_put(). The page is
 * also well-formed XML, which lets tests check it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Writes value as plain text, for element content and quoted attributes alike. It escapes mark-up
 * and replaces line breaks by blanks. Control characters, characters that change the text
 * direction, and bytes that are not UTF-8 become U+FFFD.
 */
void html_put(FILE *out, const char *text);

/*
 * Like html_put(), but cuts the text after max characters and appends an ellipsis. For drawings,
 * where room is fixed.
 */
void html_put_short(FILE *out, const char *text, size_t max);

/*
 * Like html_put(), for element content with long lists of numbers. Lines may break after a comma,
 * but never inside a number.
 */
void html_put_sentence(FILE *out, const char *text);

/*
 * html_section() writes "<h2 id="id">Title</h2>" at the start of a section, html_section_end() its
 * end. Pass only constants.
 */
void html_section(FILE *out, const char *id, const char *title);
void html_section_end(FILE *out);

/* Writes a set of ranks; a long one is folded. */
void html_put_ranks(FILE *out, const char *ranks);

/* Writes one "<li>" for each string of the list. */
void html_put_sentences(FILE *out, const json_t *list);
/* Writes a section with the list, or nothing if the list is empty. Id and title are constants. */
void html_put_list(FILE *out, const char *id, const char *title, const json_t *list);

/* Writes a term and its value, or nothing if the value is "". The term is a constant. */
void html_put_fact(FILE *out, const char *what, const char *value);
