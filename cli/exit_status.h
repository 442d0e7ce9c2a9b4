/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit statuses of all verbs. The programs, their help and the manual page use this table.
 * docs/design/daemon.md#exit-codes repeats it, and a test compares the two.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum cw_exit {
	CW_EXIT_OK = 0,
	CW_EXIT_ERROR = 1,
	CW_EXIT_HANG = 2, /* a hang, or another fault that the verb found */
	CW_EXIT_NO_DATA = 3,
	/* Only the verb "run" returns these, as shells do. */
	CW_EXIT_NOT_EXECUTABLE = 126,
	CW_EXIT_NOT_FOUND = 127,
};

struct cw_exit_row {
	enum cw_exit status;
	const char *meaning;
};

extern const struct cw_exit_row cw_exit_table[];
extern const size_t cw_exit_count;

/* Prints a heading and one line per status. has_run: the command has the verb "run". */
void cw_exit_print(FILE *out, bool has_run);
/* Prints the rows of the table in the manual page. */
void cw_exit_print_scdoc(FILE *out);
/* Returns the status that shells use if exec() refuses a program with this errno. */
enum cw_exit cw_exit_of_exec(int error);
