/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that webhook_header_file names: who may have access to it, and how long it may be. What
 * its lines mean is daemon/alerts/webhook.c's to say.
 */
#pragma once

#include <stddef.h>

#include "common/err.h"

/* Headers with a token take some hundred bytes. */
#define CW_HEADER_FILE_MAX (64u << 10)

/*
 * Fills buf with a text. 0, or -errno with err set: as cw_secret_file_check(), of reading, or
 * -EFBIG. Blocks as the file system does: for a child with a deadline.
 */
int cw_header_file_read(const char *file, char *buf, size_t len, struct cw_err *err);
