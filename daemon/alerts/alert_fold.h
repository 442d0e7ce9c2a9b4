/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits how often people are alerted about the jobs of one user. The first alerts go out at once.
 * Beyond a rate we collect them, and one folded alert reports all of them: how many incidents, in
 * which jobs. Nothing is lost: each incident has its bundle, and a collected alert counts as sent
 * only after its folded alert was delivered.
 *
 * Each user has `burst` alerts and regains one every `every_ns`. The first alert beyond that opens
 * a collection, which takes all alerts of the next `every_ns`; then they go out together. On-call
 * staff therefore gets at most burst + 1 messages in the time that reading one takes, and no alert
 * waits longer than every_ns.
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

/*
 * The limits of collected alerts: CW_FOLD_MAX for all users together (identity/quota.h), and
 * CW_FOLD_MAX_PER_USER for one user.
 */
#define CW_FOLD_MAX 4096u
#define CW_FOLD_MAX_PER_USER 512u
/* A folded alert lists this many incidents with their summary. It only counts the others. */
#define CW_FOLD_LISTED 50u

/* 0 or -ENOMEM. */
int cw_alert_fold_new(uint32_t burst, int64_t every_ns, struct cw_alert_fold **ret);
/* Takes NULL; returns NULL. */
struct cw_alert_fold *cw_alert_fold_free(struct cw_alert_fold *f);
void cw_alert_fold_limit(struct cw_alert_fold *f, uint32_t burst, int64_t every_ns);

enum cw_fold_answer {
	CW_FOLD_SEND = 0,      /* send it now; it counts against the user's rate */
	CW_FOLD_COLLECTED = 1, /* the alert goes out, or is going out, in a folded alert */
	CW_FOLD_FULL = 2,      /* try again later */
};

/*
 * Decides about an alert. doc is a collwatch.incident/1. A second call with the same id returns the
 * same answer.
 */
enum cw_fold_answer cw_alert_fold_ask(struct cw_alert_fold *f, uint32_t uid, const char *id,
				      json_t *doc, int64_t now_ns);
/* Counts an alert that another node sent about a job of this user. */
void cw_alert_fold_charge(struct cw_alert_fold *f, uint32_t uid, int64_t now_ns);
/* Returns the token of an alert that got CW_FOLD_SEND but was not sent. */
void cw_alert_fold_refund(struct cw_alert_fold *f, uint32_t uid);

/* A folded alert to send. Borrowed until cw_alert_fold_done(). */
struct cw_folded {
	uint32_t uid;
	size_t n;
	const char *const *ids, *const *jobs;
	json_t *only; /* the incident if n is 1, because it goes out unfolded */
	json_t *doc;  /* collwatch.folded/1; NULL if n is 1 */
};

/*
 * Returns the folded alert of the next user that is due. It stays under way until
 * cw_alert_fold_done(). False if no user is due.
 */
bool cw_alert_fold_next(struct cw_alert_fold *f, int64_t now_ns, int64_t wall_ns,
			struct cw_folded *ret);
/* Drops collected alerts whose incident is over. Alerts under way stay. */
typedef bool (*cw_alert_fold_over_fn)(uint32_t uid, const char *id, void *user);
void cw_alert_fold_drop_over(struct cw_alert_fold *f, cw_alert_fold_over_fn is_over, void *user);
/* Returns the user's alert that is under way. False if there is none. */
bool cw_alert_fold_under_way(const struct cw_alert_fold *f, uint32_t uid, struct cw_folded *ret);
/* Forgets all alerts, collected and under way. The callers ask for each alert again. */
void cw_alert_fold_clear(struct cw_alert_fold *f);
/*
 * Ends an alert that was under way. If it was not delivered, its incidents wait for another alert.
 */
void cw_alert_fold_done(struct cw_alert_fold *f, uint32_t uid, bool was_delivered, int64_t now_ns);

/* Returns the number of alerts that are collected or under way. */
uint32_t cw_alert_fold_count(const struct cw_alert_fold *f);
