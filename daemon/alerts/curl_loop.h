/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs libcurl's multi socket interface on a libevent loop: it watches the descriptors and the
 * timeout that curl asks for. It has no knowledge of alerts or retries.
 *
 * Loop thread only; never blocks.
 */
#pragma once

#include <curl/curl.h>

struct event_base;
struct cw_curl_loop;

/* A transfer has ended. The handle easy has left the multi handle and belongs to the callee. */
typedef void (*cw_curl_done_fn)(CURL *easy, CURLcode result, void *user);

/* 0, -ENOMEM or -EIO (curl cannot start). */
int cw_curl_loop_new(struct event_base *base, cw_curl_done_fn fn, void *user,
		     struct cw_curl_loop **ret);
/* All transfers must have been removed. Takes NULL; returns NULL. */
struct cw_curl_loop *cw_curl_loop_free(struct cw_curl_loop *loop);

/* Starts a transfer. 0 or -EIO. */
int cw_curl_loop_add(struct cw_curl_loop *loop, CURL *easy);
/* Abandons a transfer. fn is not called. */
void cw_curl_loop_remove(struct cw_curl_loop *loop, CURL *easy);
