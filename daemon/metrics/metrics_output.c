/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/metrics/metrics_output.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/account.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/unixsock.h"
#include "loop/accept_pause.h"
#include "loop/events.h"

#define IDLE_S 5
#define MAX_HEADERS 8192
#define TEMP_SUFFIX ".new" /* not .prom, because node_exporter reads all *.prom files */

struct cw_metrics_output {
	struct cw_metrics_output_config config;
	struct evhttp *http;
	struct cw_accept_pause *pause;
	struct event *timer;
	char *socket_path, *file_path, *temp_path;
	bool has_failed; /* true after the first failure is logged, until the output works again */
};

/* Returns the text of all metrics in new memory; NULL = out of memory. */
static char *text_of(struct cw_metrics_output *o, size_t *ret_len)
{
	struct cw_metrics m;
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_len);

	if (!f)
		return NULL;
	o->config.collect(&m, o->config.user);
	cw_metrics_print(&m, f);
	if (fclose(f) == 0)
		return text;
	free(text);
	return NULL;
}

/* ---- HTTP ---- */

static void on_request(struct evhttp_request *req, void *user)
{
	const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
	const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
	struct evbuffer *out = evhttp_request_get_output_buffer(req);
	_cleanup_(freep) char *text = NULL;
	size_t len = 0;

	if (!path || (strcmp(path, "/metrics") != 0 && strcmp(path, "/") != 0)) {
		evhttp_send_error(req, HTTP_NOTFOUND, NULL);
		return;
	}
	text = text_of(user, &len);
	if (!text || evbuffer_add(out, text, len) < 0) {
		evhttp_send_error(req, HTTP_INTERNAL, NULL);
		return;
	}
	(void)evhttp_add_header(evhttp_request_get_output_headers(req), "Content-Type",
				"text/plain; version=0.0.4; charset=utf-8");
	evhttp_send_reply(req, HTTP_OK, "OK", NULL);
}

static int open_socket(struct cw_metrics_output *o, struct cw_err *err)
{
	struct evhttp_bound_socket *bound = NULL;
	gid_t gid = (gid_t)-1; /* stays -1 if there is no such group */
	int fd;

	if (*o->config.group && geteuid() == 0)
		(void)cw_account_group(o->config.group, &gid);
	fd = cw_unix_listen(o->config.socket_path, 0660, gid, err);
	if (fd < 0)
		return fd;
	o->socket_path = strdup(o->config.socket_path);
	o->http = evhttp_new(o->config.base);
	if (o->http && o->socket_path)
		bound = evhttp_accept_socket_with_handle(o->http, fd);
	if (!bound) {
		(void)close(fd);
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	if (cw_accept_pause_watch(o->config.base, o->config.clock, CW_LISTENER_METRICS,
				  evhttp_bound_socket_get_listener(bound), &o->pause) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	evhttp_set_allowed_methods(o->http, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
	evhttp_set_max_headers_size(o->http, MAX_HEADERS);
	evhttp_set_max_body_size(o->http, 0);
	evhttp_set_timeout(o->http, IDLE_S);
	evhttp_set_gencb(o->http, on_request, o);
	return 0;
}

/* ---- the file ---- */

/* Writes the text to a temporary file and renames it. Readers therefore never see half of it. */
static int write_file(struct cw_metrics_output *o)
{
	_cleanup_(freep) char *text = NULL;
	_cleanup_(closep) int fd = -1;
	size_t len = 0, done = 0;

	text = text_of(o, &len);
	if (!text)
		return -ENOMEM;
	/*
	 * Remove an old temporary file. A killed daemon may have left it, or another program made
	 * it. We never write to it.
	 */
	if (unlink(o->temp_path) < 0 && errno != ENOENT)
		return -errno;
	fd = open(o->temp_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -errno;
	while (done < len) {
		ssize_t n = write(fd, text + done, len - done);

		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	/* Set the mode despite the umask, because other users have to read the file. */
	if (fchmod(fd, 0644) < 0 || rename(o->temp_path, o->file_path) < 0)
		return -errno;
	return 0;
}

static void on_timer(evutil_socket_t fd, short what, void *user)
{
	struct cw_metrics_output *o = user;
	int r = write_file(o);

	if (r < 0 && !o->has_failed)
		log_warn("metrics_textfile %s: %s; tried again every %d s", o->file_path,
			 strerror(-r), CW_METRICS_FILE_EVERY_S);
	else if (r == 0 && o->has_failed)
		log_notice("metrics_textfile %s: written again", o->file_path);
	o->has_failed = r < 0;
}

static int open_file(struct cw_metrics_output *o, struct cw_err *err)
{
	static const struct timeval period = { .tv_sec = CW_METRICS_FILE_EVERY_S };

	o->file_path = strdup(o->config.file_path);
	if (!o->file_path || asprintf(&o->temp_path, "%s" TEMP_SUFFIX, o->file_path) < 0) {
		o->temp_path = NULL;
		return cw_err_set(err, ENOMEM, "out of memory");
	}
	o->timer = event_new(o->config.base, -1, EV_PERSIST, on_timer, o);
	if (!o->timer || event_add(o->timer, &period) < 0)
		return cw_err_set(err, ENOMEM, "out of memory");
	/* Write the file now, not only after the first interval. */
	event_active(o->timer, EV_TIMEOUT, 0);
	return 0;
}

int cw_metrics_output_new(const struct cw_metrics_output_config *config,
			  struct cw_metrics_output **ret, struct cw_err *err)
{
	struct cw_metrics_output *o = calloc(1, sizeof(*o));
	int r = 0;

	if (!o)
		return cw_err_set(err, ENOMEM, "out of memory");
	o->config = *config;
	if (*config->socket_path)
		r = open_socket(o, err);
	if (r >= 0 && *config->file_path)
		r = open_file(o, err);
	if (r < 0) {
		cw_metrics_output_free(o);
		return r;
	}
	*ret = o;
	return 0;
}

struct cw_metrics_output *cw_metrics_output_free(struct cw_metrics_output *o)
{
	if (!o)
		return NULL;
	event_freep(&o->timer);
	cw_accept_pause_free(o->pause);
	if (o->http)
		evhttp_free(o->http);
	/*
	 * Remove the files, because the numbers of an ended daemon would look current. An error
	 * means that the file does not exist.
	 */
	if (o->socket_path)
		(void)unlink(o->socket_path);
	if (o->temp_path)
		(void)unlink(o->temp_path);
	if (o->file_path)
		(void)unlink(o->file_path);
	free(o->socket_path);
	free(o->file_path);
	free(o->temp_path);
	free(o);
	return NULL;
}
