/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One attempt to post an alert, in a child of the fork server, with libcurl's easy interface.
 * libcurl finds the proxy of the environment, resolves the names and checks certificates. It may
 * block in a look-up, so the daemon's deadline for the child counts.
 *
 * The request comes to the child in a memfd, because URL and headers may hold secrets. The answer
 * of the server may repeat them, so the child masks them in the answer.
 */
#pragma once

#include <curl/curl.h>
#include <stddef.h>
#include <stdint.h>

struct cw_webhook_request {
	const char *url, *id, *json;
	const char *headers; /* lines "Name: value", with '\n' between them */
	uint32_t timeout_ms;
};

/* If the server refuses the alert, we keep at most this many bytes of its answer. */
#define CW_WEBHOOK_REASON_BYTES 200u

/* The result of an attempt, which the child writes to its output. */
struct cw_webhook_result {
	int64_t status;                           /* HTTP status; 0 = no answer */
	uint64_t retry_after_s;                   /* wait that the server requested; 0 = none */
	char why[256];                            /* reason why there is no answer */
	char reason[CW_WEBHOOK_REASON_BYTES + 1]; /* one printable line of the answer */
};

/*
 * Returns the argument of the child in secret memory (transport/secret.h), which the caller frees;
 * NULL = out of memory.
 */
char *cw_webhook_request_pack(const struct cw_webhook_request *request, size_t *ret_len);

/*
 * Makes one attempt as a job of the fork server. fd is the job's end of the pair. Returns the exit
 * status.
 */
int cw_webhook_post_child(int fd);
/* Makes the attempt inside that job: the cw_child_main_fn that cw_webhook_post_child() runs. */
int cw_webhook_post_main(int out_fd, const void *arg);

/*
 * Makes curl refuse all protocols except HTTP and HTTPS. libcurl before 7.85 takes the protocols as
 * bits.
 */
CURLcode cw_webhook_only_http(CURL *easy);
/* Makes curl not wait for its resolver's thread after a time-out. libcurl before 7.87 always waits.
 */
CURLcode cw_webhook_quick_exit(CURL *easy);
/*
 * Returns the reason why a transfer failed, in buf or static. text: libcurl's CURLOPT_ERRORBUFFER.
 */
const char *cw_webhook_explain(CURL *easy, CURLcode code, const char *text, char *buf, size_t len);
