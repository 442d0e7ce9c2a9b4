/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users and groups. The system may ask a directory service that does not answer, so a
 * child asks, and is ended when it takes too long. After that nothing more is asked: a list of many
 * users does not wait for each.
 *
 * Blocks for CW_ACCOUNT_MS at most: not for the daemon's loop.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CW_ACCOUNT_MS 2000
/* Longer names are none; useradd takes 32. */
#define CW_ACCOUNT_NAME_MAX 256u

/* 0; -ENOENT: no such group; -ETIMEDOUT; or -errno of making the child. */
int cw_account_group(const char *name, gid_t *ret);
/* The same for a user's name into buf[CW_ACCOUNT_NAME_MAX]. */
int cw_account_user(uid_t uid, char *buf);
