/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes and jobs that this daemon does not watch because all places are taken: the owner and
 * job of each, and since when. The owner and root see them in `status`, and the log reports them. A
 * verdict on the job says that these ranks are not visible. We keep one table for the rank
 * processes of this node, and one for the jobs that this node leads.
 *
 * A table is itself bounded, by the same quotas (identity/quota.h), and drops items that do not
 * fit. Loop thread only; pure, except that we check whether processes still live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_untracked;

/* Limit of entries, the same as a node's places for jobs. */
#define CW_UNTRACKED_MAX 1024u
/*
 * Limit of lines in the log per second for all users together. Further users wait for their turn.
 */
#define CW_UNTRACKED_LINES_PER_S 4u
/* We log a number that has changed again after this time. */
#define CW_UNTRACKED_SAY_AGAIN_NS (60 * CW_NS_PER_S)

struct cw_untracked_config {
	const char *one, *many; /* names of an item: "rank process", "rank processes" */
	const char *why;        /* the second half of a sentence; all three borrowed for life */
	int64_t keep_ns;        /* we forget an item this long after its last note */
	/* Writes a line into the log; level is an enum cw_log_level. */
	void (*log)(void *user, int level, const char *line);
	void *user;
};

/* 0 or -ENOMEM. */
int cw_untracked_new(const struct cw_untracked_config *config, struct cw_untracked **ret);
/* Takes NULL; returns NULL. */
struct cw_untracked *cw_untracked_free(struct cw_untracked *u);

struct cw_untracked_item {
	uint32_t uid;
	const char *label;    /* the job's; "" = unknown. Borrowed. */
	int32_t pid;          /* 0 = a whole job */
	uint64_t start_ticks; /* the process's start time */
};

/* Takes ownership of pidfd; the table forgets the item when that process ends. -1 = none. */
void cw_untracked_note(struct cw_untracked *u, const struct cw_untracked_item *item, int pidfd,
		       int64_t now_ns);
/* The daemon watches the item now. */
void cw_untracked_forget(struct cw_untracked *u, const struct cw_untracked_item *item);
/*
 * Forgets items that have ended or were not noted for keep_ns, and writes the log. Call it about
 * once a second.
 */
void cw_untracked_tick(struct cw_untracked *u, int64_t now_ns);

uint32_t cw_untracked_count(const struct cw_untracked *u);
/* The items of one job. */
uint32_t cw_untracked_of_job(const struct cw_untracked *u, uint32_t uid, const char *label);

struct cw_untracked_entry {
	uint32_t uid;
	const char *label;
	int32_t pid;
	int64_t since_ns;
};
/* Borrowed until the callback returns. */
typedef void (*cw_untracked_fn)(const struct cw_untracked_entry *entry, void *user);
void cw_untracked_each(const struct cw_untracked *u, cw_untracked_fn fn, void *user);

/* The items of a user, as a sentence: "3 rank processes of uid 1000 (job a, b) are not …". */
struct cw_untracked_user {
	uint32_t uid, n;
	const char *sentence;
};
typedef void (*cw_untracked_user_fn)(const struct cw_untracked_user *user_of, void *user);
void cw_untracked_each_user(const struct cw_untracked *u, cw_untracked_user_fn fn, void *user);
