/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of an incident's alert: posted to the webhook, or suppressed (mode = shadow, a muted
 * job), or left to the journal where no webhook is configured. Decided once for an id, and
 * remembered on disk beside the bundles, so that a restart decides nothing anew.
 *
 * Alerts of one user beyond a rate are collected and go out as one (daemon/alerts/alert_fold.h).
 *
 * The bundles are the spool: one whose id is not settled is posted again, also after a restart.
 * What is posted is made at each attempt from the bundle of that moment. An incident that is over
 * before its alert was delivered pages nobody: the receiver of notices gets it, in the past tense.
 *
 * Loop thread only; writes small files.
 */
#pragma once

#include "common/clock.h"
#include "common/err.h"
#include "daemon/alerts/webhook.h"
#include "daemon/config/config.h"
#include "leader/incident/leader_effects.h"
#include "model/verdict_types.h"
#include "proto/messages.h"

struct event_base;
struct cw_alerts;
struct cw_mutes;
struct cw_store;

/*
 * A bundle is put that there was none of: puts into it what this node knows beside, as new
 * references; head is its incident or epitaph.
 */
typedef void (*cw_alerts_complete_fn)(const json_t *head, struct cw_bundle *bundle, void *user);
/* The alert of this id was delivered, or could not be. */
typedef void (*cw_alerts_posted_fn)(const struct cw_incident_due *due, bool delivered, void *user);

struct cw_alerts_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_store *store; /* borrowed */
	struct cw_mutes *mutes; /* borrowed; NULL = no job is muted */
	const char *state_dir;  /* borrowed: names the bundles' directory in alerts */
	cw_alerts_posted_fn on_posted;
	cw_alerts_complete_fn complete; /* NULL = nothing is known beside */
	void *user;
};

/* Why nobody was told. */
enum cw_suppressed {
	CW_SUPPRESSED_SHADOW = 0,
	CW_SUPPRESSED_MUTED,
	CW_SUPPRESSED__MAX,
};

/* As it stands in bundles, status and metrics: "shadow". */
const char *cw_alerts_suppressed_name(unsigned why);

/* What happened to alerts since the start. */
struct cw_alerts_stats {
	struct cw_webhook_stats webhook;
	uint64_t incidents[CW_CLASS__MAX]; /* confirmed, once per id, alerted or not */
	uint64_t notices[CW_CLASS__MAX];   /* told of to those who look */
	uint64_t suppressed[CW_SUPPRESSED__MAX];
	uint64_t epitaphs;  /* jobs that failed and left one */
	uint64_t unsynced;  /* went out before their bundle was on disk */
	uint64_t unlearned; /* cw_alerts_learn() beyond its limit */
	uint64_t folded;    /* alerts that went out in one with others */
	uint64_t folds;     /* these ones */
	uint32_t collected; /* waiting for that, or under way */
};

/* Takes over mode, webhook and its format from `from`. 0, or -errno with err set. */
int cw_alerts_new(const struct cw_alerts_config *config, const struct cw_config *from,
		  struct cw_alerts **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_alerts *cw_alerts_free(struct cw_alerts *a);

/*
 * The same again while running: `old` is what it was made from. Alerts under way to a webhook that
 * changes start again with the new one. On failure nothing has changed.
 */
int cw_alerts_reload(struct cw_alerts *a, const struct cw_config *old, const struct cw_config *from,
		     struct cw_err *err);

/* What an incident asks for: struct cw_leader_effects says what each of them is. */
void cw_alerts_path(const struct cw_alerts *a, const char *id, char *buf, size_t len);
int cw_alerts_put(struct cw_alerts *a, const struct cw_bundle *bundle);
json_t *cw_alerts_before(const struct cw_alerts *a, const struct cw_incident_due *due,
			 bool *ret_is_whole);
int cw_alerts_amend(struct cw_alerts *a, json_t *incident);
bool cw_alerts_was_sent(const struct cw_alerts *a, const struct cw_incident_due *due);
bool cw_alerts_was_sent_here(const struct cw_alerts *a, const struct cw_incident_due *due);
const char *cw_alerts_suppress_reason(struct cw_alerts *a, const struct cw_incident_due *due);
void cw_alerts_muted(struct cw_alerts *a, const char *node, uint32_t uid, const char *label,
		     uint64_t until_wall_ns);
bool cw_alerts_wants_notices(const struct cw_alerts *a);
/* The journal has it. With notice_webhook_url, and unless jobs are muted, it is posted there, as
 * long as it is accepted at once: its bundle is no spool for notices. */
void cw_alerts_note(struct cw_alerts *a, const struct cw_incident_due *due, const json_t *doc);
int cw_alerts_send(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc);
/* With webhook_epitaphs, and unless jobs are muted, it is posted, too, as long as it is accepted
 * at once: no epitaph is worth a spool. */
int cw_alerts_bury(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc,
		   bool may_tell);

/*
 * Another node has delivered this alert: should this one lead the job some day, it tells nobody
 * again. It counts against the user's rate. Beyond a few a second, which users share, it is not
 * noted, then the receiver has to compare keys; nor is one that does not say whose it is (no
 * label).
 */
void cw_alerts_learn(struct cw_alerts *a, const char *from,
		     const struct cw_msg_incident_delivered *d);

/*
 * Every few seconds: one alert of a job that is over and that nobody is known to have got, and
 * those that were collected (daemon/alerts/alert_fold.h).
 */
void cw_alerts_resend(struct cw_alerts *a);

bool cw_alerts_is_shadow(const struct cw_alerts *a);
void cw_alerts_stats(const struct cw_alerts *a, struct cw_alerts_stats *ret);
