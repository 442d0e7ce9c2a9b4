/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the bundle to remove when there is no room. The oldest bundle is the wrong choice. A user
 * whose job hangs every minute, or only seems to, would push out all other users' reports. We
 * choose the oldest bundle of the user who takes the most room.
 *
 * This file chooses from the index; the store removes (store.c). is_held selects bundles in memory
 * instead of those on disk. Uses no disk and no clock. Loop thread only.
 */
#pragma once

#include "daemon/store/store_entry.h"

/* The limit that is exceeded. */
enum cw_store_measure { CW_STORE_BY_BYTES, CW_STORE_BY_NUMBER };

/* Returns the oldest bundle, but never `except`; NULL = none. */
struct cw_store_entry *cw_store_retention_oldest(struct cw_store_entry *index, bool is_held,
						 const struct cw_store_entry *except);
/* Returns the oldest bundle of the user with the most, but never `except`. Sorts the index. */
struct cw_store_entry *cw_store_retention_displaced(struct cw_store_entry **index,
						    enum cw_store_measure measure, bool is_held,
						    const struct cw_store_entry *except);
uint64_t cw_store_retention_bytes(struct cw_store_entry *index, bool is_held);
unsigned cw_store_retention_number(struct cw_store_entry *index, bool is_held);
