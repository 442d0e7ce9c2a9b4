/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Posts alerts as JSON over HTTP(S). A child makes each attempt (daemon/alerts/webhook_post.h). We
 * retry with exponential backoff and jitter until the server answers 2xx, or up to max_attempts. A
 * 4xx is final, except 408 and 429. If the server sends Retry-After, we wait that long. The header
 * Idempotency-Key has the incident id.
 *
 * Loop thread only; never blocks, except cw_webhook_free() for 200 ms.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/err.h"

struct cw_fork_server;
struct event_base;
struct cw_webhook;

struct cw_webhook_config {
	struct event_base *base;
	struct cw_fork_server *forks; /* has the job cw_webhook_post_child(); borrowed */
	const struct cw_clock *clock;
	const char *url; /* begins with https:// or http:// */
	/* Further headers such as "Authorization: …", one per line; NULL = none. */
	const char *headers;
	const char *header_file; /* path of the file with these headers, for messages */
	uint32_t timeout_ms;     /* time limit of one attempt, with the look-up of its name */
	uint32_t max_attempts;
	uint32_t max_pending;
	/* Wait before the second attempt; it doubles for each further one. 0 = 1 s. */
	uint32_t retry_min_ms;
	uint32_t retry_max_ms; /* longest wait between attempts; 0 = 5 min */
	/*
	 * Returns 32 random bits for the jitter; NULL = we use getrandom(). The jitter shortens
	 * each wait to 50 to 100 % of its length.
	 */
	uint32_t (*random)(void *user);
	void *random_user;
};

int cw_webhook_new(const struct cw_webhook_config *config, struct cw_webhook **ret,
		   struct cw_err *err);
struct cw_webhook *cw_webhook_free(struct cw_webhook *w);

/*
 * Called when no attempt will follow. delivered: the server answered 2xx. status: the HTTP status
 * of the last attempt; 0 = no answer.
 */
typedef void (*cw_webhook_fn)(uint32_t uid, const char *id, bool delivered, long status,
			      void *user);

/*
 * Posts an alert. Copies id and json. Returns 0, -ENOMEM or -EAGAIN; after 0 the loop calls fn
 * once. -EAGAIN: max_pending alerts are pending, or this user has half as many.
 */
int cw_webhook_post(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
		    cw_webhook_fn fn, void *user);

/*
 * Called right before each attempt. Returns the text to post, on the heap, which the webhook then
 * owns; NULL = post the previous text again. If the callee sets *ret_is_withdrawn, we drop the
 * alert without calling fn. The callee may post other alerts.
 */
typedef char *(*cw_webhook_render_fn)(uint32_t uid, const char *id, void *user,
				      bool *ret_is_withdrawn);
/* Like cw_webhook_post(), but calls `render` before each attempt, because the text may change. */
int cw_webhook_post_rendered(struct cw_webhook *w, uint32_t uid, const char *id, const char *json,
			     cw_webhook_render_fn render, cw_webhook_fn fn, void *user);

/* True while we post this alert, or wait for its next attempt. */
bool cw_webhook_is_pending(const struct cw_webhook *w, uint32_t uid, const char *id);

struct cw_webhook_stats {
	uint64_t attempts, delivered, failed, refused;
	uint64_t no_child; /* number of times that an alert waited because no child was free */
	uint32_t pending;
};
void cw_webhook_stats(const struct cw_webhook *w, struct cw_webhook_stats *ret);
