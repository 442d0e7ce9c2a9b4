/* SPDX-License-Identifier: Apache-2.0 */
/* Checks files that hold a secret: keys, and headers with tokens. Nothing here blocks. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

/* Size of a path from cw_secret_file_where(): PATH_MAX of Linux. */
#define CW_SECRET_FILE_PATH_BYTES 4096u

enum cw_secret_file_kind {
	/* A key, which lets its reader pose as a node; only the owner may read it. */
	CW_SECRET_FILE_KEY,
	CW_SECRET_FILE_HEADER, /* a header; the group that may read the configuration may read it */
};

/*
 * Returns whether the mode lets other users use the file. For some kinds the file's group counts as
 * permitted.
 */
bool cw_secret_file_is_open(enum cw_secret_file_kind kind, mode_t mode);

/*
 * Returns the path to open. Usually this is `path`. If this process cannot see a credential of
 * systemd at `path`, it is the credential's path in $CREDENTIALS_DIRECTORY, which we write into
 * buf. systemd 252 shows credentials only to a unit's main process, and the check before a reload
 * is another process.
 */
const char *cw_secret_file_where(const char *path, char buf[CW_SECRET_FILE_PATH_BYTES]);

/*
 * Checks that other users cannot read the open file. Root or the daemon's user must own it, and
 * cw_secret_file_is_open() must be false. If its group may read it, this must be root's group or
 * the daemon's own. We skip this check of the group below $CREDENTIALS_DIRECTORY, which systemd
 * protects itself. Returns 0, -EACCES, -EINVAL or the errno of fstat(). err then states the command
 * that fixes the file.
 */
int cw_secret_file_check(int fd, const char *path, enum cw_secret_file_kind kind,
			 struct cw_err *err);
