/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far something long has come, as one line on standard error that is drawn over: only where
 * that is a terminal, only when it takes a while, and gone when it is done. Nothing of it is
 * coloured.
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

/* is_off: somebody wants documents, or has lines of another kind there. */
void cw_progress_bar_begin(struct cw_progress_bar *p, const char *what, uint64_t total,
			   bool is_off);
/* `done` of all are; the note, of few words, may be NULL. Cheap as long as nothing is to be drawn.
 */
void cw_progress_bar_at(struct cw_progress_bar *p, uint64_t done, const char *note);
/* Takes the line away. */
void cw_progress_bar_end(struct cw_progress_bar *p);

/* The line that is drawn after so long, no longer than `columns`. Fills text, which has len bytes.
 */
void cw_progress_bar_line(const struct cw_progress_bar *p, uint64_t done, const char *note,
			  int64_t elapsed_ns, unsigned columns, char *text, size_t len);
