/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often people are alerted of one user's jobs. The first alerts go out at once; beyond a rate
 * they are collected, and one alert tells of all of them: how many, of which jobs. Nothing is
 * lost: each incident has its bundle, and what is collected counts as sent only when the one alert
 * was delivered.
 *
 * A user has `burst` alerts, and gets one back every `every_ns`. The first one beyond is collected
 * with all that follow within `every_ns`; then they go out together. So whoever is on call gets at
 * most burst + 1 messages in the time in which one would be read, and no alert waits for longer
 * than every_ns.
 *
 * Pure bookkeeping: no I/O, no clock. Loop thread only.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

struct cw_alert_fold;

/* Alerts collected at once: of all users, who share them (identity/shares.h), and of one. */
#define CW_FOLD_MAX 4096u
#define CW_FOLD_MAX_PER_USER 512u
/* Of a folded alert, incidents that are listed with what happened; the others are counted. */
#define CW_FOLD_LISTED 50u

/* 0 or -ENOMEM. */
int cw_alert_fold_new(uint32_t burst, int64_t every_ns, struct cw_alert_fold **ret);
/* Takes NULL; returns NULL. */
struct cw_alert_fold *cw_alert_fold_free(struct cw_alert_fold *f);
void cw_alert_fold_limit(struct cw_alert_fold *f, uint32_t burst, int64_t every_ns);

enum cw_fold_answer {
	CW_FOLD_SEND = 0,      /* at once; it is counted against the user's rate */
	CW_FOLD_COLLECTED = 1, /* it goes out with others, or is about to */
	CW_FOLD_FULL = 2,      /* try again later */
};

/* doc: collwatch.incident/1. Asked again for the same id, it gives the same answer. */
enum cw_fold_answer cw_alert_fold_ask(struct cw_alert_fold *f, uint32_t uid, const char *id,
				      json_t *doc, int64_t now_ns);
/* Another node has alerted of a job of this user. */
void cw_alert_fold_charge(struct cw_alert_fold *f, uint32_t uid, int64_t now_ns);
/* An alert that was answered with CW_FOLD_SEND did not get out. */
void cw_alert_fold_refund(struct cw_alert_fold *f, uint32_t uid);

/* What is to go out as one. Borrowed until cw_alert_fold_done(). */
struct cw_folded {
	uint32_t uid;
	size_t n;
	const char *const *ids, *const *jobs;
	json_t *only; /* the incident, where it is a single one: it goes out as it is */
	json_t *doc;  /* collwatch.folded/1; NULL = it is a single one */
};

/* The next user's that is due; each is under way until cw_alert_fold_done(). False: none. */
bool cw_alert_fold_next(struct cw_alert_fold *f, int64_t now_ns, int64_t wall_ns,
			struct cw_folded *ret);
/* Drops what was collected and is over; not what is under way. */
typedef bool (*cw_alert_fold_over_fn)(uint32_t uid, const char *id, void *user);
void cw_alert_fold_drop_over(struct cw_alert_fold *f, cw_alert_fold_over_fn is_over, void *user);
/* Of what is under way; false = nothing is. */
bool cw_alert_fold_under_way(const struct cw_alert_fold *f, uint32_t uid, struct cw_folded *ret);
/* Forgets what is collected and under way: whoever alerts asks again. */
void cw_alert_fold_clear(struct cw_alert_fold *f);
/* Not delivered: what was collected waits for the next time. */
void cw_alert_fold_done(struct cw_alert_fold *f, uint32_t uid, bool was_delivered, int64_t now_ns);

/* Collected, or under way. */
uint32_t cw_alert_fold_count(const struct cw_alert_fold *f);
