/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts alerts as JSON over HTTP(S) with libcurl's multi interface on the daemon's event loop. It
 * retries with exponential backoff and jitter until the server answers 2xx or the attempt limit is
 * reached. A 4xx other than 408 and 429 is final. If the server sends Retry-After, we wait that
 * long. The incident id is the Idempotency-Key header.
 *
 * Loop thread only; never blocks: for each attempt a child resolves the host names anew
 * (daemon/alerts/webhook_hosts.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"

struct event_base;
struct cw_webhook;

struct cw_webhook_config {
	struct event_base *base;
	const struct cw_clock *clock;
	const char *url; /* https://…, http://… */
	/* Further headers ("Authorization: …"), one per line; NULL = none. */
	const char *headers;
	const char *header_file; /* path of the file that has them, for messages */
	uint32_t timeout_ms;     /* for one attempt */
	uint32_t max_attempts;
	uint32_t max_pending;
	/* Wait before the second attempt, doubled for each further one; 0 = 1 s. */
	uint32_t retry_min_ms;
	uint32_t retry_max_ms; /* 0 = 5 min */
	/*
	 * Source of the jitter's 32 bits; NULL = getrandom(). With jitter, a wait is 50 to 100 % of
	 * its length.
	 */
	uint32_t (*random)(void *user);
	void *random_user;
};

int cw_webhook_new(const struct cw_webhook_config *config, struct cw_webhook **ret,
		   struct cw_err *err);
struct cw_webhook *cw_webhook_free(struct cw_webhook *w);

/*
 * Called when the alert is settled. delivered: the server answered 2xx. status is the HTTP status
 * of the last attempt; 0 = none.
 */
typedef void (*cw_webhook_fn)(uint32_t uid, const char *id, bool delivered, long status,
			      void *user);

/*
 * Posts an alert. Copies id and json. -EAGAIN: too many alerts are pending, or this user already
 * holds half of the places. After 0 the loop calls fn once.
 */
int cw_webhook_post(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
		    cw_webhook_fn fn, void *user);

/*
 * Called right before each attempt. Returns the text to post, on the heap and owned by the webhook;
 * NULL = post the previous text. If the callback sets *ret_is_withdrawn, the alert is cancelled
 * without a call of fn. The callback may post other alerts.
 */
typedef char *(*cw_webhook_render_fn)(uint32_t uid, const char *id, void *user,
				      bool *ret_is_withdrawn);
/* Like cw_webhook_post(), but for a text that may change until it is delivered. */
int cw_webhook_post_rendered(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
			     cw_webhook_render_fn render, cw_webhook_fn fn, void *user);

/* True while this alert is under way or waits for its next attempt. */
bool cw_webhook_is_pending(const struct cw_webhook *w, uint32_t uid, const char *id);

struct cw_webhook_stats {
	uint64_t attempts, delivered, failed, refused;
	uint32_t pending;
};
void cw_webhook_stats(const struct cw_webhook *w, struct cw_webhook_stats *ret);
