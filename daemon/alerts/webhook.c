/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each cw_webhook_post() makes one struct alert. Its timer runs until the next attempt. The alert
 * then waits for the addresses of the hosts (needs_addresses). After that its transfer is under way
 * (easy != NULL). Each attempt resolves the names anew. If several alerts start an attempt
 * together, they share one look-up, so at most one child runs. Alerts do not wait for each other in
 * any other way. max_pending limits their number.
 *
 * The URL may hold a secret, because chat services put their token into the path. Our messages
 * therefore quote only its host. URL and headers, and libcurl's copies of them, are in memory that
 * children do not see (transport/secret.h). We use HTTP/1.1, because libnghttp2 would make further
 * copies elsewhere.
 */
#include "daemon/alerts/webhook.h"

#include <ctype.h>
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
#include "common/text.h"
#include "daemon/alerts/curl_loop.h"
#include "daemon/alerts/webhook_hosts.h"
#include "identity/quota.h"
#include "transport/secret.h"

#define RETRY_MIN_MS 1000u
#define RETRY_MAX_MS (5u * 60 * 1000)
/*
 * Longest answer that we read; we keep only its beginning. If the server sends more, we end the
 * transfer.
 */
#define MAX_RESPONSE_BYTES (64u << 10)
/* Maximum size of what we log of a refusing server's answer. */
#define MAX_REASON_BYTES 200u
/*
 * Shorter parts of the URL and the headers are not secret, because an answer may contain such words
 * by chance.
 */
#define MIN_SECRET_BYTES 6u

struct alert {
	struct cw_webhook *owner;
	struct alert *next, **link;
	char *id, *json;
	uint32_t uid;
	cw_webhook_render_fn render; /* NULL = the text does not change */
	cw_webhook_fn fn;
	void *user;
	uint32_t attempts;
	long status;
	uint64_t retry_after_ms; /* wait that the server requested; 0 = none */
	size_t response_bytes;
	/* First bytes of the answer. Secret, because a server may repeat our headers. */
	char *reason;
	bool needs_addresses;
	CURL *easy;
	struct curl_slist *headers, *addresses;
	struct event *timer;
};

struct cw_webhook {
	struct cw_webhook_config config;
	struct cw_curl_loop *loop;
	struct cw_webhook_hosts *hosts;
	const char *host;           /* name of the URL's server, borrowed from hosts */
	char *url;                  /* in secret memory */
	struct curl_slist *headers; /* lines of the header file, allocated by curl */
	bool is_looking_up;
	struct alert *alerts;
	struct cw_webhook_stats stats;
};

static void stop_transfer(struct alert *a)
{
	if (a->easy) {
		cw_curl_loop_remove(a->owner->loop, a->easy);
		curl_easy_cleanup(a->easy);
		a->easy = NULL;
	}
	curl_slist_free_all(a->headers);
	a->headers = NULL;
	curl_slist_free_all(a->addresses);
	a->addresses = NULL;
}

static void alert_free(struct alert *a)
{
	stop_transfer(a);
	if (a->timer)
		event_free(a->timer);
	if (a->link) {
		*a->link = a->next;
		if (a->next)
			a->next->link = a->link;
		a->owner->stats.pending--;
	}
	cw_secret_free(a->reason);
	free(a->id);
	free(a->json);
	free(a);
}

/* ---- the text of a refusal, without our secrets ---- */

static void mask(char *text, const char *secret, size_t len)
{
	size_t n = strlen(text);

	if (len < MIN_SECRET_BYTES)
		return;
	for (size_t i = 0; i + MIN_SECRET_BYTES <= n; i++) {
		/* At the end of a text that was cut, mask the beginning of a secret, too. */
		size_t most = n - i < len ? n - i : len;

		if (memcmp(text + i, secret, most) == 0)
			memset(text + i, '*', most);
	}
}

/* Masks each piece of `secrets` in the text. The characters of `between` separate the pieces. */
static void mask_pieces(char *text, const char *secrets, const char *between)
{
	while (*(secrets += strspn(secrets, between))) {
		size_t len = strcspn(secrets, between);

		mask(text, secrets, len);
		secrets += len;
	}
}

/*
 * Returns the server's answer as one printable line, with our secrets masked. NULL = the answer was
 * empty.
 */
static const char *reason_of(struct alert *a)
{
	const struct cw_webhook *w = a->owner;
	const char *behind_scheme = strstr(w->url, "://"), *path;

	if (!a->reason || !*a->reason)
		return NULL;
	path = behind_scheme ? behind_scheme + 3 + strcspn(behind_scheme + 3, "/?#") : "";
	mask_pieces(a->reason, path, "/?&=#");
	/* Mask the user and password in "https://user:password@host". */
	if (behind_scheme && memchr(behind_scheme + 3, '@', (size_t)(path - behind_scheme - 3)))
		mask(a->reason, behind_scheme + 3, strcspn(behind_scheme + 3, "@"));
	for (const struct curl_slist *h = w->headers; h; h = h->next)
		mask_pieces(a->reason, strchr(h->data, ':') + 1, " \t,;=");
	cw_text_sanitise_line(a->reason);
	return a->reason;
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
			a->id, w->host, a->attempts, a->attempts == 1 ? "" : "s", a->status,
			reason_of(a) ? ": " : "", reason_of(a) ? a->reason : "");
	}
	if (a->fn)
		a->fn(a->uid, a->id, delivered, a->status, a->user);
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
	uint64_t wait = c->retry_min_ms;

	for (uint32_t n = 1; n < a->attempts && wait < c->retry_max_ms; n++)
		wait *= 2;
	if (wait > c->retry_max_ms)
		wait = c->retry_max_ms;
	wait = wait / 2 + (wait - wait / 2) * random_bits(a->owner) / UINT32_MAX;
	if (wait < a->retry_after_ms)
		wait = a->retry_after_ms < c->retry_max_ms ? a->retry_after_ms : c->retry_max_ms;
	return wait;
}

static bool is_final(long status)
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
		 why, reason_of(a) ? ": " : "", reason_of(a) ? a->reason : "",
		 (unsigned long long)ms);
}

static void on_transfer_done(CURL *easy, CURLcode result, void *user)
{
	struct alert *a = NULL;
	long status = 0;
	curl_off_t retry_after_s = 0;
	char why[64];

	(void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, &a);
	(void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &retry_after_s);
	a->retry_after_ms =
		retry_after_s > 0 && retry_after_s < 86400 ? (uint64_t)retry_after_s * 1000 : 0;
	a->status = status;
	stop_transfer(a);
	/* The status counts even if we cut the rest of the answer off. */
	if (status >= 200 && status < 300) {
		finish(a, true);
	} else if (is_final(status)) {
		finish(a, false);
	} else {
		if (status)
			(void)snprintf(why, sizeof(why), "status %ld", status);
		else
			(void)snprintf(why, sizeof(why), "%s", curl_easy_strerror(result));
		retry_later(a, why);
	}
}

static size_t on_response(char *data, size_t size, size_t n, void *user)
{
	struct alert *a = user;
	size_t have = a->reason ? strlen(a->reason) : MAX_REASON_BYTES, more = size * n;

	if (have < MAX_REASON_BYTES) {
		more = more < MAX_REASON_BYTES - have ? more : MAX_REASON_BYTES - have;
		memcpy(a->reason + have, data, more);
		a->reason[have + more] = '\0';
	}
	a->response_bytes += size * n;
	return a->response_bytes > MAX_RESPONSE_BYTES ? 0 : size * n;
}

static bool append_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer != NULL;
}

static bool make_headers(struct alert *a)
{
	char key[128];

	(void)snprintf(key, sizeof(key), "Idempotency-Key: %.100s", a->id);
	if (!append_header(&a->headers, "Content-Type: application/json") ||
	    !append_header(&a->headers, "Expect:") || !append_header(&a->headers, key))
		return false;
	for (const struct curl_slist *h = a->owner->headers; h; h = h->next) {
		if (!append_header(&a->headers, h->data))
			return false;
	}
	return true;
}

static int set_options(struct alert *a)
{
	long timeout_ms = a->owner->config.timeout_ms;
	CURL *e = a->easy;
	CURLcode r = CURLE_OK;

	/* Each call may fail: memory may run out, or curl may lack a feature. */
	r |= cw_webhook_only_http(e);
	r |= curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	r |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	r |= curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	r |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, timeout_ms);
	r |= curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
	r |= curl_easy_setopt(e, CURLOPT_USERAGENT, "collwatch/" CW_VERSION);
	r |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, a->headers);
	r |= curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(a->json));
	r |= curl_easy_setopt(e, CURLOPT_POSTFIELDS, a->json);
	r |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_response);
	r |= curl_easy_setopt(e, CURLOPT_WRITEDATA, a);
	r |= curl_easy_setopt(e, CURLOPT_PRIVATE, a);
	return r == CURLE_OK ? cw_webhook_hosts_apply(a->owner->hosts, e, &a->addresses) : -EIO;
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

static void start_transfer(struct alert *a)
{
	if (!renew(a))
		return;
	a->easy = curl_easy_init();
	if (a->easy && make_headers(a) && set_options(a) == 0 &&
	    cw_curl_loop_add(a->owner->loop, a->easy) == 0)
		return;
	stop_transfer(a);
	retry_later(a, "no transfer could be started");
}

static void on_addresses(const char *error, void *user)
{
	struct cw_webhook *w = user;
	struct alert *a = w->alerts;

	w->is_looking_up = false;
	/*
	 * Start at the head again after each attempt, because its callback may have changed the
	 * list.
	 */
	while (a) {
		if (!a->needs_addresses) {
			a = a->next;
			continue;
		}
		a->needs_addresses = false;
		if (error)
			retry_later(a, error);
		else
			start_transfer(a);
		a = w->alerts;
	}
}

static void on_attempt(evutil_socket_t fd, short what, void *arg)
{
	struct alert *a = arg;
	struct cw_webhook *w = a->owner;
	char why[128];
	int r;

	a->attempts++;
	w->stats.attempts++;
	a->status = 0;
	a->response_bytes = 0;
	if (!a->reason)
		/* NULL = out of memory; we then log no reason. */
		a->reason = cw_secret_malloc(MAX_REASON_BYTES + 1);
	if (a->reason)
		*a->reason = '\0';
	if (w->is_looking_up) {
		a->needs_addresses = true;
		return;
	}
	r = cw_webhook_hosts_look_up(w->hosts, CW_WEBHOOK_LOOK_UP_NS, on_addresses, w);
	if (r == 0) {
		w->is_looking_up = a->needs_addresses = true;
	} else if (r > 0) {
		start_transfer(a);
	} else {
		(void)snprintf(why, sizeof(why), "its name cannot be looked up: %s", strerror(-r));
		retry_later(a, why);
	}
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
	char *rest = text, *line;
	unsigned number = 0;

	if (!text)
		return cw_err_set(err, ENOMEM, "out of memory");
	while ((line = strsep(&rest, "\n"))) {
		number++;
		line = trim(line);
		if (*line == '\0' || *line == '#')
			continue;
		if (!is_header(line))
			return cw_err_set(err, EINVAL, "%s:%u: not a \"Name: value\" line", path,
					  number);
		if (!append_header(&w->headers, line))
			return cw_err_set(err, ENOMEM, "out of memory");
	}
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
	r = cw_curl_loop_new(config->base, on_transfer_done, w, &w->loop);
	if (r < 0)
		(void)cw_err_set(err, -r, "libcurl cannot be started");
	if (r == 0)
		r = cw_webhook_hosts_new(config->base, config->url, &w->hosts, err);
	if (r == 0)
		w->host = cw_webhook_hosts_server(w->hosts);
	w->url = cw_secret_strdup(config->url);
	if (r == 0 && !w->url)
		r = cw_err_set(err, ENOMEM, "out of memory");
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
	w->loop = cw_curl_loop_free(w->loop);
	curl_slist_free_all(w->headers);
	cw_webhook_hosts_free(w->hosts);
	cw_secret_free(w->url);
	free(w);
	return NULL;
}
