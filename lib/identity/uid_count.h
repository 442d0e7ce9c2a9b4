/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts objects per user. A count takes no scan of all objects, which would make the daemon slower
 * with each object of a flood. Loop thread only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cw_uid_count;

/*
 * Returns the number of a user's objects. An empty table is NULL, and a table becomes NULL again
 * with its last object.
 */
uint32_t cw_uid_count_get(struct cw_uid_count *table, uid_t uid);
/* Adds one object of the user. Returns 0 or -ENOMEM. */
int cw_uid_count_add(struct cw_uid_count **table, uid_t uid);
/*
 * Returns the number of users with at least one object. Counts uid as a user even without an
 * object.
 */
uint32_t cw_uid_count_users(struct cw_uid_count *table, uid_t uid);
/* Removes one object that the caller has added with cw_uid_count_add(). */
void cw_uid_count_remove(struct cw_uid_count **table, uid_t uid);
