/* SPDX-License-Identifier: Apache-2.0 */
/* The child frees nothing, because it exits after the attempt. */
#include "daemon/alerts/webhook_post.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/text.h"
#include "loop/children.h"
#include "transport/secret.h"

/*
 * Longest answer that we read; we keep only its beginning. If the server sends more, we end the
 * transfer.
 */
#define MAX_RESPONSE_BYTES (64u << 10)
/*
 * Shorter parts of the URL and the headers are not secret, because an answer may contain such words
 * by chance.
 */
#define MIN_SECRET_BYTES 6u

/*
 * The child's argument begins with this struct. After it come URL, id, headers and JSON, each with
 * its NUL.
 */
struct head {
	uint32_t timeout_ms;
};

char *cw_webhook_request_pack(const struct cw_webhook_request *request, size_t *ret_len)
{
	const char *const strings[] = { request->url, request->id, request->headers,
					request->json };
	struct head head = { .timeout_ms = request->timeout_ms };
	size_t len = sizeof(head);
	char *buf, *at;

	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		len += strlen(strings[i]) + 1;
	buf = cw_secret_malloc(len);
	if (!buf)
		return NULL;
	memcpy(buf, &head, sizeof(head));
	at = buf + sizeof(head);
	for (size_t i = 0; i < sizeof(strings) / sizeof(strings[0]); i++)
		at = stpcpy(at, strings[i]) + 1;
	*ret_len = len;
	return buf;
}

/* ---- the text of a refusal, without our secrets ---- */

static void mask(char *text, const char *secret, size_t len)
{
	size_t n = strlen(text);

	if (len < MIN_SECRET_BYTES)
		return;
	for (size_t i = 0; i + MIN_SECRET_BYTES <= n; i++) {
		/* At the end of a text that was cut, mask the beginning of a secret, too. */
		size_t most = n - i < len ? n - i : len;

		if (memcmp(text + i, secret, most) == 0)
			memset(text + i, '*', most);
	}
}

/* Masks each piece of `secrets` in the text. The characters of `between` separate the pieces. */
static void mask_pieces(char *text, const char *secrets, const char *between)
{
	while (*(secrets += strspn(secrets, between))) {
		size_t len = strcspn(secrets, between);

		mask(text, secrets, len);
		secrets += len;
	}
}

static void mask_url(char *text, const char *url)
{
	const char *behind_scheme = strstr(url, "://"), *path;

	if (!behind_scheme)
		return;
	behind_scheme += 3;
	path = behind_scheme + strcspn(behind_scheme, "/?#");
	mask_pieces(text, path, "/?&=#");
	/* Mask the user and password in "https://user:password@host". */
	if (memchr(behind_scheme, '@', (size_t)(path - behind_scheme)))
		mask(text, behind_scheme, strcspn(behind_scheme, "@"));
}

/* ---- the transfer ---- */

struct transfer {
	struct cw_webhook_result result;
	size_t reason_len, response_bytes;
};

static size_t on_response(char *data, size_t size, size_t n, void *user)
{
	struct transfer *t = user;
	size_t more = size * n, room = CW_WEBHOOK_REASON_BYTES - t->reason_len;

	memcpy(t->result.reason + t->reason_len, data, more < room ? more : room);
	t->reason_len += more < room ? more : room;
	t->response_bytes += more;
	return t->response_bytes > MAX_RESPONSE_BYTES ? 0 : more;
}

static bool append_header(struct curl_slist **list, const char *line)
{
	struct curl_slist *longer = curl_slist_append(*list, line);

	if (longer)
		*list = longer;
	return longer != NULL;
}

static void mask_headers(char *text, char *lines)
{
	char *line, *colon;

	while ((line = strsep(&lines, "\n")))
		if ((colon = strchr(line, ':')))
			mask_pieces(text, colon + 1, " \t,;=");
}

static struct curl_slist *make_headers(const char *id, char *lines)
{
	struct curl_slist *list = NULL;
	char key[128], *line;

	(void)snprintf(key, sizeof(key), "Idempotency-Key: %.100s", id);
	if (!append_header(&list, "Content-Type: application/json") ||
	    !append_header(&list, "Expect:") || !append_header(&list, key))
		return NULL;
	while ((line = strsep(&lines, "\n")))
		if (*line && !append_header(&list, line))
			return NULL;
	return list;
}

CURLcode cw_webhook_only_http(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075500
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
	return curl_easy_setopt(easy, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

CURLcode cw_webhook_quick_exit(CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075700
	return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
	return CURLE_OK;
#endif
}

/*
 * If libcurl cannot resolve a host, its message names the host. If the time ran out during the
 * look-up, its message names only the time.
 */
const char *cw_webhook_explain(CURL *easy, CURLcode code, const char *text, char *buf, size_t len)
{
	curl_off_t looked_up_us = 1;

	(void)curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &looked_up_us);
	if (code == CURLE_OPERATION_TIMEDOUT && looked_up_us == 0)
		return "the name server does not answer";
	(void)snprintf(buf, len, "%s", *text ? text : curl_easy_strerror(code));
	return buf;
}

static CURLcode set_options(CURL *e, const char *url, const char *json, uint32_t timeout_ms,
			    struct curl_slist *headers, struct transfer *t)
{
	CURLcode r = CURLE_OK;

	/* Each call may fail: memory may run out, or curl may lack a feature. */
	r |= cw_webhook_only_http(e);
	r |= curl_easy_setopt(e, CURLOPT_URL, url);
	r |= curl_easy_setopt(e, CURLOPT_FOLLOWLOCATION, 0L);
	r |= curl_easy_setopt(e, CURLOPT_NOSIGNAL, 1L);
	r |= cw_webhook_quick_exit(e);
	r |= curl_easy_setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	r |= curl_easy_setopt(e, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	r |= curl_easy_setopt(e, CURLOPT_USERAGENT, "collwatch/" CW_VERSION);
	r |= curl_easy_setopt(e, CURLOPT_HTTPHEADER, headers);
	r |= curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(json));
	r |= curl_easy_setopt(e, CURLOPT_POSTFIELDS, json);
	r |= curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_response);
	r |= curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
	return r;
}

int cw_webhook_post_main(int out_fd, const void *arg)
{
	const struct head *head = arg;
	const char *url = (const char *)(head + 1), *id = url + strlen(url) + 1;
	const char *lines = id + strlen(id) + 1, *json = lines + strlen(lines) + 1;
	char *copy = strdup(lines), *again = strdup(lines), text[CURL_ERROR_SIZE] = "";
	struct curl_slist *headers = copy ? make_headers(id, copy) : NULL;
	struct transfer t = { .reason_len = 0 };
	CURL *e = curl_easy_init();
	curl_off_t retry_after_s = 0;
	long status = 0;
	CURLcode r;

	if (!e || !again || !headers || set_options(e, url, json, head->timeout_ms, headers, &t) ||
	    curl_easy_setopt(e, CURLOPT_ERRORBUFFER, text))
		return 1;
	r = curl_easy_perform(e);
	/* The status counts even if we cut the rest of the answer off. */
	(void)curl_easy_getinfo(e, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_getinfo(e, CURLINFO_RETRY_AFTER, &retry_after_s);
	t.result.status = status;
	t.result.retry_after_s = retry_after_s > 0 ? (uint64_t)retry_after_s : 0;
	if (!status) {
		char buf[sizeof(t.result.why)];

		(void)snprintf(t.result.why, sizeof(t.result.why), "%s",
			       cw_webhook_explain(e, r, text, buf, sizeof(buf)));
		mask_url(t.result.why, url);
	}
	mask_url(t.result.reason, url);
	mask_headers(t.result.reason, again);
	cw_text_sanitise_line(t.result.reason);
	cw_text_sanitise_line(t.result.why);
	return write(out_fd, &t.result, sizeof(t.result)) == sizeof(t.result) ? 0 : 1;
}

int cw_webhook_post_child(int fd)
{
	return cw_child_run(fd, cw_webhook_post_main);
}
