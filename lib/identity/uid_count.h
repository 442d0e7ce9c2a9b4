/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts objects per user without a scan of all objects: a flood of objects must not make the
 * daemon slower with each one. Loop thread only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cw_uid_count;

/*
 * Returns the number of a user's objects. An empty table is NULL. It becomes NULL again when all
 * objects have been removed.
 */
uint32_t cw_uid_count_get(struct cw_uid_count *table, uid_t uid);
/* Adds one object of the user. Returns 0 or -ENOMEM. */
int cw_uid_count_add(struct cw_uid_count **table, uid_t uid);
/* Returns the number of users with at least one object. uid counts as a user in any case. */
uint32_t cw_uid_count_users(struct cw_uid_count *table, uid_t uid);
/* Removes one object that the caller has added before. */
void cw_uid_count_remove(struct cw_uid_count **table, uid_t uid);
