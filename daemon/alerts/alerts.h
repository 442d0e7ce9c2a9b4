/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides about the alert of an incident. We post it to the webhook, or suppress it if mode =
 * shadow or the job is muted. If no webhook is configured, the alert is only in the journal. We
 * decide once per id. The decision is on disk beside the bundles, so a restart does not change it.
 *
 * If a user has many alerts, we collect some of them and send one folded alert
 * (daemon/alerts/alert_fold.h).
 *
 * The stored bundles serve as the spool. As long as a bundle's alert is not settled, we post it
 * again, also after a restart. Each attempt renders the text from the current bundle. If an
 * incident ends before its alert was delivered, we do not post it as an alert. The receiver of
 * notices then gets it in the past tense.
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

struct cw_fork_server;
struct event_base;
struct cw_alerts;
struct cw_mutes;
struct cw_store;

/*
 * Called before we write the first bundle of an incident or post-mortem. The callee adds further
 * documents of this node to the bundle, as new references. head is the incident or post-mortem.
 */
typedef void (*cw_alerts_complete_fn)(const json_t *head, struct cw_bundle *bundle, void *user);
/* Called when the webhook has accepted this alert, or when the last attempt has failed. */
typedef void (*cw_alerts_posted_fn)(const struct cw_incident_due *due, bool delivered, void *user);

struct cw_alerts_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* has the job cw_webhook_post_child(); borrowed */
	const struct cw_clock *clock;
	struct cw_store *store; /* borrowed until cw_alerts_free() */
	struct cw_mutes *mutes; /* borrowed until cw_alerts_free(); NULL = no job is muted */
	/* Borrowed until cw_alerts_free(); alerts name a path in this directory. */
	const char *state_dir;
	cw_alerts_posted_fn on_posted;
	cw_alerts_complete_fn complete; /* NULL = this node adds no documents */
	void *user;
};

/* The reason for suppressing an alert. */
enum cw_suppressed {
	CW_SUPPRESSED_SHADOW = 0,
	CW_SUPPRESSED_MUTED,
	CW_SUPPRESSED__MAX,
};

/* Returns the name of the reason in bundles, status and metrics, such as "shadow". */
const char *cw_alerts_suppressed_name(unsigned why);

/* Counters of alerts since the start. */
struct cw_alerts_stats {
	struct cw_webhook_stats webhook;
	/* Confirmed incidents, once per id, also those without an alert. */
	uint64_t incidents[CW_CLASS__MAX];
	uint64_t notices[CW_CLASS__MAX]; /* incidents that we reported only as notices */
	uint64_t suppressed[CW_SUPPRESSED__MAX];
	uint64_t postmortems; /* jobs that failed and left a post-mortem */
	uint64_t unsynced;    /* alerts posted before their bundle was on disk */
	/* Alerts of other nodes that cw_alerts_learn() did not note, because of its limit. */
	uint64_t unlearned;
	uint64_t folded; /* alerts that went out inside a folded alert */
	uint64_t folds;  /* folded alerts, each of which counts once */
	/* Alerts that wait for a folded alert, or are part of one under way. */
	uint32_t collected;
};

/* Copies mode, webhook and its format from `from`. Returns 0, or -errno with err set. */
int cw_alerts_new(const struct cw_alerts_config *config, const struct cw_config *from,
		  struct cw_alerts **ret, struct cw_err *err);
/* Takes NULL; returns NULL. */
struct cw_alerts *cw_alerts_free(struct cw_alerts *a);

/*
 * Applies the changed configuration `from` to the running daemon. `old` is the configuration so
 * far. If the webhook changes, we post the alerts that are under way again, with the new webhook.
 * On failure all settings stay as they are.
 */
int cw_alerts_reload(struct cw_alerts *a, const struct cw_config *old, const struct cw_config *from,
		     struct cw_err *err);

/*
 * These functions implement the alert effects of an incident. struct cw_leader_effects documents
 * each of them.
 */
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
 * Writes the notice to the journal. If notice_webhook_url is set and the job is not muted, also
 * posts it there. We do not store notices for a retry. If the webhook's queue is full, the notice
 * is only in the journal.
 */
void cw_alerts_note(struct cw_alerts *a, const struct cw_incident_due *due, const json_t *doc);
int cw_alerts_send(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc);
/*
 * Writes the post-mortem to the store. If webhook_postmortems is set and the job is not muted, also
 * posts it. We post it only once: if the webhook's queue is full, we drop the post.
 */
int cw_alerts_put_postmortem(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc,
			     bool may_alert);

/*
 * Call this when another node reports that it has delivered this alert. If this node leads the job
 * later, it does not send the alert again. The alert takes one of the user's tokens
 * (daemon/alerts/alert_fold.h). All users share a limit of a few notes per second. Beyond the limit
 * we do not note the alert, so it may be sent twice, with the same key. We ignore a message that
 * does not name its job (no label).
 */
void cw_alerts_learn(struct cw_alerts *a, const char *from,
		     const struct cw_msg_incident_delivered *d);

/*
 * Call this every few seconds. Sends the folded alerts whose time has come
 * (daemon/alerts/alert_fold.h). Also retries one unsent alert of an ended job.
 */
void cw_alerts_resend(struct cw_alerts *a);

bool cw_alerts_is_shadow(const struct cw_alerts *a);
void cw_alerts_stats(const struct cw_alerts *a, struct cw_alerts_stats *ret);
