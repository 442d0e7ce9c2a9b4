/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of something each user has, found without looking at all of them: whoever floods the
 * daemon must not make it slower with each thing it holds. Loop thread only.
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cw_uid_count;

/* The table starts as NULL and is NULL again when everything has been taken out. */
uint32_t cw_uid_count_get(struct cw_uid_count *table, uid_t uid);
/* 0 or -ENOMEM. */
int cw_uid_count_add(struct cw_uid_count **table, uid_t uid);
/* Users with at least one; uid counts in any case. */
uint32_t cw_uid_count_users(struct cw_uid_count *table, uid_t uid);
/* One of those added before. */
void cw_uid_count_remove(struct cw_uid_count **table, uid_t uid);
