/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hosts that a transfer to the webhook connects to, and their addresses: the server of its URL,
 * or the proxy that the environment names for it (http_proxy, https_proxy, all_proxy, no_proxy, as
 * curl reads them), or both. A child process looks their names up (transport/resolve.h); libcurl
 * gets the addresses and cannot look up anything itself: its resolver is a thread that libcurl
 * joins, so a name server that does not answer would stop the loop.
 *
 * Loop thread only; nothing blocks.
 */
#pragma once

#include <curl/curl.h>
#include <stdbool.h>

#include "common/clock.h"
#include "common/err.h"

struct event_base;
struct cw_webhook_hosts;

/* The system's resolver turns to a second name server after 5 s, and to a third after 10 s. */
#define CW_WEBHOOK_LOOK_UP_NS (15 * CW_NS_PER_S)

/* Reads the environment. 0; -EINVAL or -ENOMEM with err set, which says no more than the host. */
int cw_webhook_hosts_new(struct event_base *base, const char *url, struct cw_webhook_hosts **ret,
			 struct cw_err *err);
/* Ends a look-up without a call back. Takes NULL; returns NULL. */
struct cw_webhook_hosts *cw_webhook_hosts_free(struct cw_webhook_hosts *h);

/* The server's, for messages. */
const char *cw_webhook_hosts_server(const struct cw_webhook_hosts *h);

/* error: why a transfer cannot begin; NULL = all have addresses. */
typedef void (*cw_webhook_hosts_fn)(const char *error, void *user);
/*
 * Looks all names up anew. 0: fn is called once, from the loop; until then there is no second
 * look-up. 1: there is nothing to look up, and fn is not called. -errno: no child could be started.
 */
int cw_webhook_hosts_look_up(struct cw_webhook_hosts *h, int64_t limit_ns, cw_webhook_hosts_fn fn,
			     void *user);

/*
 * Gives the URL, the proxy and the addresses found last to a transfer. The list has to outlive the
 * transfer; the caller frees it. 0 or -EIO.
 */
int cw_webhook_hosts_apply(const struct cw_webhook_hosts *h, CURL *easy,
			   struct curl_slist **ret_addresses);

/* No other protocols, whatever the URL says. libcurl before 7.85 has them as bits. */
static inline CURLcode cw_webhook_only_http(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}
