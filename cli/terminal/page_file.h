/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a page of --html goes: standard output, or the file of --output. That is made for its user
 * and group alone: it holds what bundles and status hold.
 */
#pragma once

#include <stdio.h>

/* path NULL: standard output. NULL = it cannot be written, which has been said. */
FILE *cw_page_file_open(const char *path);
/* r: 0 or -errno of whoever wrote it, else of closing it. Returns that; nothing is said. */
int cw_page_file_close(FILE *out, int r);
