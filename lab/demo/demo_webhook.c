/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/demo/demo_webhook.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "report/json_util.h"

#define MAX_BODY (4 << 20)

struct demo_webhook {
	struct evhttp *http;
	uint16_t port;
	demo_webhook_fn on_alert;
	void *user;
};

static json_t *read_body(struct evhttp_request *request)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(request);
	size_t len = evbuffer_get_length(in);
	_cleanup_(freep) char *body = malloc(len + 1);

	if (!body || evbuffer_remove(in, body, len) != (ev_ssize_t)len)
		return NULL;
	return json_loadb(body, len, JSON_REJECT_DUPLICATES, NULL);
}

static void on_post(struct evhttp_request *request, void *user)
{
	struct demo_webhook *webhook = user;
	json_t *incident;

	if (evhttp_request_get_command(request) != EVHTTP_REQ_POST) {
		evhttp_send_error(request, HTTP_BADMETHOD, NULL);
		return;
	}
	incident = read_body(request);
	if (strcmp(cw_json_str(incident, "schema", ""), "collwatch.incident/1") != 0) {
		evhttp_send_error(request, HTTP_BADREQUEST, "not a collwatch.incident/1");
	} else {
		evhttp_send_reply(request, HTTP_NOCONTENT, NULL, NULL);
		webhook->on_alert(incident, webhook->user);
	}
	json_decref(incident);
}

static int listen_on(struct demo_webhook *webhook, int listen_fd)
{
	struct evhttp_bound_socket *bound =
		listen_fd < 0 ? evhttp_bind_socket_with_handle(webhook->http, "127.0.0.1", 0)
			      : evhttp_accept_socket_with_handle(webhook->http, listen_fd);
	struct sockaddr_in address;
	socklen_t len = sizeof(address);

	if (!bound) {
		int r = -errno;

		closep(&listen_fd);
		return r;
	}
	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len) < 0)
		return -errno;
	webhook->port = ntohs(address.sin_port);
	return 0;
}

int demo_webhook_new(struct event_base *base, int listen_fd, demo_webhook_fn on_alert, void *user,
		     struct demo_webhook **ret, struct cw_err *err)
{
	struct demo_webhook *webhook = calloc(1, sizeof(*webhook));
	int r;

	if (webhook)
		webhook->http = evhttp_new(base);
	if (!webhook || !webhook->http) {
		closep(&listen_fd);
		demo_webhook_free(webhook);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	webhook->on_alert = on_alert;
	webhook->user = user;
	evhttp_set_max_body_size(webhook->http, MAX_BODY);
	evhttp_set_gencb(webhook->http, on_post, webhook);
	r = listen_on(webhook, listen_fd);
	if (r < 0) {
		demo_webhook_free(webhook);
		return cw_err_set(err, -r, "cannot listen for alerts: %s", strerror(-r));
	}
	*ret = webhook;
	return 0;
}

struct demo_webhook *demo_webhook_free(struct demo_webhook *webhook)
{
	if (!webhook)
		return NULL;
	if (webhook->http)
		evhttp_free(webhook->http);
	free(webhook);
	return NULL;
}

uint16_t demo_webhook_port(const struct demo_webhook *webhook)
{
	return webhook->port;
}
