/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up the names of users and groups. The system may ask a directory service that does not
 * answer, so a child makes the query and we kill it after CW_ACCOUNT_MS. After one such timeout we
 * make no further queries, so a list of many users does not wait for each.
 *
 * Blocks for at most CW_ACCOUNT_MS. Not for the daemon's loop.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CW_ACCOUNT_MS 2000
/* Our limit; useradd takes 32 characters. */
#define CW_ACCOUNT_NAME_MAX 256u

/*
 * Finds the id of a group. Returns 0, -ENOENT if there is no such group, -ETIMEDOUT, or another
 * -errno if we cannot make the child.
 */
int cw_account_group(const char *name, gid_t *ret);
/* Like cw_account_group(), but stores the name of a user in buf[CW_ACCOUNT_NAME_MAX]. */
int cw_account_user(uid_t uid, char *buf);
