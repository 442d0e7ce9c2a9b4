/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides about the alert of an incident. We post it to the webhook, or suppress it (mode = shadow,
 * or a muted job). If no webhook is configured, we leave it to the journal. We decide once per id
 * and remember the decision on disk beside the bundles, so a restart does not change it.
 *
 * Alerts of one user beyond a rate are collected and go out as one (daemon/alerts/alert_fold.h).
 *
 * The bundles are the spool: a bundle whose id is not settled is posted again, also after a
 * restart. Each attempt renders its text from the current bundle. If an incident ends before its
 * alert was delivered, it pages no human. The receiver of notices then gets it in the past tense.
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
 * Called when an incident or post-mortem gets its first bundle. The callback adds further documents
 * of this node to the bundle, as new references. head is the incident or post-mortem.
 */
typedef void (*cw_alerts_complete_fn)(const json_t *head, struct cw_bundle *bundle, void *user);
/* Called when the alert of this id was delivered, or when its delivery failed. */
typedef void (*cw_alerts_posted_fn)(const struct cw_incident_due *due, bool delivered, void *user);

struct cw_alerts_config {
	struct event_base *base;
	const struct cw_clock *clock;
	struct cw_store *store; /* borrowed */
	struct cw_mutes *mutes; /* borrowed; NULL = no job is muted */
	const char *state_dir;  /* borrowed: alerts name the bundles' directory */
	cw_alerts_posted_fn on_posted;
	cw_alerts_complete_fn complete; /* NULL = this node adds nothing */
	void *user;
};

/* Why an alert was suppressed. */
enum cw_suppressed {
	CW_SUPPRESSED_SHADOW = 0,
	CW_SUPPRESSED_MUTED,
	CW_SUPPRESSED__MAX,
};

/* Returns the name in bundles, status and metrics, such as "shadow". */
const char *cw_alerts_suppressed_name(unsigned why);

/* Counters of alerts since the start. */
struct cw_alerts_stats {
	struct cw_webhook_stats webhook;
	uint64_t incidents[CW_CLASS__MAX]; /* confirmed incidents, once per id, alerted or not */
	uint64_t notices[CW_CLASS__MAX];   /* incidents reported as notices only */
	uint64_t suppressed[CW_SUPPRESSED__MAX];
	uint64_t postmortems; /* jobs that failed and left a post-mortem */
	uint64_t unsynced;    /* alerts that went out before their bundle was on disk */
	uint64_t unlearned;   /* cw_alerts_learn() calls beyond its limit */
	uint64_t folded;      /* alerts that went out inside a folded alert */
	uint64_t folds;       /* folded alerts */
	uint32_t collected;   /* alerts that wait for a folded alert or are under way in one */
};

/* Copies mode, webhook and its format from `from`. 0, or -errno with err set. */
int cw_alerts_new(const struct cw_alerts_config *config, const struct cw_config *from,
		  struct cw_alerts **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_alerts *cw_alerts_free(struct cw_alerts *a);

/*
 * Applies a changed configuration to the running daemon. `old` is the configuration in force. If
 * the webhook changes, alerts under way start again with the new one. On failure all settings stay.
 */
int cw_alerts_reload(struct cw_alerts *a, const struct cw_config *old, const struct cw_config *from,
		     struct cw_err *err);

/* The alert effects of an incident; struct cw_leader_effects documents each. */
void cw_alerts_path(const struct cw_alerts *a, const char *id, char *buf, size_t len);
int cw_alerts_put(struct cw_alerts *a, const struct cw_bundle *bundle);
json_t *cw_alerts_load_incident(const struct cw_alerts *a, const struct cw_incident_due *due,
				bool *ret_is_whole);
int cw_alerts_update_incident(struct cw_alerts *a, json_t *incident);
bool cw_alerts_was_sent(const struct cw_alerts *a, const struct cw_incident_due *due);
bool cw_alerts_was_sent_here(const struct cw_alerts *a, const struct cw_incident_due *due);
const char *cw_alerts_suppress_reason(struct cw_alerts *a, const struct cw_incident_due *due);
void cw_alerts_muted(struct cw_alerts *a, const char *node, uint32_t uid, const char *label,
		     uint64_t until_wall_ns);
bool cw_alerts_wants_notices(const struct cw_alerts *a);
/*
 * Writes the notice to the journal. If notice_webhook_url is set and the job is not muted, we also
 * post it there. A notice is not spooled, so the webhook must accept it at once.
 */
void cw_alerts_note(struct cw_alerts *a, const struct cw_incident_due *due, const json_t *doc);
int cw_alerts_send(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc);
/*
 * If webhook_postmortems is set and the job is not muted, we also post the post-mortem. We do not
 * spool it, so the webhook must accept it at once.
 */
int cw_alerts_put_postmortem(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc,
			     bool may_alert);

/*
 * Call it when another node has delivered this alert. If this node leads the job later, it does not
 * send the alert again. The alert counts against the user's rate. Users share a limit of a few per
 * second. Beyond it we do not note the alert, and the receiver has to compare keys. We also ignore
 * a message that does not name the job (no label).
 */
void cw_alerts_learn(struct cw_alerts *a, const char *from,
		     const struct cw_msg_incident_delivered *d);

/*
 * Call it every few seconds. It sends collected alerts (daemon/alerts/alert_fold.h) and one alert
 * of an ended job whose delivery is unconfirmed.
 */
void cw_alerts_resend(struct cw_alerts *a);

bool cw_alerts_is_shadow(const struct cw_alerts *a);
void cw_alerts_stats(const struct cw_alerts *a, struct cw_alerts_stats *ret);
