/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/webhook_probe.h"

#include <curl/curl.h>
#include <errno.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/alerts/webhook_hosts.h"
#include "transport/resolve.h"

static enum cw_webhook_probe explain(CURLcode code, const char *text, struct cw_err *err)
{
	(void)cw_err_set(err, ECONNREFUSED, "%s", *text ? text : curl_easy_strerror(code));
	switch (code) {
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
		return CW_WEBHOOK_PROBE_TLS;
	default:
		return CW_WEBHOOK_PROBE_UNREACHABLE;
	}
}

struct look_up {
	char why[384]; /* reason why a host has no address; "" = all hosts have addresses */
};

static void on_addresses(const char *error, void *user)
{
	struct look_up *l = user;

	(void)snprintf(l->why, sizeof(l->why), "%s", error ? error : "");
}

/* Resolves the hosts. Returns 0, or -errno with the reason in err. */
static int look_up(struct event_base *base, struct cw_webhook_hosts *hosts, struct cw_err *err)
{
	struct look_up l = { "" };
	int r = cw_webhook_hosts_look_up(hosts, CW_RESOLVE_NS, on_addresses, &l);

	if (r < 0)
		return cw_err_set(err, -r, "its name cannot be looked up: %s", strerror(-r));
	/* Run until the answer is there. This loop has no other events. */
	if (r == 0 && event_base_dispatch(base) < 0)
		return cw_err_set(err, EIO, "its name cannot be looked up");
	return *l.why ? cw_err_set(err, EHOSTUNREACH, "%s", l.why) : 0;
}

static enum cw_webhook_probe shake_hands(const struct cw_webhook_hosts *hosts, struct cw_err *err)
{
	enum cw_webhook_probe answer = CW_WEBHOOK_PROBE_OK;
	struct curl_slist *addresses = NULL;
	char text[CURL_ERROR_SIZE] = "";
	CURL *e = curl_easy_init();
	CURLcode r = CURLE_OUT_OF_MEMORY;
	int failed = 0;

	if (e) {
		/* Set the same options as daemon/alerts/webhook.c, except those for a request. */
		failed |= cw_webhook_hosts_apply(hosts, e, &addresses);
		failed |= cw_webhook_only_http(e);
		failed |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
		failed |= curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
		failed |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)CW_WEBHOOK_PROBE_MS);
		failed |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, text);
		r = failed ? CURLE_FAILED_INIT : curl_easy_perform(e);
	}
	if (r != CURLE_OK)
		answer = explain(r, text, err);
	curl_easy_cleanup(e);
	curl_slist_free_all(addresses);
	return answer;
}

enum cw_webhook_probe cw_webhook_probe(const char *url, struct cw_err *err)
{
	enum cw_webhook_probe answer = CW_WEBHOOK_PROBE_UNREACHABLE;
	struct event_base *base = event_base_new();
	struct cw_webhook_hosts *hosts = NULL;

	if (!base)
		(void)cw_err_set(err, ENOMEM, "out of memory");
	else if (cw_webhook_hosts_new(base, url, &hosts, err) == 0 &&
		 look_up(base, hosts, err) == 0)
		answer = shake_hands(hosts, err);
	cw_webhook_hosts_free(hosts);
	if (base)
		event_base_free(base);
	return answer;
}
