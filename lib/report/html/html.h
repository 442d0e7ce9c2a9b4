/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a page, made of strings from outside. A bundle may come from anywhere, and an engineer
 * on call opens the page. So every string except constants and numbers passes through html_put().
 * The page is well-formed XML too, which lets tests check it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Writes text as text, in element content and in quoted attributes alike. It escapes mark-up and
 * replaces line breaks by blanks. Control characters, characters that change the text direction,
 * and bytes that are not UTF-8 become U+FFFD.
 */
void html_put(FILE *out, const char *text);

/* The same, but cut after max characters, with an ellipsis. For the fixed room of drawings. */
void html_put_short(FILE *out, const char *text, size_t max);

/*
 * For element content with long lists of numbers: lines may break after the commas, and so never in
 * the middle of a number.
 */
void html_put_sentence(FILE *out, const char *text);

/* "<h2 id="id">Title</h2>" at the start of a section, and its end. Constants only. */
void html_section(FILE *out, const char *id, const char *title);
void html_section_end(FILE *out);

/* Writes a set of ranks; a long one is folded. */
void html_put_ranks(FILE *out, const char *ranks);

/* Writes one "<li>" for each string of the list. */
void html_put_sentences(FILE *out, const json_t *list);
/* Writes a section with the list; none if the list is empty. Id and title are constants. */
void html_put_list(FILE *out, const char *id, const char *title, const json_t *list);

/* Writes a term and its value; nothing if the value is "". The term is a constant. */
void html_put_fact(FILE *out, const char *what, const char *value);
