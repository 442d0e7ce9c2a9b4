/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the bundle to remove when there is no room. The oldest bundle of all would be the wrong
 * choice: a user whose job hangs every minute would push out all other users' reports. We choose
 * the oldest bundle of the user whose bundles take the most room.
 *
 * This file only chooses a bundle of the index; the store removes it (store.c). is_held: true =
 * choose among the bundles in memory, false = among those on disk. Uses no disk and no clock. Loop
 * thread only.
 */
#pragma once

#include "daemon/store/store_entry.h"

/* The meaning of the most room: the sum of bytes, or the number of bundles. */
enum cw_store_measure { CW_STORE_BY_BYTES, CW_STORE_BY_NUMBER };

/* Returns the oldest bundle of all users, but never `except`. NULL = there is none. */
struct cw_store_entry *cw_store_retention_oldest(struct cw_store_entry *index, bool is_held,
						 const struct cw_store_entry *except);
/*
 * Returns the oldest bundle of the user who takes the most room, but never `except`. NULL = there
 * is none. Sorts the index.
 */
struct cw_store_entry *cw_store_retention_displaced(struct cw_store_entry **index,
						    enum cw_store_measure measure, bool is_held,
						    const struct cw_store_entry *except);
uint64_t cw_store_retention_bytes(struct cw_store_entry *index, bool is_held);
unsigned cw_store_retention_number(struct cw_store_entry *index, bool is_held);
