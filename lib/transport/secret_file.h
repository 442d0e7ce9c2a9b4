/* SPDX-License-Identifier: Apache-2.0 */
/* Files that hold a secret: keys, and headers with tokens. Does not block. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

/* Size of a path from cw_secret_file_where(): PATH_MAX of Linux. */
#define CW_SECRET_FILE_PATH_BYTES 4096u

enum cw_secret_file_kind {
	CW_SECRET_FILE_KEY,    /* gives the right to speak as a node: only its owner may read it */
	CW_SECRET_FILE_HEADER, /* the group of the configuration, with its URL, may read it */
};

/* Returns whether the mode grants access to users other than the owner and the permitted group. */
bool cw_secret_file_is_open(enum cw_secret_file_kind kind, mode_t mode);

/*
 * Returns the path to open: `path` itself, or buf with the path of the credential of this name in
 * $CREDENTIALS_DIRECTORY. We use the credential if this process does not see it at `path`. systemd
 * 252 shows credentials only to a unit's main process, and the check before a reload runs beside
 * that process.
 */
const char *cw_secret_file_where(const char *path, char buf[CW_SECRET_FILE_PATH_BYTES]);

/*
 * Checks that other users cannot read the open file. It must belong to root or to the daemon's
 * user, and its mode must not be open. A group with read access must be root's or the daemon's own,
 * except below $CREDENTIALS_DIRECTORY, which systemd protects itself. Returns 0, -EACCES, -EINVAL
 * or the errno of fstat(), with err set to the command that fixes it.
 */
int cw_secret_file_check(int fd, const char *path, enum cw_secret_file_kind kind,
			 struct cw_err *err);
