/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows text longer than the terminal in a pager. We page only text for people, and only if
 * standard output is a terminal: files, pipes and documents (--json) never see a pager.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* --no-pager: a child of the verb's parser; its input, set at ARGP_KEY_INIT, is a bool. */
extern const struct argp cw_pager_argp;
extern const struct argp_child cw_pager_children[];

/*
 * Collects standard output from here on, if it is a terminal and the user wants a pager. Decide
 * about colour before, because the buffer is not a terminal. Main thread.
 */
void cw_pager_open(bool is_off);

/*
 * Shows the collected text: at once if it fits the terminal, else in $COLLWATCH_PAGER, $PAGER or
 * the system's pager, and waits until the reader quits. Does nothing if no text was collected. 0 or
 * -errno: it could not be shown.
 */
int cw_pager_close(void);

/* Counts the rows of a text on a terminal of so many columns (> 0); escape sequences take none. */
struct cw_pager_rows {
	size_t rows; /* including the row that has begun */
	size_t column;
	unsigned columns;
	unsigned escape; /* position in an escape sequence; 0 = outside */
};
/* Continues from the last call. Begin with zeroes, and the columns. */
void cw_pager_rows_add(struct cw_pager_rows *r, const char *text, size_t len);
