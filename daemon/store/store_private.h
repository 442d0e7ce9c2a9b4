/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the two halves of the store: store.c keeps the index and writes, store_room.c decides
 * what has to go. Loop thread only.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/htable.h"
#include "daemon/store/store.h"
#include "daemon/store/store_clock.h"

/* Entries in the index; beyond it they are removed from disk. At 1 GiB this is 64 KiB a bundle. */
#define CW_STORE_MAX_ENTRIES 16384u

struct cw_sent_ids;

struct cw_store_entry {
	char id[65];
	char time[32];
	char *job, *class, *summary;
	int64_t uid;     /* whose job it was; -1 = not said */
	int64_t wall_ns; /* when it was last put, by the store's clock */
	uint64_t bytes;
	int64_t resent_ns; /* monotonic; when it was last given out as unsent */
	bool is_held;      /* only in memory */
	struct cw_bundle bundle;
	UT_hash_handle hh;
};

struct cw_store {
	char path[PATH_MAX]; /* of the directory "incidents" */
	char state_dir[PATH_MAX];
	int state_fd, dir_fd; /* -1 = not to be had yet */
	int error;            /* why nothing can be written, as errno; 0 = it can */
	uint64_t max_bytes;
	int64_t max_age_ns;
	const struct cw_clock *clock;
	struct cw_store_clock age_clock;
	struct cw_store_entry *table;
	struct cw_sent_ids *sent;
	int64_t resent_uid;              /* whose was given out as unsent last */
	uint64_t lost, removed, refused; /* as in struct cw_store_stats */
};

/* From the index and from memory; what lies on disk stays. */
void cw_store_forget(struct cw_store *store, struct cw_store_entry *e);

/* NULL = there is none. */
struct cw_store_entry *cw_store_oldest(struct cw_store *store, bool is_held,
				       const struct cw_store_entry *except);

/* Removes one bundle from disk. False: none is left that could be removed. */
bool cw_store_make_room(struct cw_store *store, const struct cw_store_entry *except);

/* By age, then by bytes, then by number; never the one just written. */
void cw_store_apply_retention(struct cw_store *store, const struct cw_store_entry *newest);

unsigned cw_store_count_held(struct cw_store *store);
/* Drops what is too much to be held in memory, never `newest`. */
void cw_store_limit_held(struct cw_store *store, const struct cw_store_entry *newest);
