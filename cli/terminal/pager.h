/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows text longer than the terminal in a pager. We page only text for people, and only if
 * standard output is a terminal. Files, pipes and documents (--json) never get a pager.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * The option --no-pager, as a child of the verb's parser. Its input, set at ARGP_KEY_INIT, is a
 * bool.
 */
extern const struct argp cw_pager_argp;
extern const struct argp_child cw_pager_children[];

/*
 * Begins to collect standard output, if it is a terminal and the user wants a pager. The caller
 * decides about colour before this call, because afterwards standard output is a buffer. Main
 * thread.
 */
void cw_pager_open(bool is_off);

/*
 * Shows the collected text. If it fits the terminal, prints it at once. Otherwise runs
 * $COLLWATCH_PAGER, $PAGER or the system's pager, and waits until the user quits it. Does nothing
 * if no text was collected. Returns 0, or -errno if the text could not be shown.
 */
int cw_pager_close(void);

/*
 * Counts the rows that a text takes on a terminal of `columns` (> 0) columns. Escape sequences take
 * no room.
 */
struct cw_pager_rows {
	size_t rows; /* including the row that has just begun */
	size_t column;
	unsigned columns;
	unsigned escape; /* position in an escape sequence; 0 = outside */
};
/* Counts a piece of the text. Before the first piece, set `columns`, and all other fields to 0. */
void cw_pager_rows_add(struct cw_pager_rows *r, const char *text, size_t len);
