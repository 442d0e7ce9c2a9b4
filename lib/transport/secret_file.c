/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/secret_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name;
	mode_t widest;
} kinds[] = {
	[CW_SECRET_FILE_KEY] = { "key", 0600 },
	[CW_SECRET_FILE_HEADER] = { "header", 0640 },
};

/*
 * Returns whether the path is a credential of systemd. systemd may grant its user access by an ACL.
 * stat() then shows the ACL's mask as the rights of the group, although the group has none.
 */
static bool is_credential(const char *path)
{
	const char *dir = secure_getenv("CREDENTIALS_DIRECTORY");
	size_t len = dir ? strlen(dir) : 0;

	return len && !strncmp(path, dir, len) && path[len] == '/' && !strstr(path, "/../");
}

const char *cw_secret_file_where(const char *path, char buf[CW_SECRET_FILE_PATH_BYTES])
{
	static const char place[] = "/run/credentials/";
	const char *dir = secure_getenv("CREDENTIALS_DIRECTORY"), *name;
	int n;

	if (!dir || !*dir || strncmp(path, place, strlen(place)) != 0 || access(path, F_OK) == 0)
		return path;
	name = strchr(path + strlen(place), '/'); /* skip the unit's name */
	n = name ? snprintf(buf, CW_SECRET_FILE_PATH_BYTES, "%s%s", dir, name) : -1;
	return n > 0 && (size_t)n < CW_SECRET_FILE_PATH_BYTES ? buf : path;
}

/* The owner's own rights do not matter: other users can read 0700 no more than 0600. */
bool cw_secret_file_is_open(enum cw_secret_file_kind kind, mode_t mode)
{
	return mode & (S_IRWXG | S_IRWXO) & ~kinds[kind].widest;
}

int cw_secret_file_check(int fd, const char *path, enum cw_secret_file_kind kind,
			 struct cw_err *err)
{
	const char *name = kinds[kind].name;
	struct stat st;
	mode_t mode;

	if (fstat(fd, &st) < 0)
		return cw_err_set(err, errno, "%s: %m", path);
	if (!S_ISREG(st.st_mode))
		return cw_err_set(err, EINVAL, "%s: not a regular file", path);
	mode = is_credential(path) ? st.st_mode & ~S_IRGRP : st.st_mode;
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return cw_err_set(err, EACCES,
				  "%s belongs to user %u: a %s must belong to root or to the "
				  "daemon's user: chown %u it",
				  path, st.st_uid, name, geteuid());
	if (cw_secret_file_is_open(kind, mode))
		return cw_err_set(err, EACCES,
				  "%s has mode %04o, so others than its owner can get at the %s: "
				  "chmod %o it, and make a new %s if somebody may have read it",
				  path, st.st_mode & 07777, name, kinds[kind].widest, name);
	if ((mode & S_IRGRP) && st.st_gid != 0 && st.st_gid != getegid())
		return cw_err_set(err, EACCES,
				  "%s can be read by group %u, which is neither root's nor the "
				  "daemon's: chgrp %u it, or chmod 600 it, and make a new %s if "
				  "somebody may have read it",
				  path, st.st_gid, getegid(), name);
	return 0;
}
