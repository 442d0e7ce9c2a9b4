/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Against a real HTTP server on loopback, in the same event loop. Names under .test are resolved by
 * the getaddrinfo() of this file, which libcurl finds before the C library's, too. The fork server
 * starts with the first webhook, so that its children have the proxies that the test has set.
 */
#include "daemon/alerts/webhook.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/alerts/webhook_post.h"
#include "loop/fork_server.h"

#define MAX_REQUESTS 16
/* Of an attempt that ends by itself: no machine is so slow that it is made twice. */
#define TIMEOUT_MS 600000

static const struct cw_fork_job jobs[] = { { cw_webhook_post_child, 0, true } };

static struct event_base *base;
static struct cw_fork_server *forks;
static struct evhttp *http;
static uint16_t port;
static int port_fd;

/* The server's answer to the n-th request (the last one repeats); 0 = it never answers. */
static int answers[MAX_REQUESTS];
static unsigned n_requests;
static char last_body[4096], last_key[128], last_type[64], last_agent[64], last_auth[64];
static char last_host[64], last_proxy_auth[64];
static size_t answer_bytes;
static const char *answer_text;
static bool retry_after;

static struct {
	unsigned calls;
	bool delivered;
	long status;
	char id[80];
} outcome;

/* ---- the resolver ---- */

#define MAX_LOOK_UPS 8
#define HANGS "hangs"

struct resolver {
	pid_t self;
	/* The answer to the n-th question: addresses with commas; NULL = not now. */
	const char *says[MAX_LOOK_UPS];
	/* The look-up process writes these. */
	unsigned asked, asked_by_self, asked_dumpable;
	char names[MAX_LOOK_UPS][64];
};

static struct resolver *resolver; /* shared with children */

static void resolver_set_up(void)
{
	resolver = mmap(NULL, sizeof(*resolver), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	cr_assert_neq(resolver, MAP_FAILED);
	resolver->self = getpid();
}

typedef int (*getaddrinfo_fn)(const char *name, const char *service, const struct addrinfo *hints,
			      struct addrinfo **ret);

static int numbers(getaddrinfo_fn system, const char *says, const char *service,
		   const struct addrinfo *wanted, struct addrinfo **ret)
{
	struct addrinfo hints = *wanted, **end = ret;
	char list[128], *rest = list, *one;
	int r = 0;

	hints.ai_flags = AI_NUMERICHOST;
	(void)snprintf(list, sizeof(list), "%s", says);
	*ret = NULL;
	while (r == 0 && (one = strsep(&rest, ","))) {
		r = system(one, service, &hints, end);
		while (r == 0 && *end)
			end = &(*end)->ai_next;
	}
	return r;
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	getaddrinfo_fn system = (getaddrinfo_fn)dlsym(RTLD_NEXT, "getaddrinfo");
	size_t len = name ? strlen(name) : 0;
	const char *says;
	unsigned i;

	if (len && name[len - 1] == '.')
		len--;
	if (!resolver || len < 5 || strncasecmp(name + len - 5, ".test", 5) != 0)
		return system(name, service, hints, ret);
	i = resolver->asked < MAX_LOOK_UPS - 1 ? resolver->asked : MAX_LOOK_UPS - 1;
	(void)snprintf(resolver->names[i], sizeof(resolver->names[i]), "%s", name);
	resolver->asked_by_self += getpid() == resolver->self;
	resolver->asked_dumpable += prctl(PR_GET_DUMPABLE) != 0;
	resolver->asked++;
	while (i > 0 && !resolver->says[i])
		i--;
	says = getpid() == resolver->self ? "" : resolver->says[i];
	if (!says || !*says)
		return EAI_AGAIN;
	while (strcmp(says, HANGS) == 0)
		(void)pause();
	return numbers(system, says, service, hints, ret);
}

/* ---- the server ---- */

static void copy_header(struct evhttp_request *req, const char *name, char *buf, size_t len)
{
	const char *value = evhttp_find_header(evhttp_request_get_input_headers(req), name);

	(void)snprintf(buf, len, "%s", value ? value : "");
}

static void on_request(struct evhttp_request *req, void *arg)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	struct evbuffer *out;
	int n = evbuffer_remove(in, last_body, sizeof(last_body) - 1);
	unsigned i = n_requests < MAX_REQUESTS ? n_requests : MAX_REQUESTS - 1;

	last_body[n > 0 ? n : 0] = '\0';
	copy_header(req, "Idempotency-Key", last_key, sizeof(last_key));
	copy_header(req, "Content-Type", last_type, sizeof(last_type));
	copy_header(req, "User-Agent", last_agent, sizeof(last_agent));
	copy_header(req, "Authorization", last_auth, sizeof(last_auth));
	copy_header(req, "Host", last_host, sizeof(last_host));
	copy_header(req, "Proxy-Authorization", last_proxy_auth, sizeof(last_proxy_auth));
	while (i > 0 && answers[i] == -1)
		i--;
	n_requests++;
	if (answers[i] == 0)
		return; /* the client's timeout ends it */
	out = evbuffer_new();
	if (answer_text)
		evbuffer_add(out, answer_text, strlen(answer_text));
	if (answer_bytes) {
		char *big = calloc(1, answer_bytes);

		evbuffer_add(out, big, answer_bytes);
		free(big);
	}
	if (retry_after)
		evhttp_add_header(evhttp_request_get_output_headers(req), "Retry-After", "3600");
	if (answers[i] == 302)
		evhttp_add_header(evhttp_request_get_output_headers(req), "Location", "/elsewhere");
	evhttp_send_reply(req, answers[i], "x", out);
	evbuffer_free(out);
}

static void serve(uint16_t on_port)
{
	http = evhttp_new(base);
	evhttp_set_gencb(http, on_request, NULL);
	cr_assert_not_null(evhttp_bind_socket_with_handle(http, "127.0.0.1", on_port));
}

/*
 * Holds the port until the test ends, also without a listener: otherwise another process
 * could take it.
 */
static uint16_t hold_port(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(sin);

	port_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_geq(port_fd, 0);
	cr_assert_eq(setsockopt(port_fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	cr_assert_eq(bind(port_fd, (struct sockaddr *)&sin, len), 0);
	cr_assert_eq(getsockname(port_fd, (struct sockaddr *)&sin, &len), 0);
	return ntohs(sin.sin_port);
}

static void set_up(void)
{
	static const char *const proxies[] = { "http_proxy", "all_proxy", "ALL_PROXY", "NO_PROXY" };

	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++)
		unsetenv(proxies[i]);
	setenv("no_proxy", "*", 1);
	resolver_set_up();
	base = event_base_new();
	for (unsigned i = 0; i < MAX_REQUESTS; i++)
		answers[i] = -1;
	answers[0] = 200;
	serve(port = hold_port());
}

static void tear_down(void)
{
	if (http)
		evhttp_free(http);
	forks = cw_fork_server_free(forks);
	event_base_free(base);
	(void)close(port_fd);
	libevent_global_shutdown();
}

TestSuite(webhook, .init = set_up, .fini = tear_down);

static void start_server(void)
{
	const struct cw_fork_server_config config = {
		.base = base, .clock = &cw_clock_system, .jobs = jobs, .n_jobs = 1
	};

	if (!forks)
		cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
}

static uint32_t full_jitter(void *user)
{
	return UINT32_MAX;
}

static uint32_t max_pending = 2;

static struct cw_webhook *make_for(const char *host, uint32_t timeout_ms, uint32_t attempts,
				   const char *headers)
{
	struct cw_webhook_config config = {
		.base = base,
		.clock = &cw_clock_system,
		.headers = headers,
		.header_file = "headers",
		.timeout_ms = timeout_ms,
		.max_attempts = attempts,
		.max_pending = max_pending,
		.retry_min_ms = 20,
		.retry_max_ms = 50,
		.random = full_jitter,
	};
	struct cw_webhook *w = NULL;
	struct cw_err err = { 0 };
	char url[128];

	start_server();
	config.forks = forks;
	(void)snprintf(url, sizeof(url), "http://%s:%u/hook/s3cret", host, port);
	config.url = url;
	cr_assert_eq(cw_webhook_new(&config, &w, &err), 0, "%s", err.text);
	return w;
}

static struct cw_webhook *make(uint32_t timeout_ms, uint32_t attempts, const char *headers)
{
	return make_for("127.0.0.1", timeout_ms, attempts, headers);
}

static void on_outcome(uint32_t uid, const char *id, bool delivered, long status, void *user)
{
	outcome.calls++;
	outcome.delivered = delivered;
	outcome.status = status;
	(void)snprintf(outcome.id, sizeof(outcome.id), "%s", id);
	event_base_loopbreak(base);
}

static void on_too_late(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("no outcome within 120 s");
}

static void wait_for_outcomes(unsigned n)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct timeval tv = { 120, 0 };

	evtimer_add(deadline, &tv);
	while (outcome.calls < n)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
}

Test(webhook, posts_json_once_and_names_itself)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 3, NULL);
	char json[] = "{\"id\":\"ab12\"}", id[] = "ab12";

	cr_assert_eq(cw_webhook_post(w, 1000, id, json, on_outcome, NULL), 0);
	memset(json, 'x', sizeof(json) - 1); /* it was copied */
	memset(id, 'x', sizeof(id) - 1);
	cr_assert_eq(outcome.calls, 0);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_eq(outcome.status, 200);
	cr_assert_str_eq(outcome.id, "ab12");
	cr_assert_eq(n_requests, 1);
	cr_assert_str_eq(last_body, "{\"id\":\"ab12\"}");
	cr_assert_str_eq(last_key, "ab12");
	cr_assert_str_eq(last_type, "application/json");
	cr_assert_str_eq(last_agent, "collwatch/" CW_VERSION);
	cw_webhook_free(w);
}

Test(webhook, tries_again_after_a_server_error)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 5, NULL);
	struct cw_webhook_stats stats;

	answers[0] = 500;
	answers[1] = 429;
	answers[2] = 204;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_eq(outcome.status, 204);
	cr_assert_eq(n_requests, 3);
	cr_assert_str_eq(last_key, "ab12");
	cw_webhook_stats(w, &stats);
	cr_assert_eq(stats.attempts, 3);
	cr_assert_eq(stats.delivered, 1);
	cr_assert_eq(stats.pending, 0);
	cw_webhook_free(w);
}

/* The longest wait is 50 ms here; with the jitter at its least and 20 ms it would be 10. */
Test(webhook, gives_a_server_the_time_it_asks_for_up_to_the_longest_wait)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 5, NULL);
	int64_t start;

	answers[0] = 429;
	answers[1] = 200;
	retry_after = true;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	while (n_requests == 0)
		event_base_loop(base, EVLOOP_ONCE);
	start = cw_clock_now_ns(&cw_clock_system);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_eq(n_requests, 2);
	cr_assert_geq(cw_clock_now_ns(&cw_clock_system) - start, 45 * CW_NS_PER_MS);
	cw_webhook_free(w);
}

Test(webhook, tries_again_until_somebody_listens)
{
	struct cw_webhook_stats stats = { 0 };
	struct cw_webhook *w;

	evhttp_free(http);
	http = NULL;
	w = make(TIMEOUT_MS, 1000, NULL);
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	while (stats.attempts < 2) {
		event_base_loop(base, EVLOOP_ONCE);
		cw_webhook_stats(w, &stats);
	}
	cr_assert_eq(outcome.calls, 0);
	serve(port);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_eq(n_requests, 1);
	cw_webhook_free(w);
}

Test(webhook, takes_a_client_error_as_final)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 5, NULL);

	answers[0] = 404;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert_not(outcome.delivered);
	cr_assert_eq(outcome.status, 404);
	cr_assert_eq(n_requests, 1);
	cw_webhook_free(w);
}

static int log_read;

static void log_begin(void)
{
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	log_read = ends[0];
	cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
	unsetenv("JOURNAL_STREAM");
}

static const char *logged(void)
{
	static char text[8192];
	ssize_t n = read(log_read, text, sizeof(text) - 1);

	text[n > 0 ? n : 0] = '\0';
	return text;
}

static void refuse_with(const char *text, const char *headers)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 1, headers);

	answers[0] = 400;
	answer_text = text;
	outcome.calls = 0;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cw_webhook_free(w);
}

Test(webhook, a_refusal_is_logged_with_the_servers_reason)
{
	char big[4096];
	const char *line;

	log_begin();
	refuse_with("invalid_payload: no field \"text\"", NULL);
	line = logged();
	cr_expect_not_null(strstr(line, "(status 400): invalid_payload: no field \"text\", giving"),
			   "%s", line);
	refuse_with("", NULL);
	line = logged();
	cr_expect_not_null(strstr(line, "(status 400), giving"), "%s", line);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	refuse_with(big, NULL);
	line = logged();
	cr_expect_not_null(strstr(line, "(status 400): xxx"), "%s", line);
	cr_expect_lt(strlen(line), 400, "200 bytes of it");
}

Test(webhook, a_servers_reason_forges_no_line_and_tells_no_secret)
{
	const char *line;

	log_begin();
	refuse_with("no\n<3>collwatchd: all is well\033[2J\xe2\x80\xae\xff", NULL);
	line = logged();
	cr_expect_not_null(strstr(line, "no?<3>collwatchd: all is well?[2J"), "%s", line);
	cr_expect_null(strpbrk(line, "\033\xe2\xff"), "%s", line);
	cr_expect_eq(strchr(line, '\n'), line + strlen(line) - 1, "one line: %s", line);
	refuse_with("bad token t0ken-of-ours for /hook/s3cret, Bearer t0ken-of-ours",
		    "Authorization: Bearer t0ken-of-ours\n");
	line = logged();
	cr_expect_not_null(strstr(line, "(status 400): bad token"), "%s", line);
	cr_expect_null(strstr(line, "t0ken"), "%s", line);
	cr_expect_null(strstr(line, "s3cret"), "%s", line);
}

Test(webhook, gives_up_after_the_last_attempt)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 3, NULL);

	answers[0] = 503;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert_not(outcome.delivered);
	cr_assert_eq(outcome.status, 503);
	cr_assert_eq(n_requests, 3);
	cw_webhook_free(w);
}

Test(webhook, ends_an_attempt_when_the_server_is_silent)
{
	struct cw_webhook *w = make(150, 1000, NULL);

	answers[0] = 0;
	answers[1] = 200;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_geq(n_requests, 2); /* a busy machine may be silent for so long once more */
	cw_webhook_free(w);
}

Test(webhook, follows_no_redirect)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 2, NULL);

	answers[0] = 302;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert_not(outcome.delivered);
	cr_assert_eq(outcome.status, 302);
	cr_assert_eq(n_requests, 2);
	cw_webhook_free(w);
}

Test(webhook, counts_an_answer_with_an_endless_body_as_delivered)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 5, NULL);

	answer_bytes = 4u << 20;
	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert(outcome.delivered);
	cr_assert_eq(n_requests, 1);
	cw_webhook_free(w);
}

Test(webhook, refuses_more_than_may_be_pending)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 3, NULL);

	cr_assert_eq(cw_webhook_post(w, 1000, "a1", "{}", on_outcome, NULL), 0);
	cr_assert_eq(cw_webhook_post(w, 1001, "a2", "{}", on_outcome, NULL), 0);
	cr_assert_eq(cw_webhook_post(w, 1002, "a3", "{}", on_outcome, NULL), -EAGAIN);
	cr_assert(cw_webhook_is_pending(w, 1001, "a2"));
	cr_assert_not(cw_webhook_is_pending(w, 1002, "a3"));
	wait_for_outcomes(2);
	cr_assert_not(cw_webhook_is_pending(w, 1001, "a2"));
	cr_assert_eq(cw_webhook_post(w, 1000, "a3", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(3);
	cr_assert_str_eq(outcome.id, "a3");
	cw_webhook_free(w);
}

Test(webhook, leaves_half_of_the_places_to_other_users)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 3, NULL);

	cr_assert_eq(cw_webhook_post(w, 1000, "a1", "{}", on_outcome, NULL), 0);
	cr_assert_eq(cw_webhook_post(w, 1000, "a2", "{}", on_outcome, NULL), -EAGAIN);
	cr_assert_eq(cw_webhook_post(w, 1001, "b1", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(2);
	cw_webhook_free(w);
}

Test(webhook, counts_alerts_that_wait_for_a_free_child)
{
	struct cw_webhook_stats stats = { 0 };
	struct cw_webhook *w;
	char id[8];

	max_pending = 16;
	w = make(TIMEOUT_MS, 3, NULL);
	answers[0] = 0;
	for (uint32_t uid = 1; uid <= 6; uid++) {
		(void)snprintf(id, sizeof(id), "a%u", uid);
		cr_assert_eq(cw_webhook_post(w, uid, id, "{}", on_outcome, NULL), 0);
	}
	while (n_requests < 4 || stats.no_child < 2) {
		event_base_loop(base, EVLOOP_ONCE);
		cw_webhook_stats(w, &stats);
	}
	cr_assert_eq(stats.attempts, 4, "no other alert has a child");
	cr_assert_eq(stats.pending, 6);
	cw_webhook_free(w);
	cr_assert_eq(outcome.calls, 0);
}

Test(webhook, can_be_freed_in_mid_transfer)
{
	struct cw_webhook *w = make(TIMEOUT_MS, 3, NULL);

	answers[0] = 0;
	cr_assert_eq(cw_webhook_post(w, 1000, "a1", "{}", on_outcome, NULL), 0);
	while (n_requests == 0)
		event_base_loop(base, EVLOOP_ONCE);
	cw_webhook_free(w);
	event_base_loop(base, EVLOOP_NONBLOCK);
	cr_assert_eq(outcome.calls, 0);
}

Test(webhook, sends_the_headers_that_it_is_given)
{
	struct cw_webhook *w =
		make(TIMEOUT_MS, 3, "# for the chat\n\nAuthorization: Bearer 123\r\n");

	cr_assert_eq(cw_webhook_post(w, 1000, "a1", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert_str_eq(last_auth, "Bearer 123");
	cw_webhook_free(w);
}

Test(webhook, refuses_bad_configuration_without_repeating_secrets)
{
	static const char *const urls[] = { "ftp://host/s3cret", "file:///s3cret", "s3cret",
					    "gopher://host/s3cret", "" };
	struct cw_webhook_config config = {
		.base = base, .timeout_ms = 1, .max_attempts = 1, .max_pending = 1
	};
	struct cw_webhook *w = NULL;
	struct cw_err err = { 0 };

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		err = (struct cw_err){ 0 };
		config.url = urls[i];
		cr_assert_eq(cw_webhook_new(&config, &w, &err), -EINVAL, "%s", urls[i]);
		cr_assert_null(strstr(err.text, "s3cret"), "%s", err.text);
		cr_assert_neq(err.text[0], '\0');
	}
	config.url = "http://127.0.0.1/";
	config.headers = "X-Other: 1\ns3cret\n";
	config.header_file = "/headers";
	cr_assert_eq(cw_webhook_new(&config, &w, &err), -EINVAL);
	cr_assert_null(strstr(err.text, "s3cret"), "%s", err.text);
	cr_assert_not_null(strstr(err.text, "/headers:2: "), "%s", err.text);
	cr_assert_null(w);
}

/* ---- names ---- */

/*
 * Killed children may take their time to die on a busy machine; a child that escaped the
 * kill never ends.
 */
static void no_child_is_left(void)
{
	(void)alarm(120);
	while (waitpid(-1, NULL, 0) > 0)
		;
	(void)alarm(0);
}

/* Posts one alert and waits for its outcome. */
static void post_to(const char *host, uint32_t attempts)
{
	struct cw_webhook *w = make_for(host, TIMEOUT_MS, attempts, NULL);

	cr_assert_eq(cw_webhook_post(w, 1000, "ab12", "{}", on_outcome, NULL), 0);
	wait_for_outcomes(1);
	cr_assert_eq(resolver->asked_by_self, 0, "a look-up within the daemon holds its loop up");
	cw_webhook_free(w);
	forks = cw_fork_server_free(forks);
	no_child_is_left();
}

Test(webhook, looks_names_up_in_a_child_and_asks_for_the_same_host)
{
	char host[64];

	resolver->says[0] = "127.0.0.1";
	post_to("hooks.test", 3);
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 1);
	cr_assert_eq(resolver->asked_dumpable, 0, "others of its user may look into it");
	(void)snprintf(host, sizeof(host), "hooks.test:%u", port);
	cr_assert_str_eq(last_host, host);
}

Test(webhook, takes_a_name_however_it_is_written)
{
	resolver->says[0] = "127.0.0.1";
	post_to("HOOKS.test.", 3);
	cr_assert(outcome.delivered);
	cr_assert_eq(n_requests, 1);
}

Test(webhook, looks_a_name_up_anew_for_each_attempt)
{
	/* An unknown address; an address without a listener; the server's address. */
	resolver->says[0] = "";
	resolver->says[1] = "127.0.0.2";
	resolver->says[2] = "127.0.0.1";
	post_to("hooks.test", 3);
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 3);
	cr_assert_eq(n_requests, 1);
}

Test(webhook, tries_all_addresses_of_a_name_in_one_attempt)
{
	resolver->says[0] = "127.0.0.2,::1,127.0.0.1";
	post_to("hooks.test", 1);
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 1);
}

Test(webhook, fails_for_now_where_a_name_is_not_found)
{
	resolver->says[0] = "";
	post_to("hooks.test", 2);
	cr_assert_not(outcome.delivered);
	cr_assert_eq(outcome.status, 0, "no server refused it: we try again later");
	cr_assert_eq(resolver->asked, 2);
}

Test(webhook, needs_no_look_up_for_an_address)
{
	post_to("127.1", 1); /* as curl reads it */
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 0);
}

Test(webhook, goes_on_and_can_be_freed_while_a_look_up_hangs)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct cw_webhook *w = make_for("hooks.test", TIMEOUT_MS, 3, NULL);
	struct timeval tv = { 120, 0 };

	evtimer_add(deadline, &tv);
	resolver->says[0] = HANGS;
	cr_assert_eq(cw_webhook_post(w, 1000, "a1", "{}", on_outcome, NULL), 0);
	while (resolver->asked == 0)
		event_base_loop(base, EVLOOP_NONBLOCK);
	cr_assert_eq(resolver->asked_by_self, 0, "a look-up within the daemon holds its loop up");
	cr_assert(cw_webhook_is_pending(w, 1000, "a1"));
	cw_webhook_free(w);
	forks = cw_fork_server_free(forks);
	no_child_is_left();
	cr_assert_eq(outcome.calls, 0);
	event_free(deadline);
}

/* ---- proxies ---- */

/* Makes our server the proxy. */
static void set_proxy(const char *variable, const char *url_but_port)
{
	char url[128];

	(void)snprintf(url, sizeof(url), "%s:%u", url_but_port, port);
	setenv(variable, url, 1);
	unsetenv("no_proxy");
}

Test(webhook, uses_the_proxy_of_the_environment_and_looks_up_its_name_alone)
{
	char host[64];

	set_proxy("http_proxy", "http://user:word@proxy.test");
	resolver->says[0] = "127.0.0.1";
	post_to("hooks.test", 3);
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 1);
	cr_assert_str_eq(resolver->names[0], "proxy.test");
	(void)snprintf(host, sizeof(host), "hooks.test:%u", port);
	cr_assert_str_eq(last_host, host);
	cr_assert_str_eq(last_proxy_auth, "Basic dXNlcjp3b3Jk");
}

Test(webhook, uses_a_proxy_that_is_an_address)
{
	set_proxy("ALL_PROXY", "127.0.0.1");
	post_to("hooks.test", 3);
	cr_assert(outcome.delivered);
	cr_assert_eq(resolver->asked, 0);
}

Test(webhook, goes_around_the_proxy_where_no_proxy_says_so)
{
	set_proxy("http_proxy", "http://proxy.test");
	setenv("no_proxy", "10.0.0.0/8, .test", 1);
	resolver->says[0] = "127.0.0.1";
	post_to("hooks.test", 3);
	cr_assert(outcome.delivered);
	cr_assert_str_eq(resolver->names[0], "hooks.test");
}

Test(webhook, refuses_a_name_that_libcurl_cannot_convert)
{
	struct cw_webhook_config config = {
		.base = base,
		.url = "http://b\xc3\xbc"
		       "cher.test/s3cret",
		.timeout_ms = 1,
		.max_attempts = 1,
		.max_pending = 1,
	};
	struct cw_webhook *w = NULL;
	struct cw_err err = { 0 };

	cr_assert_eq(cw_webhook_new(&config, &w, &err), -EINVAL);
	cr_assert_null(strstr(err.text, "s3cret"), "%s", err.text);
}
