/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the alerts about the jobs of one user. The first alerts go out at once. Beyond a rate we
 * collect the alerts, and send one folded alert for all of them. It reports the number of incidents
 * and their jobs. No alert is lost: each incident has its bundle. A collected alert counts as sent
 * only after its folded alert was delivered.
 *
 * Each user has `burst` tokens, and regains one every `every_ns`. An alert takes one token. The
 * first alert without a token opens a collection. The collection takes all alerts of the next
 * `every_ns`; then they go out together. On-call staff therefore gets at most burst + 1 messages at
 * a time, and no alert waits longer than every_ns.
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
 * Maximum number of collected alerts. CW_FOLD_MAX is for all users together, who share it by quotas
 * (identity/quota.h). CW_FOLD_MAX_PER_USER is for one user.
 */
#define CW_FOLD_MAX 4096u
#define CW_FOLD_MAX_PER_USER 512u
/* A folded alert lists the summaries of this many incidents. It only counts further ones. */
#define CW_FOLD_LISTED 50u

/* Returns 0 or -ENOMEM. */
int cw_alert_fold_new(uint32_t burst, int64_t every_ns, struct cw_alert_fold **ret);
/* Takes NULL; returns NULL. */
struct cw_alert_fold *cw_alert_fold_free(struct cw_alert_fold *f);
void cw_alert_fold_limit(struct cw_alert_fold *f, uint32_t burst, int64_t every_ns);

enum cw_fold_answer {
	CW_FOLD_SEND = 0, /* send the alert now; we took one of the user's tokens */
	/* Do not send the alert: it is part of a folded alert, or waits for one. */
	CW_FOLD_COLLECTED = 1,
	CW_FOLD_FULL = 2, /* too many are collected: ask again later */
};

/*
 * Decides whether to send an alert now. doc is a collwatch.incident/1. While the alert is
 * collected, further calls with the same id return CW_FOLD_COLLECTED.
 */
enum cw_fold_answer cw_alert_fold_ask(struct cw_alert_fold *f, uint32_t uid, const char *id,
				      json_t *doc, int64_t now_ns);
/* Takes one of the user's tokens for an alert that another node has sent. */
void cw_alert_fold_charge(struct cw_alert_fold *f, uint32_t uid, int64_t now_ns);
/* Gives the token back, because an alert that got CW_FOLD_SEND was not sent. */
void cw_alert_fold_refund(struct cw_alert_fold *f, uint32_t uid);

/* A folded alert to send. Its pointers are borrowed until cw_alert_fold_done(). */
struct cw_folded {
	uint32_t uid;
	size_t n;
	const char *const *ids, *const *jobs;
	/* The incident itself if n is 1, because a single alert is not folded; otherwise NULL. */
	json_t *only;
	json_t *doc; /* the folded alert, a collwatch.folded/1; NULL if n is 1 */
};

/*
 * Finds the next user whose folded alert must go out now. Stores the alert in *ret; it is under way
 * until cw_alert_fold_done(). Returns false if there is no such user.
 */
bool cw_alert_fold_next(struct cw_alert_fold *f, int64_t now_ns, int64_t wall_ns,
			struct cw_folded *ret);
/* Drops collected alerts whose incident is over. Keeps alerts that are under way. */
typedef bool (*cw_alert_fold_over_fn)(uint32_t uid, const char *id, void *user);
void cw_alert_fold_drop_over(struct cw_alert_fold *f, cw_alert_fold_over_fn is_over, void *user);
/* Stores the user's folded alert that is under way in *ret. Returns false if there is none. */
bool cw_alert_fold_under_way(const struct cw_alert_fold *f, uint32_t uid, struct cw_folded *ret);
/*
 * Forgets all collected alerts, also those under way. The callers will ask about each alert again.
 */
void cw_alert_fold_clear(struct cw_alert_fold *f);
/*
 * Ends the user's folded alert that was under way. If it was not delivered, its incidents wait for
 * another folded alert.
 */
void cw_alert_fold_done(struct cw_alert_fold *f, uint32_t uid, bool was_delivered, int64_t now_ns);

/* Returns the number of alerts that are collected or under way. */
uint32_t cw_alert_fold_count(const struct cw_alert_fold *f);
