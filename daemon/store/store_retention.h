/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which bundle has to go when there is no room. Not simply the oldest: a user whose job hangs every
 * minute (or who makes it look so) would push out the reports of all others. The oldest of whoever
 * takes the most room goes.
 *
 * It chooses out of the index; the store removes (store.c). Of the bundles on disk and those that
 * are held in memory, is_held says which are meant. No disk, no clock. Loop thread only.
 */
#pragma once

#include "daemon/store/store_entry.h"

/* What there is too much of. */
enum cw_store_measure { CW_STORE_BY_BYTES, CW_STORE_BY_NUMBER };

/* Never `except`; NULL = there is none. */
struct cw_store_entry *cw_store_retention_oldest(struct cw_store_entry *index, bool is_held,
						 const struct cw_store_entry *except);
/* The oldest of whoever has most; the same. Sorts the index. */
struct cw_store_entry *cw_store_retention_displaced(struct cw_store_entry **index,
						    enum cw_store_measure measure, bool is_held,
						    const struct cw_store_entry *except);
uint64_t cw_store_retention_bytes(struct cw_store_entry *index, bool is_held);
unsigned cw_store_retention_number(struct cw_store_entry *index, bool is_held);
