/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shows the progress of a long operation in one line on standard error, which we redraw in place.
 * The line appears only on a terminal, and only if the operation takes a while. We erase it at the
 * end. It has no colours.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_progress_bar {
	const char *what; /* "scenarios"; borrowed */
	uint64_t total;   /* 0 = not known */
	int64_t begun_ns, drawn_ns;
	bool is_on, is_drawn;
};

/*
 * Begins an operation. is_off: show nothing. A caller sets it if the user wants documents, or if
 * other lines go to the terminal.
 */
void cw_progress_bar_begin(struct cw_progress_bar *p, const char *what, uint64_t total,
			   bool is_off);
/*
 * Reports that `done` items of the total are finished. The note has few words and may be NULL.
 * Cheap unless it draws.
 */
void cw_progress_bar_at(struct cw_progress_bar *p, uint64_t done, const char *note);
/* Ends the operation and erases the line. */
void cw_progress_bar_end(struct cw_progress_bar *p);

/*
 * Formats the line for this elapsed time into text, a buffer of len bytes. The line has at most
 * `columns` columns.
 */
void cw_progress_bar_line(const struct cw_progress_bar *p, uint64_t done, const char *note,
			  int64_t elapsed_ns, unsigned columns, char *text, size_t len);
