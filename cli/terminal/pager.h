/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pager for what is longer than the terminal. Only text for people goes through it, and only
 * where standard output is a terminal: files, pipes and documents (--json) never see one.
 */
#pragma once

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

/* --no-pager: a child of the verb's parser; its input, set at ARGP_KEY_INIT, is a bool. */
extern const struct argp cw_pager_argp;
extern const struct argp_child cw_pager_children[];

/*
 * From here on standard output is kept, where it is a terminal and somebody wants a pager. Ask for
 * colour before: what it is kept in is no terminal. Main thread.
 */
void cw_pager_open(bool is_off);

/*
 * Shows what was kept: at once where it fits the terminal, else by $COLLWATCH_PAGER, $PAGER or what
 * the system has for it, and waits until the reader has left. Where nothing was kept, does nothing.
 * 0 or -errno: it could not be shown.
 */
int cw_pager_close(void);

/* Rows that a text takes on a terminal of so many columns (> 0); escape sequences take none. */
struct cw_pager_rows {
	size_t rows; /* the one that is begun among them */
	size_t column;
	unsigned columns;
	unsigned escape; /* how far into a sequence; 0 = in none */
};
/* Goes on where the last call ended; begin with zeroes, and the columns. */
void cw_pager_rows_add(struct cw_pager_rows *r, const char *text, size_t len);
