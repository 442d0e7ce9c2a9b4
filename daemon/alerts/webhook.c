/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each cw_webhook_post() makes one struct alert. Its timer runs until the next attempt. A child
 * then makes the attempt (daemon/alerts/webhook_post.h). Alerts do not wait for each other, unless
 * all children are busy. max_pending limits their number.
 *
 * The URL may hold a secret, because chat services put their token into the path. Our messages
 * therefore quote only its host. URL and headers are in memory that other children do not see
 * (transport/secret.h), and so is all memory of libcurl, which takes the URL apart.
 */
#include "daemon/alerts/webhook.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "daemon/alerts/webhook_post.h"
#include "identity/quota.h"
#include "loop/children.h"
#include "transport/secret.h"

#define RETRY_MIN_MS 1000u
#define RETRY_MAX_MS (5u * 60 * 1000)
/* Longest wait that we take from a server. */
#define MAX_RETRY_AFTER_S 86400u
/* Maximum number of children of one webhook at the same time. Each of them has up to three tasks.
 */
#define MAX_CHILDREN 4u
/* Wait of an alert that finds no free child. */
#define BUSY_MS 250u
/* Time that a child may take beyond the time limit of the attempt. */
#define CHILD_MARGIN_MS 1000u
/*
 * The start of a child needs these descriptors for a moment: output pipe, argument, socket pair,
 * pidfd. We hold as many open in reserve. So an alert goes out even if the process has used up its
 * descriptors.
 */
#define KEPT_FDS 6u

struct alert {
	struct cw_webhook *owner;
	struct alert *next, **link;
	char *id, *json;
	uint32_t uid;
	cw_webhook_render_fn render; /* NULL = the text does not change */
	cw_webhook_fn fn;
	void *user;
	uint32_t attempts;
	struct cw_webhook_result result; /* result of the last attempt; contains no secrets */
	struct cw_child *child;          /* NULL = no attempt is in progress */
	struct event *timer;
};

struct cw_webhook {
	struct cw_webhook_config config;
	struct cw_children *children;
	unsigned n_children;
	char *host;          /* name of the URL's server */
	char *url, *headers; /* in secret memory; headers: lines with '\n' between them */
	int kept_fds[KEPT_FDS];
	struct alert *alerts;
	struct cw_webhook_stats stats;
};

static void alert_free(struct alert *a)
{
	if (a->child) {
		cw_child_cancel(a->child);
		a->owner->n_children--;
	}
	if (a->timer)
		event_free(a->timer);
	if (a->link) {
		*a->link = a->next;
		if (a->next)
			a->next->link = a->link;
		a->owner->stats.pending--;
	}
	free(a->id);
	free(a->json);
	free(a);
}

static void finish(struct alert *a, bool delivered)
{
	struct cw_webhook *w = a->owner;

	if (delivered) {
		w->stats.delivered++;
		log_info("webhook: alert inc=%s delivered to %s", a->id, w->host);
	} else {
		w->stats.failed++;
		log_err("webhook: alert inc=%s not delivered to %s after %u attempt%s (status "
			"%ld)%s%s, giving up on this try: see webhook_url",
			a->id, w->host, a->attempts, a->attempts == 1 ? "" : "s",
			(long)a->result.status, *a->result.reason ? ": " : "", a->result.reason);
	}
	if (a->fn)
		a->fn(a->uid, a->id, delivered, (long)a->result.status, a->user);
	alert_free(a);
}

static uint32_t random_bits(struct cw_webhook *w)
{
	uint32_t bits = 0;

	if (w->config.random)
		return w->config.random(w->config.random_user);
	/* If this fails, bits stays 0, and there is no jitter this time. */
	(void)getrandom(&bits, sizeof(bits), GRND_NONBLOCK);
	return bits;
}

/*
 * Returns the wait before the next attempt: 50 to 100 % of min × 2^(attempts - 1), up to the
 * maximum. Without the jitter, all daemons would retry at the same moments.
 */
static uint64_t retry_wait_ms(struct alert *a)
{
	const struct cw_webhook_config *c = &a->owner->config;
	uint64_t wait = c->retry_min_ms, asked_ms = 0;

	if (a->result.retry_after_s < MAX_RETRY_AFTER_S)
		asked_ms = a->result.retry_after_s * 1000;
	for (uint32_t n = 1; n < a->attempts && wait < c->retry_max_ms; n++)
		wait *= 2;
	if (wait > c->retry_max_ms)
		wait = c->retry_max_ms;
	wait = wait / 2 + (wait - wait / 2) * random_bits(a->owner) / UINT32_MAX;
	if (wait < asked_ms)
		wait = asked_ms < c->retry_max_ms ? asked_ms : c->retry_max_ms;
	return wait;
}

static bool is_final(int64_t status)
{
	return status >= 400 && status < 500 && status != 408 && status != 429;
}

static void retry_later(struct alert *a, const char *why)
{
	uint64_t ms = retry_wait_ms(a);
	struct timeval tv = { (time_t)(ms / 1000), (suseconds_t)(ms % 1000 * 1000) };

	if (a->attempts >= a->owner->config.max_attempts || evtimer_add(a->timer, &tv) < 0) {
		finish(a, false);
		return;
	}
	log_info("webhook: alert inc=%s to %s: %s%s%s, again in %llu ms", a->id, a->owner->host,
		 why, *a->result.reason ? ": " : "", a->result.reason, (unsigned long long)ms);
}

/* ---- an attempt ---- */

static void take_result(struct alert *a)
{
	char why[64];

	if (a->result.status >= 200 && a->result.status < 300) {
		finish(a, true);
	} else if (is_final(a->result.status)) {
		finish(a, false);
	} else if (a->result.status) {
		(void)snprintf(why, sizeof(why), "status %ld", (long)a->result.status);
		retry_later(a, why);
	} else {
		retry_later(a, a->result.why);
	}
}

static void keep_descriptors(struct cw_webhook *w)
{
	for (unsigned i = 0; i < KEPT_FDS; i++)
		if (w->kept_fds[i] < 0)
			/* If this fails, a later call tries again. */
			w->kept_fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void release_descriptors(struct cw_webhook *w)
{
	for (unsigned i = 0; i < KEPT_FDS; i++) {
		closep(&w->kept_fds[i]);
		w->kept_fds[i] = -1;
	}
}

static void on_posted(enum cw_child_end end, const char *output, size_t len, void *user)
{
	struct alert *a = user;

	a->child = NULL;
	a->owner->n_children--;
	keep_descriptors(a->owner);
	a->result = (struct cw_webhook_result){ 0 };
	if (end == CW_CHILD_EXITED && len == sizeof(a->result))
		memcpy(&a->result, output, sizeof(a->result));
	else
		(void)snprintf(
			a->result.why, sizeof(a->result.why), "%s",
			end == CW_CHILD_TIMED_OUT || end == CW_CHILD_ABANDONED
				? "no answer in time; perhaps the name server does not answer"
				: "the attempt crashed");
	/* The child has read an answer from the network. */
	a->result.why[sizeof(a->result.why) - 1] = '\0';
	a->result.reason[sizeof(a->result.reason) - 1] = '\0';
	take_result(a);
}

/* Starts the child. Returns 0 or -errno. */
static int start_child(struct alert *a)
{
	struct cw_webhook *w = a->owner;
	const struct cw_webhook_request request = { .url = w->url,
						    .id = a->id,
						    .json = a->json,
						    .headers = w->headers,
						    .timeout_ms = w->config.timeout_ms };
	struct cw_child_config config = { .main = cw_webhook_post_main,
					  .job = cw_webhook_post_child,
					  .forks = w->config.forks,
					  .deadline_ms = w->config.timeout_ms + CHILD_MARGIN_MS,
					  .max_output = sizeof(struct cw_webhook_result),
					  .fn = on_posted,
					  .user = a };
	char *arg = cw_webhook_request_pack(&request, &config.arg_len);
	int r;

	if (!arg)
		return -ENOMEM;
	config.arg = arg;
	r = cw_child_start(w->children, &config, &a->child);
	if (r == -EMFILE || r == -ENFILE) {
		release_descriptors(w);
		r = cw_child_start(w->children, &config, &a->child);
	}
	cw_secret_free(arg);
	return r;
}

/* Renders the text anew. Returns false if the alert is withdrawn; we have freed it then. */
static bool renew(struct alert *a)
{
	bool is_withdrawn = false;
	char *text = a->render ? a->render(a->uid, a->id, a->user, &is_withdrawn) : NULL;

	if (is_withdrawn) {
		log_info("webhook: alert inc=%s to %s: withdrawn", a->id, a->owner->host);
		free(text);
		alert_free(a);
		return false;
	}
	if (text) {
		free(a->json);
		a->json = text;
	}
	return true;
}

static void on_attempt(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval busy = { .tv_usec = BUSY_MS * 1000 };
	struct alert *a = arg;
	struct cw_webhook *w = a->owner;

	/* Check first, because rendering is costly. */
	if (w->n_children < MAX_CHILDREN && !renew(a))
		return;
	if (w->n_children == MAX_CHILDREN || start_child(a) < 0) {
		w->stats.no_child++;
		if (evtimer_add(a->timer, &busy) < 0)
			finish(a, false);
		return;
	}
	w->n_children++;
	a->attempts++;
	w->stats.attempts++;
}

bool cw_webhook_is_pending(const struct cw_webhook *w, uint32_t uid, const char *id)
{
	for (const struct alert *a = w->alerts; a; a = a->next)
		if (a->uid == uid && !strcmp(a->id, id))
			return true;
	return false;
}

/*
 * True if uid may post another alert. While the server is slow or away, the alerts of one user must
 * not use up max_pending.
 */
static bool has_room(const struct cw_webhook *w, uint32_t uid)
{
	struct cw_quota_count count = { .capacity = w->config.max_pending,
					.taken = w->stats.pending,
					.users = 1 };

	for (const struct alert *a = w->alerts; a; a = a->next) {
		const struct alert *other = a->next;

		count.own += a->uid == uid;
		while (other && other->uid != a->uid)
			other = other->next;
		/* Count a user once, at its last alert in the list. */
		count.users += a->uid != uid && !other;
	}
	return count.own < (w->config.max_pending + 1) / 2 &&
	       cw_quota_ask(&count) == CW_QUOTA_ADMIT;
}

int cw_webhook_post(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
		    cw_webhook_fn fn, void *user)
{
	return cw_webhook_post_rendered(w, uid, id, json, NULL, fn, user);
}

int cw_webhook_post_rendered(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
			     cw_webhook_render_fn render, cw_webhook_fn fn, void *user)
{
	static const struct timeval at_once = { 0, 0 };
	struct alert *a;

	if (!has_room(w, uid)) {
		w->stats.refused++;
		return -EAGAIN;
	}
	a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	a->owner = w;
	a->uid = uid;
	a->render = render;
	a->fn = fn;
	a->user = user;
	a->id = strdup(id);
	a->json = strdup(json);
	a->timer = evtimer_new(w->config.base, on_attempt, a);
	/* The loop makes the first attempt, because this call must not call back. */
	if (!a->id || !a->json || !a->timer || evtimer_add(a->timer, &at_once) < 0) {
		alert_free(a);
		return -ENOMEM;
	}
	a->next = w->alerts;
	a->link = &w->alerts;
	if (a->next)
		a->next->link = &a->next;
	w->alerts = a;
	w->stats.pending++;
	return 0;
}

void cw_webhook_stats(const struct cw_webhook *w, struct cw_webhook_stats *ret)
{
	*ret = w->stats;
}

static char *trim(char *line)
{
	size_t len;

	line += strspn(line, " \t");
	len = strlen(line);
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	return line;
}

/*
 * True for "Name: value" with printable characters only. Other characters could hide a second
 * header in the line.
 */
static bool is_header(const char *line)
{
	const char *colon = strchr(line, ':');

	if (!colon || colon == line)
		return false;
	for (const char *p = line; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < 0x20 || c == 0x7f || (p < colon && !isalnum(c) && c != '-' && c != '_'))
			return false;
	}
	return true;
}

static void secret_freep(char **p)
{
	cw_secret_free(*p);
}

/*
 * Takes the headers from `from`, the text of the file at this path. Returns 0 or -errno with err
 * set.
 */
static int take_headers(struct cw_webhook *w, const char *from, const char *path,
			struct cw_err *err)
{
	_cleanup_(secret_freep) char *text = cw_secret_strdup(from);
	char *rest = text, *line, *end;
	unsigned number = 0;

	w->headers = end = cw_secret_calloc(strlen(from) + 2, 1);
	if (!text || !end)
		return cw_err_set(err, ENOMEM, "out of memory");
	while ((line = strsep(&rest, "\n"))) {
		number++;
		line = trim(line);
		if (*line == '\0' || *line == '#')
			continue;
		if (!is_header(line))
			return cw_err_set(err, EINVAL,
					  "%s:%u: the line is not of the form \"Name: value\"",
					  path, number);
		end = stpcpy(stpcpy(end, line), "\n");
	}
	return 0;
}

static bool is_ascii(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text >= 0x80)
			return false;
	return true;
}

/* Checks the URL, and takes its host. Returns 0 or -errno with err set, which quotes no secret. */
static int take_host(struct cw_webhook *w, struct cw_err *err)
{
	char *scheme = NULL, *host = NULL;
	CURLU *u = curl_url();
	int r = 0;

	if (!u)
		return cw_err_set(err, ENOMEM, "out of memory");
	if (curl_url_set(u, CURLUPART_URL, w->url, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(u, CURLUPART_HOST, &host, 0) != CURLUE_OK)
		r = cw_err_set(err, EINVAL, "webhook URL is malformed");
	else if (strcmp(scheme, "http") != 0 && strcmp(scheme, "https") != 0)
		r = cw_err_set(err, EINVAL, "webhook URL must be http or https, not %s", scheme);
	else if (!is_ascii(host))
		/* libcurl would convert the name by the locale, and a daemon has no locale. */
		r = cw_err_set(err, EINVAL,
			       "webhook URL: write the host name in its ASCII form (xn--…)");
	else if (!(w->host = strdup(host)))
		r = cw_err_set(err, ENOMEM, "out of memory");
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(u);
	return r;
}

/*
 * Makes libcurl use secret memory. We never call curl_global_cleanup(), because the setting lasts
 * as long as the process.
 */
static int use_curl(void)
{
	static bool is_used;

	if (!is_used &&
	    curl_global_init_mem(CURL_GLOBAL_NOTHING, cw_secret_malloc, cw_secret_free,
				 cw_secret_realloc, cw_secret_strdup, cw_secret_calloc) != 0)
		return -ENOMEM;
	is_used = true;
	return 0;
}

int cw_webhook_new(const struct cw_webhook_config *config, struct cw_webhook **ret,
		   struct cw_err *err)
{
	struct cw_webhook *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return cw_err_set(err, ENOMEM, "out of memory");
	w->config = *config;
	if (!w->config.retry_min_ms)
		w->config.retry_min_ms = RETRY_MIN_MS;
	if (!w->config.retry_max_ms)
		w->config.retry_max_ms = RETRY_MAX_MS;
	for (unsigned i = 0; i < KEPT_FDS; i++)
		w->kept_fds[i] = -1;
	keep_descriptors(w);
	r = cw_children_new(config->base, &w->children);
	w->url = cw_secret_strdup(config->url);
	w->headers = config->headers ? NULL : cw_secret_strdup("");
	if (r < 0 || !w->url || (!config->headers && !w->headers) || use_curl() < 0)
		r = cw_err_set(err, ENOMEM, "out of memory");
	else
		r = take_host(w, err);
	if (r == 0 && config->headers)
		r = take_headers(w, config->headers, config->header_file, err);
	if (r < 0) {
		cw_webhook_free(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct cw_webhook *cw_webhook_free(struct cw_webhook *w)
{
	if (!w)
		return NULL;
	while (w->alerts)
		alert_free(w->alerts);
	(void)cw_children_free(w->children); /* always NULL */
	release_descriptors(w);
	cw_secret_free(w->url);
	cw_secret_free(w->headers);
	free(w->host);
	free(w);
	return NULL;
}
