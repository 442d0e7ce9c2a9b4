/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text for a page made of strings that came from elsewhere. A bundle may be anybody's and the page
 * is opened by whoever is on call, so nothing but constants and numbers is written to it other than
 * through html_put(). The page is well-formed XML too, which is how tests check it.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Writes text so that it is text, in element content and in quoted attributes alike: mark-up is
 * escaped; line breaks become blanks; control characters, characters that turn the direction of
 * what follows, and what is not UTF-8 become U+FFFD.
 */
void html_put(FILE *out, const char *text);

/* The same, cut after max characters, with an ellipsis. For the fixed room of drawings. */
void html_put_short(FILE *out, const char *text, size_t max);

/*
 * Element content in which long lists of numbers may stand: lines may end after their commas, which
 * else would be broken in the middle of a number.
 */
void html_put_sentence(FILE *out, const char *text);

/* "<h2 id="id">Title</h2>" at the start of a section, and its end. Constants only. */
void html_section(FILE *out, const char *id, const char *title);
void html_section_end(FILE *out);

/* A set of ranks; a long one is folded. */
void html_put_ranks(FILE *out, const char *ranks);

/* One "<li>" for each string of the list. */
void html_put_sentences(FILE *out, const json_t *list);
/* A section of them; none where the list is empty. Id and title are constants. */
void html_put_list(FILE *out, const char *id, const char *title, const json_t *list);

/* A term and what it is here; nothing where that is "". The term is a constant. */
void html_put_fact(FILE *out, const char *what, const char *value);
