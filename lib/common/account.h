/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of users and groups. The system may query a directory service that does not
 * answer. A child therefore makes the query, and we kill the child after CW_ACCOUNT_MS. After one
 * such timeout we make no further queries. Otherwise a list of many users would wait for each of
 * them.
 *
 * Blocks for at most CW_ACCOUNT_MS. Not for the daemon's loop.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CW_ACCOUNT_MS 2000
/* Our limit of a name's bytes with its NUL; useradd takes 32 characters. */
#define CW_ACCOUNT_NAME_MAX 256u

/*
 * Finds the id of a group. Returns 0; -ENOENT: there is no such group; -ETIMEDOUT; or another
 * -errno if we cannot make the child.
 */
int cw_account_group(const char *name, gid_t *ret);
/*
 * Finds the name of a user and stores it in buf[CW_ACCOUNT_NAME_MAX]. Returns like
 * cw_account_group().
 */
int cw_account_user(uid_t uid, char *buf);
