/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the file that webhook_header_file names, and checks its permissions and its size.
 * daemon/alerts/webhook.c parses its lines.
 */
#pragma once

#include <stddef.h>

#include "common/err.h"

/* Size limit of the file. Headers with a token take some hundred bytes. */
#define CW_HEADER_FILE_MAX (64u << 10)

/*
 * Fills buf with the text of the file. Returns 0, or -errno with err set. The errors are those of
 * cw_secret_file_check(), those of reading, and -EFBIG. Blocks as long as the file system does, so
 * call it in a child with a deadline.
 */
int cw_header_file_read(const char *file, char *buf, size_t len, struct cw_err *err);
