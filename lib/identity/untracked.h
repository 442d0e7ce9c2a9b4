/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and jobs that this daemon does not watch because a limit is reached. We store the owner
 * and the job of each, and the time since when it has not been watched. The owner and root see them
 * in `status`, and the log reports them. A verdict on the job says that these ranks are not
 * visible. There is one table for the rank processes of this node, and one for the jobs that this
 * node leads.
 *
 * The size of a table is limited, too, by the same quotas (identity/quota.h). Items that do not fit
 * are dropped and counted. Loop thread only. Pure, except that we check whether processes still
 * live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_untracked;

/* Limit of entries. It equals the number of jobs that a node may lead. */
#define CW_UNTRACKED_MAX 1024u
/* Limit of log lines per second for all users together. The lines of further users wait. */
#define CW_UNTRACKED_LINES_PER_S 4u
/* We log a changed number of a user again after this time. */
#define CW_UNTRACKED_SAY_AGAIN_NS (60 * CW_NS_PER_S)

struct cw_untracked_config {
	const char *one, *many; /* words for an item: "rank process", "rank processes" */
	/* Second half of each logged sentence. The caller keeps all three texts alive. */
	const char *why;
	int64_t keep_ns; /* we drop an item this long after its last cw_untracked_note() */
	/* Writes a line to the log; level is an enum cw_log_level. */
	void (*log)(void *user, int level, const char *line);
	void *user;
};

/* Creates an empty table. Returns 0 or -ENOMEM. */
int cw_untracked_new(const struct cw_untracked_config *config, struct cw_untracked **ret);
/* Frees the table. u may be NULL. Returns NULL. */
struct cw_untracked *cw_untracked_free(struct cw_untracked *u);

struct cw_untracked_item {
	uint32_t uid;
	const char *label;    /* the job's label, borrowed; "" = unknown */
	int32_t pid;          /* 0 = the item is a whole job */
	uint64_t start_ticks; /* the process's start time */
};

/*
 * Adds an item, or refreshes it if it exists. Takes ownership of pidfd (-1 = none). The table drops
 * the item when the process of pidfd ends.
 */
void cw_untracked_note(struct cw_untracked *u, const struct cw_untracked_item *item, int pidfd,
		       int64_t now_ns);
/* Removes an item. Callers call this function when the daemon begins to watch the item. */
void cw_untracked_forget(struct cw_untracked *u, const struct cw_untracked_item *item);
/*
 * Drops items whose process has ended, or that no caller has noted for keep_ns. Then writes the
 * log. Callers call this function about once a second.
 */
void cw_untracked_tick(struct cw_untracked *u, int64_t now_ns);

uint32_t cw_untracked_count(const struct cw_untracked *u);
/*
 * Returns how often the table dropped an item, because it was full or because another user needed
 * the entry. The item itself may come again.
 */
uint64_t cw_untracked_dropped(const struct cw_untracked *u);
/* Returns the number of items of one job. */
uint32_t cw_untracked_of_job(const struct cw_untracked *u, uint32_t uid, const char *label);

struct cw_untracked_entry {
	uint32_t uid;
	const char *label;
	int32_t pid;
	int64_t since_ns;
};
/* Receives an entry, which is valid until the callback returns. */
typedef void (*cw_untracked_fn)(const struct cw_untracked_entry *entry, void *user);
void cw_untracked_each(const struct cw_untracked *u, cw_untracked_fn fn, void *user);

/* All items of one user, as a sentence: "3 rank processes of uid 1000 (job a, b) are not …". */
struct cw_untracked_user {
	uint32_t uid, n;
	const char *sentence;
};
typedef void (*cw_untracked_user_fn)(const struct cw_untracked_user *user_of, void *user);
void cw_untracked_each_user(const struct cw_untracked *u, cw_untracked_user_fn fn, void *user);
