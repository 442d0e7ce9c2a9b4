/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look up the names of users and groups. The system may ask a directory service that does not
 * answer, so a child makes the query and we kill it after CW_ACCOUNT_MS. After one such timeout we
 * make no further queries: a list of many users does not wait for each.
 *
 * Blocks for at most CW_ACCOUNT_MS. Not for the daemon's loop.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CW_ACCOUNT_MS 2000
/* Our limit; useradd takes 32 characters. */
#define CW_ACCOUNT_NAME_MAX 256u

/* 0; -ENOENT: no such group; -ETIMEDOUT; or another -errno if we cannot make the child. */
int cw_account_group(const char *name, gid_t *ret);
/* The same for a user's name into buf[CW_ACCOUNT_NAME_MAX]. */
int cw_account_user(uid_t uid, char *buf);
