/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the destination of a page of --html: standard output, or the file of --output. Only the
 * file's user and group can read it, because it has the contents of bundles and status.
 */
#pragma once

#include <stdio.h>

/* path NULL: standard output. Returns NULL if the page cannot be written, and prints the error. */
FILE *cw_page_file_open(const char *path);
/*
 * Closes the page. r: 0 or -errno of the writer. Returns r, or the error of closing if r is 0.
 * Prints nothing.
 */
int cw_page_file_close(FILE *out, int r);
