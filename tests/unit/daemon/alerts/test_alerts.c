/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts against a real HTTP server on loopback and a real state directory. */
#include "daemon/alerts/alerts.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/alerts/webhook_post.h"
#include "daemon/store/store.h"
#include "loop/fork_server.h"

static char dir[] = "/tmp/cw-alerts-XXXXXX";
static struct event_base *base;
static struct cw_fork_server *forks;
static struct evhttp *http;
static struct cw_store *store;
static struct cw_alerts *alerts;
static struct cw_config *config;
static unsigned requests, posted;
static unsigned refusals; /* so many requests are answered with 503 from now on */
static bool is_refused;   /* each request is answered with 400 */
static char url[64], last_body[8192], last_path[64], last_key[64];

static void on_request(struct evhttp_request *req, void *arg)
{
	int n = evbuffer_remove(evhttp_request_get_input_buffer(req), last_body,
				sizeof(last_body) - 1);

	last_body[n > 0 ? n : 0] = '\0';
	(void)snprintf(last_path, sizeof(last_path), "%s", evhttp_request_get_uri(req));
	(void)snprintf(last_key, sizeof(last_key), "%s",
		       evhttp_find_header(evhttp_request_get_input_headers(req), "Idempotency-Key")
			       ?: "");
	requests++;
	if (refusals) {
		refusals--;
		evhttp_send_reply(req, 503, "Later", NULL);
		return;
	}
	evhttp_send_reply(req, is_refused ? 400 : 200, is_refused ? "No" : "OK", NULL);
}

static void serve(void)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);

	http = evhttp_new(base);
	evhttp_set_gencb(http, on_request, NULL);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	cr_assert_eq(getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&sin, &len),
		     0);
	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%u/hook", ntohs(sin.sin_port));
}

static const char *quiet = ""; /* path of the notices' webhook; "" = none */

static struct cw_config *config_with(const char *mode, const char *format)
{
	struct cw_config *c = NULL;
	char path[64];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	f = fopen(path, "w");
	cr_assert_gt(fprintf(f, "mode = %s\nwebhook_format = %s\nwebhook_url = \"%s\"\n", mode,
			     format, url),
		     0);
	if (*quiet)
		cr_assert_gt(fprintf(f, "notice_webhook_url = \"%s%s\"\n", url, quiet), 0);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(cw_config_load(path, &c, NULL), 0);
	return c;
}

/* The clock for the rate of alerts: the machine's, plus the time that tests skip. */
static int64_t skipped_ns;

static int64_t skipping_now(void *user)
{
	return cw_clock_now_ns(&cw_clock_system) + skipped_ns;
}

static int64_t system_wall(void *user)
{
	return cw_clock_wall_ns(&cw_clock_system);
}

static const struct cw_clock skipping_clock = { skipping_now, system_wall, NULL };

static void on_posted(const struct cw_incident_due *due, bool delivered, void *user)
{
	posted += delivered;
	event_base_loopbreak(base);
}

static unsigned completed;

/* Completes a bundle with the number of calls so far. */
static void complete(const json_t *head, struct cw_bundle *bundle, void *user)
{
	cr_assert_not_null(json_object_get(head, "id"));
	bundle->ops = json_pack("{s:i}", "asked", (int)++completed);
}

static void open_all(const char *mode, const char *format)
{
	struct cw_store_config s = { .state_dir = dir,
				     .max_bytes = 1 << 24,
				     .max_age_ns = 86400 * 365 * 20 * CW_NS_PER_S,
				     .clock = &cw_clock_system };
	struct cw_alerts_config a = {
		.base = base,
		.forks = forks,
		.clock = &skipping_clock,
		.state_dir = dir,
		.on_posted = on_posted,
		.complete = complete,
	};

	config = config_with(mode, format);
	cr_assert_eq(cw_store_open(&s, &store, NULL), 0);
	a.store = store;
	cr_assert_eq(cw_alerts_new(&a, config, &alerts, NULL), 0);
}

static void close_all(void)
{
	alerts = cw_alerts_free(alerts);
	store = cw_store_close(store);
	config = cw_config_free(config);
}

static void setup(void)
{
	static const struct cw_fork_job jobs[] = { { cw_webhook_post_child, 0, true } };
	struct cw_fork_server_config server = { .clock = &cw_clock_system,
						.jobs = jobs,
						.n_jobs = 1 };

	setenv("no_proxy", "*", 1);
	cr_assert_not_null(mkdtemp(dir));
	base = event_base_new();
	server.base = base;
	cr_assert_eq(cw_fork_server_new(&server, &forks), 0);
	serve();
}

static void teardown(void)
{
	char command[64];

	close_all();
	forks = cw_fork_server_free(forks);
	evhttp_free(http);
	event_base_free(base);
	libevent_global_shutdown();
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(alerts, .init = setup, .fini = teardown);

static const char *suppress_reason(const char *id)
{
	struct cw_incident_due due = {
		.id = id, .job = "name:j", .uid = 7, .verdict_class = CW_CLASS_MISMATCH
	};

	return cw_alerts_suppress_reason(alerts, &due);
}

static void put_bundle(const char *id)
{
	struct cw_bundle b = {
		.incident = json_pack("{s:s, s:s, s:s, s:i}", "schema", "collwatch.incident/1",
				      "id", id, "summary", "rank 3 sleeps", "uid", 7),
	};

	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	cw_bundle_fini(&b);
}

static void on_too_late(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("no alert within 120 s");
}

static void wait_for_posts(unsigned n)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct timeval tv = { 120, 0 };

	evtimer_add(deadline, &tv);
	while (posted < n)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
}

Test(alerts, what_a_former_life_did_not_deliver_goes_out_once)
{
	open_all("alert", "generic");
	cr_assert_null(suppress_reason("a1"));
	put_bundle("a1");
	close_all(); /* before it was posted */
	open_all("alert", "generic");
	cw_alerts_resend(alerts);
	wait_for_posts(1);
	cr_assert_not_null(strstr(last_body, "collwatch.incident/1"));
	cw_alerts_resend(alerts);
	close_all();
	open_all("alert", "generic");
	cw_alerts_resend(alerts);
	cr_assert_null(suppress_reason("a1"));
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	cr_assert_eq(requests, 1);
}

Test(alerts, shadow_is_decided_once_and_outlives_restart_and_reload)
{
	struct cw_alerts_stats stats;
	struct cw_config *loud;

	open_all("shadow", "generic");
	cr_assert(cw_alerts_is_shadow(alerts));
	cr_assert_str_eq(suppress_reason("a1"), "shadow");
	put_bundle("a1");
	loud = config_with("alert", "generic");
	cr_assert_eq(cw_alerts_reload(alerts, config, loud, NULL), 0);
	cw_config_free(loud);
	cr_assert_not(cw_alerts_is_shadow(alerts));
	cr_assert_str_eq(suppress_reason("a1"), "shadow"); /* no news any more */
	cw_alerts_resend(alerts);
	cw_alerts_stats(alerts, &stats);
	cr_assert_eq(stats.incidents[CW_CLASS_MISMATCH], 2);
	cr_assert_eq(stats.suppressed[CW_SUPPRESSED_SHADOW], 1);
	close_all();
	open_all("alert", "generic");
	cr_assert_str_eq(suppress_reason("a1"), "shadow");
	cw_alerts_resend(alerts);
	cr_assert_null(suppress_reason("a2")); /* the next one is */
	put_bundle("a2");
	cw_alerts_resend(alerts);
	wait_for_posts(1);
	cr_assert_eq(requests, 1);
	cr_assert_not_null(strstr(last_body, "a2"));
}

static void learn(uint32_t uid, const char *id, const char *label)
{
	const struct cw_msg_incident_delivered d = { .id = id, .uid = uid, .label = label };

	cw_alerts_learn(alerts, "node-b", &d);
}

Test(alerts, what_another_node_has_delivered_is_not_sent_but_not_claimed_either)
{
	const struct cw_incident_due a1 = { .id = "a1", .uid = 7, .job = "j" };
	const struct cw_incident_due b1 = { .id = "b1", .uid = 7, .job = "j" };
	struct cw_alerts_stats stats;
	char id[8];

	open_all("alert", "generic");
	learn(7, "a1", "j");
	learn(7, "../../etc/passwd", "j");
	learn(8, "b1", "j"); /* an id that another user has too */
	learn(7, "b1", "");  /* without a job: its owner is unknown */
	close_all();
	open_all("alert", "generic");
	cr_assert(cw_alerts_was_sent(alerts, &a1));
	cr_assert_not(cw_alerts_was_sent_here(alerts, &a1), "another leader may speak");
	cr_assert_not(cw_alerts_was_sent(alerts, &b1));
	cr_assert_null(suppress_reason("a1"), "its bundle does not call the alert suppressed");
	put_bundle("a1");
	cw_alerts_resend(alerts);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	put_bundle("b1");
	cw_alerts_resend(alerts);
	wait_for_posts(1);
	cr_assert_eq(requests, 1);
	cr_assert_not_null(strstr(last_body, "b1"));
	cr_assert(cw_alerts_was_sent_here(alerts, &b1));
	/* Each costs a write to disk: the daemon ignores a peer that reports thousands. */
	for (unsigned i = 0; i < 1000; i++) {
		(void)snprintf(id, sizeof(id), "c%x", i);
		learn(7, id, "j");
	}
	cw_alerts_stats(alerts, &stats);
	cr_assert_geq(stats.unlearned, 900);
}

static void note(const char *id)
{
	const struct cw_incident_due due = {
		.id = id, .job = "name:j", .uid = 7, .verdict_class = CW_CLASS_NEVER_ENTERED
	};
	struct cw_bundle b = {
		.incident =
			json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "schema",
				  "collwatch.incident/1", "id", id, "job", due.job, "severity",
				  "notice", "summary", "rank 0 gives the others work", "uid", 7),
	};

	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	cw_alerts_note(alerts, &due, b.incident);
	cw_bundle_fini(&b);
}

static void wait_for_requests(unsigned n)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct timeval tv = { 120, 0 };

	evtimer_add(deadline, &tv);
	while (requests < n)
		event_base_loop(base, EVLOOP_ONCE);
	event_free(deadline);
}

Test(alerts, notices_go_to_a_webhook_of_their_own)
{
	struct cw_config *loud;

	quiet = "/quiet";
	open_all("alert", "generic");
	note("c1");
	wait_for_requests(1);
	cr_expect_str_eq(last_path, "/hook/quiet");
	cr_expect_str_eq(last_key, "c1-notice", "not taken for the alert with that id");
	cr_expect_not_null(strstr(last_body, "\"severity\":\"notice\""), "%s", last_body);
	cr_expect_eq(posted, 0, "no alert is posted");
	cw_alerts_resend(alerts);
	/* It goes to the receiver of the new configuration, and stays a notice. */
	quiet = "/hush";
	loud = config_with("alert", "slack");
	cr_assert_eq(cw_alerts_reload(alerts, config, loud, NULL), 0);
	cw_config_free(config);
	config = loud;
	note("c2");
	wait_for_requests(2);
	cr_expect_str_eq(last_path, "/hook/hush");
	cr_expect_not_null(strstr(last_body, "Notice, not an alert: "), "%s", last_body);
	put_bundle("a1");
	for (int i = 0; i < 3; i++) /* one of the spool at a time */
		cw_alerts_resend(alerts);
	wait_for_posts(1);
	cr_expect_str_eq(last_path, "/hook");
	cr_expect_str_eq(last_key, "a1");
	cr_expect_not_null(strstr(last_body, "Hang: "), "%s", last_body);
}

/* A page about a rank that is stopped, which may be over. */
static json_t *stopped(const char *id, bool is_over)
{
	json_t *doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:i}", "schema",
				"collwatch.incident/1", "id", id, "job", "name:j", "severity",
				"page", "class", "never_entered", "detail", "stopped", "summary",
				"rank 3 is stopped", "uid", 7);

	if (is_over) {
		(void)json_object_set_new(doc, "closed_as", json_string("slow"));
		(void)json_object_set_new(doc, "lasted_s", json_real(46));
	}
	return doc;
}

static void put_stopped(const char *id, bool is_over)
{
	struct cw_bundle b = { .incident = stopped(id, is_over) };

	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	cw_bundle_fini(&b);
}

static void expect_posted_as_over(const char *key)
{
	wait_for_requests(requests + 1);
	cr_expect_str_eq(last_path, "/hook/quiet", "no page: %s", last_body);
	cr_expect_str_eq(last_key, key);
	cr_expect_not_null(strstr(last_body, "resolved after 46 s"), "%s", last_body);
	cr_expect_null(strstr(last_body, "kill -CONT"), "%s", last_body);
	cr_expect_eq(posted, 0, "no alert is posted");
}

Test(alerts, incident_that_ended_before_its_alert_was_delivered_is_a_notice_of_the_past)
{
	quiet = "/quiet";
	open_all("alert", "generic");
	put_stopped("c1", true);
	cw_alerts_resend(alerts);
	expect_posted_as_over("c1-over");
	cr_expect_not_null(strstr(last_body, "\"severity\":\"notice\""), "%s", last_body);
	/* Also with another webhook, after a restart. */
	close_all();
	open_all("alert", "slack");
	cw_alerts_resend(alerts);
	put_stopped("c2", true);
	cw_alerts_resend(alerts);
	expect_posted_as_over("c2-over");
	cr_expect_not_null(strstr(last_body, "Over: "), "%s", last_body);
}

Test(alerts, attempt_after_the_end_of_the_incident_is_no_page)
{
	const struct cw_incident_due due = { .id = "c1", .job = "name:j", .uid = 7 };
	json_t *open = stopped("c1", false);

	quiet = "/quiet";
	refusals = 1;
	open_all("alert", "slack");
	put_stopped("c1", false);
	cr_assert_eq(cw_alerts_send(alerts, &due, open), 0);
	wait_for_requests(1);
	cr_expect_str_eq(last_path, "/hook");
	put_stopped("c1", true);
	expect_posted_as_over("c1-over");
	json_decref(open);
}

Test(alerts, incident_that_is_open_again_pages_although_its_end_was_told)
{
	const struct cw_incident_due due = { .id = "c1", .job = "name:j", .uid = 7 };
	json_t *open = stopped("c1", false);

	quiet = "/quiet";
	open_all("alert", "generic");
	put_stopped("c1", true);
	cw_alerts_resend(alerts);
	expect_posted_as_over("c1-over");
	cr_expect_not(cw_alerts_was_sent(alerts, &due));
	put_stopped("c1", false);
	cr_assert_eq(cw_alerts_send(alerts, &due, open), 0);
	wait_for_posts(1);
	cr_expect_str_eq(last_path, "/hook");
	cr_expect(cw_alerts_was_sent(alerts, &due));
	json_decref(open);
}

Test(alerts, without_a_webhook_of_their_own_notices_are_posted_nowhere)
{
	struct cw_alerts_stats stats;

	open_all("alert", "generic");
	note("c1");
	put_bundle("a1");
	for (int i = 0; i < 2; i++)
		cw_alerts_resend(alerts);
	wait_for_posts(1);
	cw_alerts_stats(alerts, &stats);
	cr_expect_eq(requests, 1);
	cr_expect_str_eq(last_key, "a1");
	cr_expect_eq(stats.notices[CW_CLASS_NEVER_ENTERED], 1);
}

Test(alerts, shadow_suppresses_notices_too)
{
	quiet = "/quiet";
	open_all("shadow", "generic");
	note("c1");
	close_all();
	open_all("alert", "generic");
	note("c2");
	wait_for_requests(1);
	cr_expect_str_eq(last_key, "c2-notice");
}

Test(alerts, format_can_change_while_running)
{
	struct cw_config *slack;

	open_all("alert", "generic");
	slack = config_with("alert", "slack");
	cr_assert_eq(cw_alerts_reload(alerts, config, slack, NULL), 0);
	cw_config_free(slack);
	put_bundle("a1");
	cw_alerts_resend(alerts);
	wait_for_posts(1);
	cr_assert_not_null(strstr(last_body, "\"blocks\""));
	cr_assert_null(strstr(last_body, "collwatch.incident/1"));
}

/* ---- alerts of one user beyond a rate ---- */

#define BURST 5u
#define FOLD_NS (120 * CW_NS_PER_S)

static int alert_of(uint32_t uid, unsigned number)
{
	struct cw_incident_due due = { .uid = uid, .job = "name:j" };
	struct cw_bundle b = { 0 };
	char id[32];
	int r;

	(void)snprintf(id, sizeof(id), "%x-%x", uid, number);
	due.id = id;
	b.incident = json_pack("{s:s, s:s, s:s, s:s, s:i, s:s}", "schema", "collwatch.incident/1",
			       "id", id, "summary", "rank 3 sleeps", "job", due.job, "uid",
			       (int)uid, "leader", "node-a");
	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	r = cw_alerts_send(alerts, &due, b.incident);
	cw_bundle_fini(&b);
	return r;
}

static bool is_sent(uint32_t uid, unsigned number)
{
	char id[32];

	(void)snprintf(id, sizeof(id), "%x-%x", uid, number);
	return cw_store_was_sent(store, uid, id);
}

static void flood(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(alert_of(7, i), 0);
	cr_assert_eq(alert_of(8, 0), 0); /* another user's goes out at once */
	wait_for_posts(BURST + 1);
	cw_alerts_resend(alerts);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	cr_expect_eq(requests, BURST + 1);
}

Test(alerts, those_of_one_user_beyond_a_rate_go_out_as_one)
{
	struct cw_alerts_stats stats;

	open_all("alert", "generic");
	flood(40);
	cw_alerts_stats(alerts, &stats);
	cr_expect_eq(stats.collected, 40 - BURST);
	skipped_ns += FOLD_NS;
	cw_alerts_resend(alerts);
	wait_for_posts(BURST + 2);
	cr_expect_eq(requests, BURST + 2);
	cr_expect_not_null(strstr(last_body, "\"schema\":\"collwatch.folded/1\""));
	cr_expect_not_null(strstr(last_body, "\"count\":35"));
	cw_alerts_stats(alerts, &stats);
	cr_expect_eq(stats.folded, 40 - BURST);
	cr_expect_eq(stats.folds, 1);
	cr_expect_eq(stats.collected, 0);
	for (unsigned i = 0; i < 40; i++)
		cr_expect(is_sent(7, i), "%u", i);
}

/* Each waits for its bundle to be on disk, 2 s at most: the loop does not run meanwhile. */
Test(alerts, what_one_user_has_under_way_leaves_places_to_others)
{
	char id[16];

	quiet = "/quiet";
	open_all("alert", "generic");
	for (unsigned i = 0; i < 200; i++) {
		(void)snprintf(id, sizeof(id), "c%u", i);
		note(id); /* of user 7 */
	}
	for (unsigned uid = 8; uid < 24; uid++)
		cr_expect_eq(alert_of(uid, 0), 0, "uid %u", uid);
	wait_for_posts(16);
	for (unsigned uid = 8; uid < 24; uid++)
		cr_expect(is_sent(uid, 0), "uid %u", uid);
}

Test(alerts, what_was_collected_outlives_a_restart)
{
	open_all("alert", "generic");
	flood(BURST + 3);
	close_all();
	open_all("alert", "generic");
	for (unsigned i = 0; i < 3; i++)
		cw_alerts_resend(alerts); /* one a turn, and the rate is that of a new daemon */
	wait_for_posts(BURST + 1 + 3);
	for (unsigned i = 0; i < BURST + 3; i++)
		cr_expect(is_sent(7, i), "%u", i);
}

/* ---- messages that the webhook gives up ---- */

static unsigned lines_with(const char *text, const char *word)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		n++;
	return n;
}

static char log_text[16384];

static void read_log(int fd)
{
	size_t used = strlen(log_text);
	ssize_t n = read(fd, log_text + used, sizeof(log_text) - 1 - used);

	log_text[used + (n > 0 ? (size_t)n : 0)] = '\0';
}

/* Runs the loop until the log has so many lines of messages that the webhook gave up. */
static void wait_for_given_up(int fd, unsigned n)
{
	struct event *deadline = evtimer_new(base, on_too_late, NULL);
	struct timeval tv = { 120, 0 };

	evtimer_add(deadline, &tv);
	while (lines_with(log_text, "giving up") < n) {
		event_base_loop(base, EVLOOP_ONCE);
		read_log(fd);
	}
	event_free(deadline);
}

Test(alerts, each_message_that_the_webhook_refuses_has_one_line)
{
	int ends[2];

	quiet = "/quiet";
	open_all("alert", "generic");
	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	cr_assert_geq(dup2(ends[1], STDERR_FILENO), 0);
	unsetenv("JOURNAL_STREAM");
	is_refused = true;
	note("c1");
	wait_for_given_up(ends[0], 1);
	put_stopped("c2", true);
	for (int i = 0; i < 3; i++) /* one of the spool at a time */
		cw_alerts_resend(alerts);
	wait_for_given_up(ends[0], 2);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	read_log(ends[0]);
	cr_expect_eq(lines_with(log_text, "inc=c1"), 1, "%s", log_text);
	cr_expect_eq(lines_with(log_text, "inc=c2-over"), 1, "%s", log_text);
	cr_expect_eq(lines_with(log_text, "inc=c2"), 2, "its end, and that: %s", log_text);
}

Test(alerts, folded_ones_are_made_for_slack_too)
{
	open_all("alert", "slack");
	flood(40);
	skipped_ns += FOLD_NS;
	cw_alerts_resend(alerts);
	wait_for_posts(BURST + 2);
	cr_expect_not_null(strstr(last_body, "35 more hangs of uid 7"), "%s", last_body);
	cr_expect_not_null(strstr(last_body, "\"blocks\""));
}

static json_int_t asked_of(const char *id)
{
	struct cw_bundle bundle = { 0 };
	json_int_t n;

	cr_assert_eq(cw_store_get(store, id, &bundle), 0);
	n = json_integer_value(json_object_get(bundle.ops, "asked"));
	cw_bundle_fini(&bundle);
	return n;
}

Test(alerts, new_bundles_are_completed_once)
{
	const struct cw_incident_due due = { .uid = 7, .id = "fedcba9876543210", .job = "b" };
	json_t *first = json_pack("{s:s, s:s, s:i, s:s}", "schema", "collwatch.incident/1", "id",
				  "0123456789abcdef", "uid", 7, "job", "b");
	json_t *postmortem = json_pack("{s:s, s:s, s:i, s:s, s:s, s:s}", "schema",
				       "collwatch.incident/1", "id", due.id, "uid", 7, "job", "b",
				       "severity", "failed", "ending", "rank 4 failed");
	struct cw_bundle b = { .incident = first };

	open_all("alert", "generic");
	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	cr_assert_eq(cw_alerts_put(alerts, &b), 0);
	cr_assert_eq(completed, 1);
	cr_assert_eq(asked_of("0123456789abcdef"), 1, "what was known first stays");
	cr_assert_eq(cw_alerts_put_postmortem(alerts, &due, postmortem, false), 0);
	cr_assert_eq(asked_of(due.id), 2, "a post-mortem alone is a bundle, too");
	cr_assert_eq(cw_alerts_put_postmortem(alerts, &due, postmortem, false), -EEXIST);
	cr_assert_eq(completed, 2);
	cr_assert_null(b.ops, "the caller's stays its own");
	json_decref(first);
	json_decref(postmortem);
}
