/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts alerts as JSON over HTTP(S) with libcurl's multi interface on the daemon's event loop.
 * Retries with exponential backoff and jitter until the server answers 2xx or the attempt limit;
 * a 4xx other than 408 and 429 is final. A server that says Retry-After gets that long. The
 * incident id is the Idempotency-Key header.
 *
 * Loop thread only; never blocks: a child looks host names up, for each attempt anew
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
	const char *url;         /* https://…, http://… */
	const char *headers;     /* more of them ("Authorization: …"), one a line; NULL = none */
	const char *header_file; /* that they come from, for what is said of them */
	uint32_t timeout_ms;     /* of one attempt */
	uint32_t max_attempts;
	uint32_t max_pending;
	uint32_t retry_min_ms; /* before the second attempt, then doubled; 0 = 1 s */
	uint32_t retry_max_ms; /* 0 = 5 min */
	/* 32 bits for the jitter: each wait is 50 to 100 % of its length. NULL = getrandom(). */
	uint32_t (*random)(void *user);
	void *random_user;
};

int cw_webhook_new(const struct cw_webhook_config *config, struct cw_webhook **ret,
		   struct cw_err *err);
struct cw_webhook *cw_webhook_free(struct cw_webhook *w);

/* status: HTTP status of the last attempt, 0 = none; delivered: the server answered 2xx. */
typedef void (*cw_webhook_fn)(uint32_t uid, const char *id, bool delivered, long status,
			      void *user);

/*
 * Copies id and json. -EAGAIN: too many pending, or half of those that may be are this user's. The
 * callback comes once, from the loop.
 */
int cw_webhook_post(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
		    cw_webhook_fn fn, void *user);

/*
 * Asked right before each attempt: the text to post then, on the heap and taken over; NULL = the
 * one before. *ret_is_withdrawn: nothing is posted any more, and no fn is called. It may post other
 * alerts.
 */
typedef char *(*cw_webhook_render_fn)(uint32_t uid, const char *id, void *user,
				      bool *ret_is_withdrawn);
/* The same with a text that may change until it is delivered. */
int cw_webhook_post_rendered(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
			     cw_webhook_render_fn render, cw_webhook_fn fn, void *user);

/* Is this alert under way, or waiting for its next attempt? */
bool cw_webhook_is_pending(const struct cw_webhook *w, uint32_t uid, const char *id);

struct cw_webhook_stats {
	uint64_t attempts, delivered, failed, refused;
	uint32_t pending;
};
void cw_webhook_stats(const struct cw_webhook *w, struct cw_webhook_stats *ret);
