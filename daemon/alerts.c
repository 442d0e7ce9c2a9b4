/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/alert_slack.h"
#include "daemon/mutes.h"
#include "daemon/sent_ids.h"
#include "daemon/store.h"

#define WEBHOOK_TIMEOUT_MS 10000u
#define WEBHOOK_ATTEMPTS 8u
#define WEBHOOK_PENDING 64u

/* Each is written to disk; a cluster in which more hang at once can do with keys alone. */
#define LEARN_MAX 16u
#define LEARN_EVERY_NS (10 * CW_NS_PER_S)

struct cw_alerts {
	struct cw_alerts_config config;
	struct cw_webhook *webhook; /* NULL = none configured */
	bool is_shadow, is_slack;
	unsigned learned; /* since learn_ns */
	int64_t learn_ns;
	struct cw_webhook_stats past; /* of webhooks that are gone */
	struct cw_alerts_stats stats;
};

const char *cw_withheld_name(unsigned why)
{
	static const char *const names[CW_WITHHELD__MAX] = {
		[CW_WITHHELD_SHADOW] = "shadow",
		[CW_WITHHELD_MUTED] = "muted",
	};

	return why < CW_WITHHELD__MAX ? names[why] : "?";
}

static void settle(struct cw_alerts *a, uint32_t uid, const char *id, const char *how)
{
	int r = cw_store_mark_sent(a->config.store, uid, id, how);

	if (r < 0)
		log_warn("inc=%s: cannot be noted as %s: %s; after a restart it may go out again",
			 id, *how ? how : "sent", strerror(-r));
}

/* ---- what the incident asks for ---- */

static void io_path(void *user, const char *id, char *buf, size_t len)
{
	const struct cw_alerts *a = user;

	(void)snprintf(buf, len, "%s/incidents/%s", a->config.state_dir, id);
}

static int io_put(void *user, const struct cw_bundle *bundle)
{
	struct cw_alerts *a = user;
	char path[512];

	return cw_store_put(a->config.store, bundle, path, sizeof(path));
}

/* The word it was settled with, also under its id of before an upgrade; NULL = it is not. */
static const char *settled(const struct cw_alerts *a, const struct cw_incident_due *due)
{
	if (cw_store_was_sent(a->config.store, due->uid, due->id))
		return cw_store_sent_how(a->config.store, due->uid, due->id);
	return due->old_id ? cw_store_sent_before(a->config.store, due->uid, due->job, due->old_id)
			   : NULL;
}

static bool io_was_sent(void *user, const struct cw_incident_due *due)
{
	return settled(user, due) != NULL;
}

static bool io_was_sent_here(void *user, const struct cw_incident_due *due)
{
	const char *how = settled(user, due);

	return how && strcmp(how, CW_STORE_ELSEWHERE) != 0;
}

/* The word that was decided on before a restart, as the static one of today. */
static const char *decided_before(const char *how)
{
	for (unsigned why = 0; why < CW_WITHHELD__MAX; why++)
		if (!strcmp(how, cw_withheld_name(why)))
			return cw_withheld_name(why);
	return NULL;
}

static const char *io_withhold(void *user, const struct cw_incident_due *due)
{
	struct cw_alerts *a = user;
	const char *how = settled(a, due);
	unsigned why = CW_WITHHELD__MAX;

	a->stats.incidents[due->klass < CW_CLASS__MAX ? due->klass : CW_CLASS_UNKNOWN]++;
	if (how)
		return decided_before(how);
	if (a->is_shadow)
		why = CW_WITHHELD_SHADOW;
	else if (a->config.mutes && cw_mutes_until(a->config.mutes, due->uid, due->job))
		why = CW_WITHHELD_MUTED;
	if (why == CW_WITHHELD__MAX)
		return NULL;
	a->stats.withheld[why]++;
	settle(a, due->uid, due->id, cw_withheld_name(why));
	return cw_withheld_name(why);
}

static void on_posted(uint32_t uid, const char *id, bool delivered, long status, void *user)
{
	struct cw_alerts *a = user;
	const char *job = cw_store_job(a->config.store, uid, id);
	const struct cw_incident_due due = { .id = id, .uid = uid, .job = job ? job : "" };

	if (delivered)
		settle(a, uid, id, "");
	else
		log_warn("inc=%s: the webhook did not take the alert (HTTP %ld)", id, status);
	/*
	 * A server that is away comes back at any time: begin anew, every minute or so. One that
	 * refuses will say the same again: that has five minutes.
	 */
	if (!delivered && (status == 0 || status >= 500))
		cw_store_resend_soon(a->config.store);
	a->config.on_posted(&due, delivered, a->config.user);
}

static int io_alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	struct cw_alerts *a = user;
	_cleanup_(freep) char *text = NULL;
	json_t *body;

	if (!a->webhook) { /* the journal has it */
		settle(a, due->uid, due->id, "");
		return 0;
	}
	if (cw_webhook_is_pending(a->webhook, due->uid, due->id))
		return 0;
	body = a->is_slack ? cw_alert_slack(doc) : json_incref(doc);
	text = json_dumps(body, JSON_COMPACT);
	json_decref(body);
	if (!text)
		return -ENOMEM;
	return cw_webhook_post(a->webhook, due->uid, due->id, text, on_posted, a);
}

const struct cw_incident_io cw_alerts_io = {
	.path = io_path,
	.put = io_put,
	.was_sent = io_was_sent,
	.was_sent_here = io_was_sent_here,
	.withhold = io_withhold,
	.alert = io_alert,
};

void cw_alerts_learn(struct cw_alerts *a, const char *from,
		     const struct cw_msg_incident_delivered *d)
{
	int64_t now = cw_clock_now_ns(a->config.clock);

	if (!*d->label || !cw_incident_id_is_valid(d->id) ||
	    cw_store_was_sent(a->config.store, d->uid, d->id))
		return;
	if (now - a->learn_ns > LEARN_EVERY_NS) {
		a->learn_ns = now;
		a->learned = 0;
	}
	if (a->learned++ >= LEARN_MAX) {
		a->stats.unlearned++;
		return;
	}
	log_debug("inc=%s: %s has delivered it", d->id, from);
	settle(a, d->uid, d->id, CW_STORE_ELSEWHERE);
}

/* What the incident itself retries while its job lives; this is for those that are over. */
void cw_alerts_resend(struct cw_alerts *a)
{
	json_t *doc = a->webhook ? cw_store_next_unsent(a->config.store) : NULL;
	const struct cw_incident_due due = {
		.id = json_string_value(json_object_get(doc, "id")),
		.uid = (uint32_t)json_integer_value(json_object_get(doc, "uid")),
		.job = json_string_value(json_object_get(doc, "job")),
	};

	if (due.id && io_alert(a, &due, doc) < 0)
		log_info("inc=%s: its alert waits for its turn", due.id);
	json_decref(doc);
}

/* ---- configuration ---- */

static int open_webhook(const struct cw_alerts *a, const struct cw_config *c,
			struct cw_webhook **ret, struct cw_err *err)
{
	struct cw_webhook_config config = {
		.base = a->config.base,
		.clock = a->config.clock,
		.url = c->webhook_url,
		.header_file = *c->webhook_header_file ? c->webhook_header_file : NULL,
		.timeout_ms = WEBHOOK_TIMEOUT_MS,
		.max_attempts = WEBHOOK_ATTEMPTS,
		.max_pending = WEBHOOK_PENDING,
	};

	*ret = NULL;
	return *c->webhook_url ? cw_webhook_new(&config, ret, err) : 0;
}

static void add_webhook_stats(struct cw_webhook_stats *to, const struct cw_webhook *w)
{
	struct cw_webhook_stats of = { 0 };

	if (w)
		cw_webhook_stats(w, &of);
	to->attempts += of.attempts;
	to->delivered += of.delivered;
	to->failed += of.failed;
	to->refused += of.refused;
	to->pending = of.pending;
}

/* The header file may hold another token under the same name: then it is another webhook. */
static bool same_webhook(const struct cw_config *a, const struct cw_config *b)
{
	return !strcmp(a->webhook_url, b->webhook_url) && !*a->webhook_header_file &&
	       !*b->webhook_header_file;
}

static void take_words(struct cw_alerts *a, const struct cw_config *from)
{
	a->is_shadow = !strcmp(from->mode, "shadow");
	a->is_slack = !strcmp(from->webhook_format, "slack");
}

int cw_alerts_reload(struct cw_alerts *a, const struct cw_config *old, const struct cw_config *from,
		     struct cw_err *err)
{
	struct cw_webhook *webhook;
	int r;

	if (!same_webhook(old, from)) {
		r = open_webhook(a, from, &webhook, err);
		if (r < 0)
			return r;
		add_webhook_stats(&a->past, a->webhook);
		cw_webhook_free(a->webhook);
		a->webhook = webhook;
		cw_store_resend_soon(a->config.store);
	}
	take_words(a, from);
	return 0;
}

int cw_alerts_new(const struct cw_alerts_config *config, const struct cw_config *from,
		  struct cw_alerts **ret, struct cw_err *err)
{
	struct cw_alerts *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return cw_err_set(err, ENOMEM, "out of memory");
	a->config = *config;
	r = open_webhook(a, from, &a->webhook, err);
	if (r < 0) {
		free(a);
		return r;
	}
	take_words(a, from);
	*ret = a;
	return 0;
}

struct cw_alerts *cw_alerts_free(struct cw_alerts *a)
{
	if (!a)
		return NULL;
	cw_webhook_free(a->webhook);
	free(a);
	return NULL;
}

bool cw_alerts_is_shadow(const struct cw_alerts *a)
{
	return a->is_shadow;
}

bool cw_alerts_has_webhook(const struct cw_alerts *a)
{
	return a->webhook != NULL;
}

void cw_alerts_stats(const struct cw_alerts *a, struct cw_alerts_stats *ret)
{
	*ret = a->stats;
	ret->webhook = a->past;
	add_webhook_stats(&ret->webhook, a->webhook);
}
