/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An alert takes four steps. We decide whether to suppress it, and skip it if it was sent before.
 * We send it alone, or fold it with others. Then we sync its bundles to disk. At last we post it.
 * The store keeps one word beside each id that says how its alert was settled: sent, folded,
 * suppressed or over. Every function here reads this word first. If an alert is neither posted nor
 * settled, we find it in the store and try again.
 */
#include "daemon/alerts/alerts.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "common/json/json_whole.h"
#include "common/log.h"
#include "daemon/alerts/alert_fold.h"
#include "daemon/alerts/alert_slack.h"
#include "daemon/alerts/mutes.h"
#include "daemon/store/bundle_sync.h"
#include "daemon/store/store.h"
#include "identity/quota.h"
#include "leader/incident/incident_id.h"
#include "report/doc/incident_doc.h"
#include "report/doc/incident_facts.h"

/* With the look-up of a name: the system's resolver tries a third name server after 10 s. */
#define WEBHOOK_TIMEOUT_MS 20000u
#define WEBHOOK_ATTEMPTS 8u
#define WEBHOOK_PENDING 64u

/* The word in the store for an alert that went out in a folded alert. */
#define FOLDED "folded"
/*
 * Suffixes of the keys of notices. Without a suffix, a receiver of both kinds would take a notice
 * and an alert of one incident for the same message.
 */
#define NOTICE_KEY "-notice"
#define OVER_KEY "-over"
/*
 * We note at most LEARN_MAX alerts of other nodes per LEARN_EVERY_NS, because each note is a disk
 * write. If more jobs hang at once, an alert may be sent twice. The receiver can then compare the
 * keys.
 */
#define LEARN_MAX 16u
#define LEARN_EVERY_NS (10 * CW_NS_PER_S)

/* A message that waits until its bundles are on disk. */
struct outgoing {
	struct outgoing *next, *prev;
	struct cw_alerts *owner;
	uint32_t uid;
	bool is_notice;
	bool is_displaced; /* another user's message took its place, so we do not post it */
	char *id, *text, *key;
	cw_webhook_render_fn render;
	cw_webhook_fn fn;
};

struct cw_alerts {
	struct cw_alerts_config config;
	struct cw_bundle_sync *sync;
	struct outgoing *outgoing;
	struct cw_webhook *webhook; /* the webhook of alerts; NULL = none is configured */
	struct cw_webhook *notices; /* the webhook of notices; NULL = none is configured */
	bool is_shadow, is_slack, wants_notices, wants_postmortems;
	struct cw_alert_fold *fold;
	uint32_t learners[LEARN_MAX]; /* uids of the alerts that we noted since learn_ns */
	unsigned learned;
	int64_t learn_ns;
	struct cw_webhook_stats past; /* sums over webhooks that a reload has replaced */
	struct cw_alerts_stats stats;
};

const char *cw_alerts_suppressed_name(unsigned why)
{
	static const char *const names[CW_SUPPRESSED__MAX] = {
		[CW_SUPPRESSED_SHADOW] = "shadow",
		[CW_SUPPRESSED_MUTED] = "muted",
	};

	return why < CW_SUPPRESSED__MAX ? names[why] : "?";
}

static void settle(struct cw_alerts *a, uint32_t uid, const char *id, const char *how)
{
	int r = cw_store_mark_sent(a->config.store, uid, id, how);

	if (r < 0)
		log_warn("inc=%s: cannot be recorded as %s: %s; after a restart it may be sent "
			 "again",
			 id, *how ? how : "sent", strerror(-r));
}

/* ---- alert effects of an incident ---- */

void cw_alerts_path(const struct cw_alerts *a, const char *id, char *buf, size_t len)
{
	(void)snprintf(buf, len, "%s/incidents/%s", a->config.state_dir, id);
}

/*
 * Reads id, user and job of an incident. The texts live as long as the arena. Returns false if the
 * incident lacks them, or if memory runs out.
 */
static bool read_due(const json_t *incident, struct cw_arena *arena, struct cw_incident_due *ret)
{
	struct cw_incident_facts facts;

	if (cw_incident_facts_read(incident, arena, &facts, NULL, NULL) < 0 || !facts.id ||
	    facts.uid < 0)
		return false;
	*ret = (struct cw_incident_due){
		.id = facts.id,
		.job = cw_fact_text(facts.job),
		.uid = (uint32_t)facts.uid,
	};
	return true;
}

static bool is_new(struct cw_alerts *a, const json_t *incident)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	struct cw_incident_due due;

	return read_due(incident, &arena, &due) && !cw_store_job(a->config.store, due.uid, due.id);
}

/*
 * Writes the first bundle of an id. The ops and tensors of a job keep changing, so later writes
 * keep those of the first.
 */
static int put_new(struct cw_alerts *a, const struct cw_bundle *bundle)
{
	struct cw_bundle whole = *bundle;
	char path[512];
	int r;

	whole.ops = NULL;
	whole.summaries = NULL;
	if (a->config.complete)
		a->config.complete(bundle->incident, &whole, a->config.user);
	r = cw_store_put(a->config.store, &whole, path, sizeof(path));
	json_decref(whole.ops);
	json_decref(whole.summaries);
	return r;
}

int cw_alerts_put(struct cw_alerts *a, const struct cw_bundle *bundle)
{
	char path[512];

	if (is_new(a, bundle->incident))
		return put_new(a, bundle);
	return cw_store_put(a->config.store, bundle, path, sizeof(path));
}

/*
 * Returns the word for how the alert was settled; NULL = it is not settled. An incident that was
 * over and is open again counts as not settled, because no alert went out for it.
 */
static const char *settled(const struct cw_alerts *a, const struct cw_incident_due *due)
{
	const char *how = cw_store_sent_how(a->config.store, due->uid, due->id);

	if (!cw_store_was_sent(a->config.store, due->uid, due->id) || !strcmp(how, CW_STORE_OVER))
		return NULL;
	return how;
}

bool cw_alerts_was_sent(const struct cw_alerts *a, const struct cw_incident_due *due)
{
	return settled(a, due) != NULL;
}

bool cw_alerts_was_sent_here(const struct cw_alerts *a, const struct cw_incident_due *due)
{
	const char *how = settled(a, due);

	return how && strcmp(how, CW_STORE_DELIVERED_BY_PEER) != 0;
}

/*
 * Returns the static string for a word from the disk; NULL = the word is no reason for suppressing.
 */
static const char *decided_before(const char *how)
{
	for (unsigned why = 0; why < CW_SUPPRESSED__MAX; why++)
		if (!strcmp(how, cw_alerts_suppressed_name(why)))
			return cw_alerts_suppressed_name(why);
	return NULL;
}

const char *cw_alerts_suppress_reason(struct cw_alerts *a, const struct cw_incident_due *due)
{
	const char *how = settled(a, due);
	unsigned why = CW_SUPPRESSED__MAX;

	a->stats.incidents[due->verdict_class < CW_CLASS__MAX ? due->verdict_class
							      : CW_CLASS_UNKNOWN]++;
	if (how)
		return decided_before(how);
	if (a->is_shadow)
		why = CW_SUPPRESSED_SHADOW;
	else if (a->config.mutes && cw_mutes_until(a->config.mutes, due->uid, due->job))
		why = CW_SUPPRESSED_MUTED;
	if (why == CW_SUPPRESSED__MAX)
		return NULL;
	a->stats.suppressed[why]++;
	settle(a, due->uid, due->id, cw_alerts_suppressed_name(why));
	return cw_alerts_suppressed_name(why);
}

void cw_alerts_muted(struct cw_alerts *a, const char *node, uint32_t uid, const char *label,
		     uint64_t until_wall_ns)
{
	if (a->config.mutes)
		cw_mutes_merge_remote(a->config.mutes, node, uid, label,
				      until_wall_ns > INT64_MAX ? CW_MUTE_FOR_EVER
								: (int64_t)until_wall_ns);
}

bool cw_alerts_wants_notices(const struct cw_alerts *a)
{
	return a->wants_notices;
}

static void on_posted(uint32_t uid, const char *id, bool delivered, long status, void *user)
{
	struct cw_alerts *a = user;
	const char *job = cw_store_job(a->config.store, uid, id);
	const struct cw_incident_due due = { .id = id, .uid = uid, .job = job ? job : "" };

	if (delivered)
		settle(a, uid, id, "");
	else
		cw_alert_fold_refund(a->fold, uid);
	/*
	 * Choose the time of the next try. If the server did not answer, it may come back at any
	 * time, so we start again after about a minute. If the server refused the alert, it will
	 * refuse it again, so we start again after five minutes.
	 */
	if (!delivered && (status == 0 || status >= 500))
		cw_store_resend_soon(a->config.store);
	a->config.on_posted(&due, delivered, a->config.user);
}

static void outgoing_free(struct outgoing *o)
{
	free(o->id);
	free(o->text);
	free(o->key);
	free(o);
}

static void drop_outgoing(struct cw_alerts *a, bool is_notice)
{
	struct outgoing *o, *tmp;

	DL_FOREACH_SAFE (a->outgoing, o, tmp) {
		if (o->is_notice != is_notice)
			continue;
		cw_bundle_sync_cancel(a->sync, o);
		DL_DELETE(a->outgoing, o);
		outgoing_free(o);
	}
}

static bool is_outgoing(const struct cw_alerts *a, uint32_t uid, const char *id)
{
	const struct outgoing *o;

	DL_FOREACH (a->outgoing, o)
		if (!o->is_notice && o->uid == uid && !strcmp(o->id, id))
			return true;
	return cw_webhook_is_pending(a->webhook, uid, id);
}

/*
 * Posts a message whose bundles are synced. If the webhook's queue is full, we treat this like a
 * refusal by the server.
 */
static void on_synced(bool is_on_disk, void *user)
{
	struct outgoing *o = user;
	struct cw_alerts *a = o->owner;
	struct cw_webhook *to = o->is_notice ? a->notices : a->webhook;
	int r = -EAGAIN;

	DL_DELETE(a->outgoing, o);
	if (!o->is_displaced)
		r = cw_webhook_post_rendered(to, o->uid, o->key, o->text, o->render, o->fn, a);
	if (r < 0) {
		/* The webhook logs what it could not deliver, and it never had this message. */
		log_warn("inc=%s: not posted now: %s", o->key,
			 o->is_displaced ? "another user's message took its place" : strerror(-r));
		if (o->fn)
			o->fn(o->uid, o->key, false, 0, a);
	}
	outgoing_free(o);
}

static json_t *slack_body(const json_t *doc, size_t n)
{
	return n > 1 ? cw_alert_slack_folded(doc) : cw_alert_slack(doc);
}

static char *make_text(const struct cw_alerts *a, const json_t *doc, size_t n)
{
	json_t *body = a->is_slack ? slack_body(doc, n) : json_incref((json_t *)doc);
	char *text = body ? cw_json_write(body, JSON_COMPACT) : NULL;

	json_decref(body);
	return text;
}

/* The way of posting one kind of message: the suffix of its key and its callbacks. */
struct way {
	const char *suffix;
	cw_webhook_render_fn render;
	cw_webhook_fn fn; /* NULL = the log of the webhook is enough */
};

/* Posts one alert, or several folded into one, after their bundles are on disk. */
static int post(struct cw_alerts *a, uint32_t uid, const char *const *ids, size_t n_ids,
		json_t *doc, const struct way *way)
{
	struct outgoing *o = calloc(1, sizeof(*o));
	int r = -ENOMEM;

	if (o) {
		*o = (struct outgoing){ .owner = a,
					.uid = uid,
					.is_notice = cw_incident_doc_is_notice(doc),
					.render = way->render,
					.fn = way->fn };
		o->id = strdup(ids[0]);
		o->text = make_text(a, doc, n_ids);
		if (asprintf(&o->key, "%s%s", ids[0], way->suffix) < 0)
			o->key = NULL;
	}
	if (o && o->id && o->text && o->key)
		r = cw_bundle_sync_start(a->sync, ids, n_ids, on_synced, o);
	if (r < 0) {
		if (o)
			outgoing_free(o);
		return r;
	}
	DL_APPEND(a->outgoing, o);
	return 0;
}

/*
 * Makes room for one more message of uid in the list. On a slow disk, a sync takes two seconds per
 * bundle. During that time the messages of one user must not fill the list. If another user's
 * message has to leave, we treat it like one that the server refused. This happens when its bundle
 * is synced, not inside this call.
 */
static bool make_room(const struct cw_alerts *a, uint32_t uid)
{
	struct cw_quota_charge charges[WEBHOOK_PENDING];
	struct outgoing *o, *displaced;
	void *holder = NULL;
	size_t n = 0;

	DL_FOREACH (a->outgoing, o) {
		if (o->is_displaced)
			continue;
		if (n == WEBHOOK_PENDING)
			return false; /* folded alerts are in the list, too, and have no limit */
		/* The list is in order of arrival, so the index serves as the time. */
		charges[n] = (struct cw_quota_charge){ .uid = o->uid,
						       .since_ns = (int64_t)n,
						       .holder = o };
		n++;
	}
	switch (cw_quota_charge_for(uid, charges, n, WEBHOOK_PENDING, &holder)) {
	case CW_QUOTA_ADMIT:
		return true;
	case CW_QUOTA_DISPLACE:
		displaced = holder;
		displaced->is_displaced = true;
		return true;
	default:
		return false;
	}
}

/* ---- rendering the text of an attempt ---- */

/* Extracts the incident's id from the key of a message. Returns false if the key is too long. */
static bool id_of_key(const char *key, char id[CW_INCIDENT_ID_MAX + 1])
{
	size_t len = strcspn(key, "-");

	/* Ids of other versions may contain a hyphen. Cut only our own suffixes off. */
	if (strcmp(key + len, NOTICE_KEY) != 0 && strcmp(key + len, OVER_KEY) != 0)
		len = strlen(key);
	if (len > CW_INCIDENT_ID_MAX)
		return false;
	memcpy(id, key, len);
	id[len] = '\0';
	return true;
}

/*
 * Returns the incident from its current bundle, a new reference; NULL = there is no readable
 * bundle.
 */
static json_t *incident_now(const struct cw_alerts *a, uint32_t uid, const char *id)
{
	const char *job = cw_store_job(a->config.store, uid, id);
	bool is_whole;

	return job ? cw_store_incident(a->config.store, uid, job, id, &is_whole) : NULL;
}

static char *text_now(const struct cw_alerts *a, const json_t *doc)
{
	json_t *current = cw_incident_doc_as_of(doc, cw_clock_wall_ns(a->config.clock));
	char *text = current ? make_text(a, current, 1) : NULL;

	json_decref(current);
	return text;
}

static char *render_notice(uint32_t uid, const char *key, void *user, bool *ret_is_withdrawn)
{
	struct cw_alerts *a = user;
	char id[CW_INCIDENT_ID_MAX + 1];
	json_t *doc = id_of_key(key, id) ? incident_now(a, uid, id) : NULL;
	char *text = doc && cw_incident_doc_is_notice(doc) ? text_now(a, doc) : NULL;

	/* A notice is never withdrawn, because the past tense is fine for it. */
	(void)ret_is_withdrawn;
	json_decref(doc);
	return text;
}

/*
 * Posts the notice of an ended incident, once per id. Returns false if this is not possible now.
 * cw_alerts_resend() then tries again.
 */
static bool post_over(struct cw_alerts *a, const struct cw_incident_due *due, const json_t *doc)
{
	static const struct way way = { .suffix = OVER_KEY };
	json_t *current;
	char how[96];
	int r = 0;

	if (cw_store_was_sent(a->config.store, due->uid, due->id))
		return true;
	if (a->notices &&
	    !(a->config.mutes && cw_mutes_until(a->config.mutes, due->uid, due->job))) {
		if (!make_room(a, due->uid))
			return false;
		current = cw_incident_doc_as_of(doc, cw_clock_wall_ns(a->config.clock));
		r = current ? post(a, due->uid, &due->id, 1, current, &way) : -ENOMEM;
		json_decref(current);
	}
	if (r < 0)
		return false;
	log_notice("inc=%s: %s before its alert was delivered: %s", due->id,
		   cw_incident_doc_how_over(doc, how, sizeof(how)),
		   a->notices ? "it goes to the receiver of notices"
			      : "not alerted, and not posted without notice_webhook_url");
	settle(a, due->uid, due->id, CW_STORE_OVER);
	return true;
}

static char *render_alert(uint32_t uid, const char *id, void *user, bool *ret_is_withdrawn)
{
	struct cw_alerts *a = user;
	const char *job = cw_store_job(a->config.store, uid, id);
	const struct cw_incident_due due = { .id = id, .uid = uid, .job = job ? job : "" };
	json_t *doc = incident_now(a, uid, id);
	char *text = NULL;

	if (doc && cw_incident_doc_is_over(doc)) {
		(void)post_over(a, &due, doc); /* if this fails, cw_alerts_resend() tries again */
		cw_alert_fold_refund(a->fold, uid);
		*ret_is_withdrawn = true;
	} else if (doc && !cw_incident_doc_is_notice(doc)) {
		text = text_now(a, doc);
	}
	json_decref(doc);
	return text;
}

int cw_alerts_send(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc)
{
	static const struct way way = { .suffix = "", .render = render_alert, .fn = on_posted };
	int r;

	if (!a->webhook) { /* no webhook: the alert is only in the journal */
		settle(a, due->uid, due->id, "");
		return 0;
	}
	if (cw_incident_doc_is_over(doc))
		return post_over(a, due, doc) ? 0 : -EAGAIN;
	if (is_outgoing(a, due->uid, due->id))
		return 0;
	if (!make_room(a, due->uid))
		return -EAGAIN;
	switch (cw_alert_fold_ask(a->fold, due->uid, due->id, doc,
				  cw_clock_now_ns(a->config.clock))) {
	case CW_FOLD_COLLECTED:
		return 0;
	case CW_FOLD_FULL:
		return -EAGAIN;
	default:
		break;
	}
	r = post(a, due->uid, &due->id, 1, doc, &way);
	if (r < 0)
		cw_alert_fold_refund(a->fold, due->uid);
	return r;
}

/*
 * Handles a delivered post-mortem. We announce it to the other daemons like an alert, so that they
 * do not post it again.
 */
static void on_postmortem_posted(uint32_t uid, const char *id, bool delivered, long status,
				 void *user)
{
	struct cw_alerts *a = user;
	const char *job = cw_store_job(a->config.store, uid, id);
	const struct cw_incident_due due = { .id = id, .uid = uid, .job = job ? job : "" };

	if (!delivered)
		return;
	settle(a, uid, id, "");
	a->config.on_posted(&due, true, a->config.user);
}

static bool wants_postmortem(const struct cw_alerts *a, const struct cw_incident_due *due)
{
	return a->webhook && a->wants_postmortems && !a->is_shadow &&
	       !(a->config.mutes && cw_mutes_until(a->config.mutes, due->uid, due->job)) &&
	       !settled(a, due) && make_room(a, due->uid);
}

void cw_alerts_note(struct cw_alerts *a, const struct cw_incident_due *due, const json_t *doc)
{
	static const struct way way = { .suffix = NOTICE_KEY, .render = render_notice };
	json_t *copy;

	a->stats.notices[due->verdict_class < CW_CLASS__MAX ? due->verdict_class
							    : CW_CLASS_UNKNOWN]++;
	if (!a->notices || a->is_shadow ||
	    (a->config.mutes && cw_mutes_until(a->config.mutes, due->uid, due->job)) ||
	    !make_room(a, due->uid))
		return;
	copy = json_copy((json_t *)doc);
	if (!copy || post(a, due->uid, &due->id, 1, copy, &way) < 0)
		log_warn("inc=%s: out of memory, the notice is not posted", due->id);
	json_decref(copy);
}

int cw_alerts_put_postmortem(struct cw_alerts *a, const struct cw_incident_due *due, json_t *doc,
			     bool may_alert)
{
	static const struct way way = { .suffix = "", .fn = on_postmortem_posted };
	const struct cw_bundle alone = { .incident = doc };
	int r = is_new(a, doc) ? put_new(a, &alone) : cw_store_put_postmortem(a->config.store, doc);

	if (r == -EEXIST)
		return r;
	a->stats.postmortems++;
	if (may_alert && wants_postmortem(a, due) && post(a, due->uid, &due->id, 1, doc, &way) < 0)
		log_warn("inc=%s: out of memory, its post-mortem is not posted", due->id);
	return r;
}

json_t *cw_alerts_load_incident(const struct cw_alerts *a, const struct cw_incident_due *due,
				bool *ret_is_whole)
{
	return cw_store_incident(a->config.store, due->uid, due->job, due->id, ret_is_whole);
}

int cw_alerts_update_incident(struct cw_alerts *a, json_t *incident)
{
	return cw_store_update_incident(a->config.store, incident);
}

/*
 * True if we may note an alert of uid that another node has sent. All users share a limit, because
 * each note is a disk write.
 */
static bool may_learn(struct cw_alerts *a, uint32_t uid, int64_t now)
{
	struct cw_quota_charge charges[LEARN_MAX];
	void *none;

	if (now - a->learn_ns > LEARN_EVERY_NS) {
		a->learn_ns = now;
		a->learned = 0;
	}
	for (unsigned i = 0; i < a->learned; i++)
		charges[i] = (struct cw_quota_charge){ .uid = a->learners[i], .is_pinned = true };
	if (cw_quota_charge_for(uid, charges, a->learned, LEARN_MAX, &none) != CW_QUOTA_ADMIT)
		return false;
	a->learners[a->learned++] = uid;
	return true;
}

void cw_alerts_learn(struct cw_alerts *a, const char *from,
		     const struct cw_msg_incident_delivered *d)
{
	int64_t now = cw_clock_now_ns(a->config.clock);

	if (!*d->label || !cw_incident_id_is_valid(d->id) ||
	    cw_store_was_sent(a->config.store, d->uid, d->id))
		return;
	cw_alert_fold_charge(a->fold, d->uid, now);
	if (!may_learn(a, d->uid, now)) {
		a->stats.unlearned++;
		return;
	}
	log_debug("inc=%s: %s has delivered it", d->id, from);
	settle(a, d->uid, d->id, CW_STORE_DELIVERED_BY_PEER);
}

/* ---- folded alerts ---- */

static void on_folded(uint32_t uid, const char *id, bool delivered, long status, void *user)
{
	struct cw_alerts *a = user;
	struct cw_folded folded;
	int r = 0;

	if (cw_alert_fold_under_way(a->fold, uid, &folded) && delivered) {
		a->stats.folds += folded.doc != NULL;
		a->stats.folded += folded.doc ? folded.n : 0;
		r = cw_store_mark_all_sent(a->config.store, uid, folded.ids, folded.n,
					   folded.doc ? FOLDED : "");
		if (r < 0)
			log_warn("inc=%s and others: cannot be recorded as sent: %s; after a "
				 "restart they may be sent again",
				 id, strerror(-r));
		/* Announce at most LEARN_MAX alerts, because the other nodes note no more. */
		for (size_t i = 0; i < folded.n && i < LEARN_MAX; i++) {
			const struct cw_incident_due due = { .id = folded.ids[i],
							     .uid = uid,
							     .job = folded.jobs[i] };

			a->config.on_posted(&due, true, a->config.user);
		}
	}
	cw_alert_fold_done(a->fold, uid, delivered, cw_clock_now_ns(a->config.clock));
}

/*
 * True if a collected incident is over. We then take it out of the folded alert, and
 * cw_alerts_resend() sends its notice.
 */
static bool is_over(uint32_t uid, const char *id, void *user)
{
	const struct cw_alerts *a = user;

	return cw_store_is_over(a->config.store, uid, id);
}

/*
 * Renders a folded alert. If one of its incidents is over, we withdraw the folded alert and collect
 * the others again.
 */
static char *render_folded(uint32_t uid, const char *id, void *user, bool *ret_is_withdrawn)
{
	struct cw_alerts *a = user;
	struct cw_folded folded;

	(void)id; /* the id of the first incident, which we do not need */
	if (!cw_alert_fold_under_way(a->fold, uid, &folded))
		return NULL;
	for (size_t i = 0; i < folded.n && !*ret_is_withdrawn; i++)
		*ret_is_withdrawn = is_over(uid, folded.ids[i], a);
	if (*ret_is_withdrawn)
		cw_alert_fold_done(a->fold, uid, false, cw_clock_now_ns(a->config.clock));
	return NULL;
}

static void post_folded(struct cw_alerts *a)
{
	static const struct way way = { .suffix = "", .render = render_folded, .fn = on_folded };
	int64_t now = cw_clock_now_ns(a->config.clock);
	struct cw_folded folded;

	cw_alert_fold_drop_over(a->fold, is_over, a);
	while (cw_alert_fold_next(a->fold, now, cw_clock_wall_ns(a->config.clock), &folded)) {
		if (folded.doc)
			log_notice("uid=%u: %zu alerts are sent as one", folded.uid, folded.n);
		if (post(a, folded.uid, folded.ids, folded.n, folded.doc ? folded.doc : folded.only,
			 &way) < 0)
			cw_alert_fold_done(a->fold, folded.uid, false, now);
	}
}

/* Retries one alert of an ended job. While a job runs, its incident retries its alert itself. */
static void resend_one(struct cw_alerts *a)
{
	_cleanup_(cw_arena_fini) struct cw_arena arena = { 0 };
	json_t *doc = cw_store_next_unsent(a->config.store);
	struct cw_incident_due due;

	/* An incident that stayed a notice never goes to the webhook. */
	if (doc && read_due(doc, &arena, &due) && !cw_incident_doc_is_notice(doc) &&
	    cw_alerts_send(a, &due, doc) < 0)
		log_info("inc=%s: its alert waits for a folded alert", due.id);
	json_decref(doc);
}

void cw_alerts_resend(struct cw_alerts *a)
{
	if (!a->webhook)
		return;
	resend_one(a);
	post_folded(a);
}

/* ---- configuration ---- */

static struct cw_webhook_config webhook_config(const struct cw_alerts *a, const char *url)
{
	return (struct cw_webhook_config){
		.base = a->config.base,
		.forks = a->config.forks,
		.clock = a->config.clock,
		.url = url,
		.timeout_ms = WEBHOOK_TIMEOUT_MS,
		.max_attempts = WEBHOOK_ATTEMPTS,
		.max_pending = WEBHOOK_PENDING,
	};
}

static int open_webhook(const struct cw_alerts *a, const struct cw_config *from,
			struct cw_webhook **ret, struct cw_err *err)
{
	struct cw_webhook_config config = webhook_config(a, from->webhook_url);

	*ret = NULL;
	if (!*from->webhook_url)
		return 0;
	if (*from->webhook_header_file && !from->webhook_headers.text)
		return cw_err_set(err, -from->webhook_headers.r, "%s",
				  from->webhook_headers.err.text);
	config.headers = from->webhook_headers.text;
	config.header_file = from->webhook_header_file;
	return cw_webhook_new(&config, ret, err);
}

static int open_notices(const struct cw_alerts *a, const struct cw_config *from,
			struct cw_webhook **ret, struct cw_err *err)
{
	struct cw_webhook_config config = webhook_config(a, from->notice_webhook_url);

	*ret = NULL;
	return *from->notice_webhook_url ? cw_webhook_new(&config, ret, err) : 0;
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
	to->no_child += of.no_child;
	to->pending = of.pending;
}

/*
 * True if both configurations have the same webhook. Returns false if one of them has a header
 * file, because its content may have changed.
 */
static bool same_webhook(const struct cw_config *a, const struct cw_config *b)
{
	return !strcmp(a->webhook_url, b->webhook_url) && !*a->webhook_header_file &&
	       !*b->webhook_header_file;
}

static void take_words(struct cw_alerts *a, const struct cw_config *from)
{
	a->is_shadow = !strcmp(from->mode, "shadow");
	a->is_slack = !strcmp(from->webhook_format, "slack");
	a->wants_notices = strcmp(from->notices, "false") != 0;
	a->wants_postmortems = !strcmp(from->webhook_postmortems, "true");
	cw_alert_fold_limit(a->fold, (uint32_t)from->alert_burst, from->alert_fold_ns);
}

int cw_alerts_reload(struct cw_alerts *a, const struct cw_config *old, const struct cw_config *from,
		     struct cw_err *err)
{
	bool is_same = same_webhook(old, from);
	bool is_same_notices = !strcmp(old->notice_webhook_url, from->notice_webhook_url);
	struct cw_webhook *webhook = NULL, *notices = NULL;
	int r = 0;

	if (!is_same)
		r = open_webhook(a, from, &webhook, err);
	if (r == 0 && !is_same_notices)
		r = open_notices(a, from, &notices, err);
	if (r < 0) {
		cw_webhook_free(webhook);
		return r;
	}
	if (!is_same_notices) {
		drop_outgoing(a, true);
		cw_webhook_free(a->notices);
		a->notices = notices;
	}
	if (!is_same) {
		drop_outgoing(a, false);
		add_webhook_stats(&a->past, a->webhook);
		cw_webhook_free(a->webhook);
		/* Incidents and cw_alerts_resend() will ask about each alert again. */
		cw_alert_fold_clear(a->fold);
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
	char dir[PATH_MAX];
	int r;

	if (!a)
		return cw_err_set(err, ENOMEM, "out of memory");
	a->config = *config;
	(void)snprintf(dir, sizeof(dir), "%s/incidents", config->state_dir);
	r = cw_alert_fold_new((uint32_t)from->alert_burst, from->alert_fold_ns, &a->fold) < 0 ||
			    cw_bundle_sync_new(config->base, dir, &a->sync) < 0
		    ? cw_err_set(err, ENOMEM, "out of memory")
		    : open_webhook(a, from, &a->webhook, err);
	if (r == 0)
		r = open_notices(a, from, &a->notices, err);
	if (r < 0) {
		(void)cw_alerts_free(a); /* always NULL */
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
	if (a->sync) {
		drop_outgoing(a, false);
		drop_outgoing(a, true);
	}
	(void)cw_bundle_sync_free(a->sync); /* always NULL */
	cw_webhook_free(a->webhook);
	cw_webhook_free(a->notices);
	(void)cw_alert_fold_free(a->fold); /* always NULL */
	free(a);
	return NULL;
}

bool cw_alerts_is_shadow(const struct cw_alerts *a)
{
	return a->is_shadow;
}

void cw_alerts_stats(const struct cw_alerts *a, struct cw_alerts_stats *ret)
{
	*ret = a->stats;
	ret->unsynced = cw_bundle_sync_missed(a->sync);
	ret->collected = cw_alert_fold_count(a->fold);
	ret->webhook = a->past;
	add_webhook_stats(&ret->webhook, a->webhook);
}
