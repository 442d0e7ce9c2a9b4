/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs libcurl's multi socket interface on a libevent loop. It watches the descriptors and the
 * timeout that curl requests. It knows nothing about alerts or retries.
 *
 * Loop thread only; never blocks.
 */
#pragma once

#include <curl/curl.h>

struct event_base;
struct cw_curl_loop;

/*
 * Called when a transfer has ended. The callee now owns the handle easy, which is no longer in the
 * multi handle.
 */
typedef void (*cw_curl_done_fn)(CURL *easy, CURLcode result, void *user);

/* Returns 0, -ENOMEM, or -EIO if curl cannot start. */
int cw_curl_loop_new(struct event_base *base, cw_curl_done_fn fn, void *user,
		     struct cw_curl_loop **ret);
/* The caller must have removed all transfers. Takes NULL; returns NULL. */
struct cw_curl_loop *cw_curl_loop_free(struct cw_curl_loop *loop);

/* Starts a transfer. Returns 0 or -EIO. */
int cw_curl_loop_add(struct cw_curl_loop *loop, CURL *easy);
/* Abandons a transfer. fn is not called. */
void cw_curl_loop_remove(struct cw_curl_loop *loop, CURL *easy);
