/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold a secret: keys, and headers with tokens. Does not block. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

/* Of a path from cw_secret_file_where(): PATH_MAX of Linux. */
#define CW_SECRET_FILE_PATH_BYTES 4096u

enum cw_secret_file_kind {
	CW_SECRET_FILE_KEY,    /* whoever reads it can speak as a node: its owner alone */
	CW_SECRET_FILE_HEADER, /* the group that reads the configuration and its URL may read it */
};

/* The bits of the mode say that others than its owner, and the group that may, can get at it. */
bool cw_secret_file_is_open(enum cw_secret_file_kind kind, mode_t mode);

/*
 * Where to open it: path itself, or in $CREDENTIALS_DIRECTORY a credential that this process does
 * not see at its place. systemd 252 shows credentials to a unit's main process alone, and the check
 * before a reload runs beside that one. Returns path or buf.
 */
const char *cw_secret_file_where(const char *path, char buf[CW_SECRET_FILE_PATH_BYTES]);

/*
 * Is this open file closed to strangers? It must belong to root or to the daemon's user, and its
 * mode must not be open; a group that may read is root's or the daemon's own, except below
 * $CREDENTIALS_DIRECTORY, which systemd guards itself. 0, -EACCES, -EINVAL or the errno of looking,
 * with err set, which says the command that mends it.
 */
int cw_secret_file_check(int fd, const char *path, enum cw_secret_file_kind kind,
			 struct cw_err *err);
