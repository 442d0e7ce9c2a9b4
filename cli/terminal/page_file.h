/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens the destination of an HTML page (option --html): standard output, or the file of --output.
 * We make the file readable only for its user and group, because the page has the contents of
 * bundles and status.
 */
#pragma once

#include <stdio.h>

/*
 * Opens path; NULL = standard output. Returns NULL and prints the error if we cannot write the
 * page.
 */
FILE *cw_page_file_open(const char *path);
/*
 * Closes the page. r: 0 or -errno of the writer. Returns r, or the error of closing if r is 0.
 * Prints nothing.
 */
int cw_page_file_close(FILE *out, int r);
