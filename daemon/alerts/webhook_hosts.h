/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the hosts that a webhook transfer connects to: the server of the URL, or the proxy that
 * the environment names for it (http_proxy, https_proxy, all_proxy, no_proxy, as curl reads them),
 * or both. A child process resolves their names (transport/resolve.h). libcurl gets the addresses
 * and cannot resolve names itself: its resolver is a thread that libcurl joins, so an unresponsive
 * name server would stop the loop.
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

/*
 * We wait this long for a look-up. The system's resolver tries a second name server after 5 s, and
 * a third after 10 s.
 */
#define CW_WEBHOOK_LOOK_UP_NS (15 * CW_NS_PER_S)

/*
 * Reads the environment. Returns 0, -EINVAL or -ENOMEM. The error text names no more of the URL
 * than the host.
 */
int cw_webhook_hosts_new(struct event_base *base, const char *url, struct cw_webhook_hosts **ret,
			 struct cw_err *err);
/* Cancels a look-up without calling its fn. Takes NULL; returns NULL. */
struct cw_webhook_hosts *cw_webhook_hosts_free(struct cw_webhook_hosts *h);

/* Returns the name of the server, for messages. */
const char *cw_webhook_hosts_server(const struct cw_webhook_hosts *h);

/* Ends a look-up. error says why no transfer can begin; NULL = all hosts have addresses. */
typedef void (*cw_webhook_hosts_fn)(const char *error, void *user);
/*
 * Resolves all names anew. 0: the loop calls fn once, and the caller starts no second look-up
 * before. 1: no host needs a look-up, and fn is not called. -errno: no child could be started.
 */
int cw_webhook_hosts_look_up(struct cw_webhook_hosts *h, int64_t limit_ns, cw_webhook_hosts_fn fn,
			     void *user);

/*
 * Sets the URL, the proxy and the latest addresses on a transfer. The list must outlive the
 * transfer; the caller frees it. 0 or -EIO.
 */
int cw_webhook_hosts_apply(const struct cw_webhook_hosts *h, CURL *easy,
			   struct curl_slist **ret_addresses);

/* Allows only HTTP and HTTPS, also in the URL. libcurl before 7.85 takes the protocols as bits. */
static inline CURLcode cw_webhook_only_http(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}
