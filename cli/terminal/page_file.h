/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the destination of a page of --html: standard output, or the file of --output. Only its
 * user and group can read the file: it has the contents of bundles and status.
 */
#pragma once

#include <stdio.h>

/* path NULL: standard output. NULL = it cannot be written; the error was printed. */
FILE *cw_page_file_open(const char *path);
/* r: 0 or -errno of the writer. Returns it, or else the error of closing; prints nothing. */
int cw_page_file_close(FILE *out, int r);
