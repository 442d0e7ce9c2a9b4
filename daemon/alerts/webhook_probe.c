/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/webhook_probe.h"

#include <curl/curl.h>
#include <errno.h>

#include "daemon/alerts/webhook_post.h"

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

enum cw_webhook_probe cw_webhook_probe(const char *url, struct cw_err *err)
{
	enum cw_webhook_probe answer = CW_WEBHOOK_PROBE_OK;
	char text[CURL_ERROR_SIZE] = "", why[CURL_ERROR_SIZE];
	CURL *e = curl_easy_init();
	CURLcode r = CURLE_OUT_OF_MEMORY;
	int failed = 0;

	if (e) {
		/* Set the same options as daemon/alerts/webhook_post.c, except those of a request.
		 */
		failed |= cw_webhook_only_http(e);
		failed |= curl_easy_setopt(e, CURLOPT_URL, url);
		failed |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
		failed |= cw_webhook_quick_exit(e);
		failed |= curl_easy_setopt(e, CURLOPT_CONNECT_ONLY, 1L);
		failed |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)CW_WEBHOOK_PROBE_MS);
		failed |= curl_easy_setopt(e, CURLOPT_ERRORBUFFER, text);
		r = failed ? CURLE_FAILED_INIT : curl_easy_perform(e);
	}
	if (r != CURLE_OK)
		answer = explain(r, e ? cw_webhook_explain(e, r, text, why, sizeof(why)) : "", err);
	curl_easy_cleanup(e);
	return answer;
}
