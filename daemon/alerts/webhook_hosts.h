/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resolves the hosts that a webhook transfer connects to. This is the server of the URL, or the
 * proxy that the environment names for it, or both. (We read http_proxy, https_proxy, all_proxy and
 * no_proxy as curl does.) A child process resolves the names (transport/resolve.h), and we give
 * libcurl the addresses. libcurl must not resolve names itself: it would start a thread and join
 * it, so an unresponsive name server would stop the loop.
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
 * Time limit of a look-up. The system's resolver tries a second name server after 5 s, and a third
 * after 10 s.
 */
#define CW_WEBHOOK_LOOK_UP_NS (15 * CW_NS_PER_S)

/*
 * Reads the proxy from the environment. Returns 0, or -EINVAL or -ENOMEM with err set. err quotes
 * only the host of the URL, because the rest may be secret.
 */
int cw_webhook_hosts_new(struct event_base *base, const char *url, struct cw_webhook_hosts **ret,
			 struct cw_err *err);
/* Cancels a running look-up; its fn is not called. Takes NULL; returns NULL. */
struct cw_webhook_hosts *cw_webhook_hosts_free(struct cw_webhook_hosts *h);

/* Returns the name of the URL's server, for messages. */
const char *cw_webhook_hosts_server(const struct cw_webhook_hosts *h);

/*
 * Called at the end of a look-up. error: the reason why no transfer can begin; NULL = all hosts
 * have addresses.
 */
typedef void (*cw_webhook_hosts_fn)(const char *error, void *user);
/*
 * Resolves all names anew. Returns 0: the loop calls fn once, and the caller must not start another
 * look-up before. Returns 1: no host needs a look-up, and fn is not called. Returns -errno: we
 * could not start a child.
 */
int cw_webhook_hosts_look_up(struct cw_webhook_hosts *h, int64_t limit_ns, cw_webhook_hosts_fn fn,
			     void *user);

/*
 * Sets the URL, the proxy and the latest addresses on a transfer. *ret_addresses must exist as long
 * as the transfer; then the caller frees it. Returns 0 or -EIO.
 */
int cw_webhook_hosts_apply(const struct cw_webhook_hosts *h, CURL *easy,
			   struct curl_slist **ret_addresses);

/* Makes curl refuse all protocols except HTTP and HTTPS. libcurl before 7.85 needs them as bits. */
static inline CURLcode cw_webhook_only_http(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}
