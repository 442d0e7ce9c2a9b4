/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this daemon does not watch because all places are taken: whose it is, of which job, since
 * when. Its owner and root read it in `status`, the log says it, and a verdict over the job says
 * that these ranks are not visible. One table for the rank processes of this node, one for the jobs
 * that this node leads.
 *
 * A table is bounded itself, by the same shares (identity/shares.h); what it cannot hold is
 * counted. Loop thread only; pure but for looking whether processes still live.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_untracked;

/* Entries: as many as a node has places for jobs. */
#define CW_UNTRACKED_MAX 1024u
/* Lines in the log, per second and in all: the others wait for their turn. */
#define CW_UNTRACKED_LINES_PER_S 4u
/* What is more or fewer than at the last line is said again after this long. */
#define CW_UNTRACKED_SAY_AGAIN_NS (60 * CW_NS_PER_S)

struct cw_untracked_config {
	const char *one, *many; /* what it is: "rank process", "rank processes" */
	const char *why;        /* as a sentence's second half; all three borrowed for life */
	int64_t keep_ns;        /* forgotten this long after it was noted last */
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
	const char *label;    /* of the job; "" = not known. Borrowed. */
	int32_t pid;          /* 0 = a whole job */
	uint64_t start_ticks; /* of the process */
};

/* pidfd: taken; forgets the item when that process ends. -1 = none. */
void cw_untracked_note(struct cw_untracked *u, const struct cw_untracked_item *item, int pidfd,
		       int64_t now_ns);
/* It is watched now. */
void cw_untracked_forget(struct cw_untracked *u, const struct cw_untracked_item *item);
/* Forgets what has ended or was not heard of for long, and writes the log. About once a second. */
void cw_untracked_tick(struct cw_untracked *u, int64_t now_ns);

uint32_t cw_untracked_count(const struct cw_untracked *u);
/* Of one job. */
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

/* What a user has there, as a sentence: "3 rank processes of uid 1000 (job a, b) are not …". */
struct cw_untracked_user {
	uint32_t uid, n;
	const char *sentence;
};
typedef void (*cw_untracked_user_fn)(const struct cw_untracked_user *user_of, void *user);
void cw_untracked_each_user(const struct cw_untracked *u, cw_untracked_user_fn fn, void *user);
