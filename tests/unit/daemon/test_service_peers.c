/* SPDX-License-Identifier: Apache-2.0 */
/* A peer of a whole service asks more often than any leader does: each kind goes through its rate.
 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/service.h"
#include "transport/tcp.h"

#define DEADLINE_S 100

static char dir[] = "/tmp/cw-peers-XXXXXX";
static struct event_base *base;
static struct cw_fork_server *forks;
static struct cw_service *service;
static struct cw_transport *peer;
static struct cw_tcp *tcp;
static char addresses[2][40]; /* of the service, of its peer */
static unsigned replies;

static void on_message(const char *from, struct cw_message **msg, void *user)
{
}

static void on_reply(const char *node, const struct cw_message *reply, void *user)
{
	replies += reply != NULL;
}

/* A port that no other process can take until the test ends. */
static void pick_address(char *buf, size_t len)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t in_len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); /* closed by the test's end */

	cr_assert_geq(fd, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &in_len), 0);
	(void)snprintf(buf, len, "127.0.0.1:%u", ntohs(in.sin_port));
}

static struct cw_config *make_config(void)
{
	struct cw_config *c = NULL;
	struct cw_err err = { "" };
	char path[128];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/conf", dir);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	cr_assert_gt(fprintf(f,
			     "node_name = n\nagent_socket = \"%s/agent.sock\"\n"
			     "control_socket = \"%s/control.sock\"\nstate_dir = \"%s/state\"\n"
			     "listen = \"%s\"\npeers = {\"b=%s\"}\n",
			     dir, dir, dir, addresses[0], addresses[1]),
		     0);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(cw_config_load(path, &c, &err), 0, "%s", err.text);
	return c;
}

static void start_peer(void)
{
	const char *names[] = { "n" }, *where[] = { addresses[0] };
	struct cw_transport_config config = { .clock = &cw_clock_system,
					      .self = "b",
					      .names = names,
					      .addresses = where,
					      .n_peers = 1,
					      .on_message = on_message };
	struct cw_tcp_config of_tcp = {
		.base = base, .clock = &cw_clock_system, .epoch = 1, .listen = addresses[1]
	};
	struct cw_err err = { "" };

	cr_assert_eq(cw_transport_new(&config, &peer), 0);
	of_tcp.transport = peer;
	cr_assert_eq(cw_tcp_new(&of_tcp, &tcp, &err), 0, "%s", err.text);
}

static void set_up(void)
{
	struct cw_fork_server_config config = {
		.clock = &cw_clock_system,
		.jobs = cw_service_jobs,
		.n_jobs = CW_SERVICE_JOBS,
	};
	struct cw_err err = { "" };
	char path[128];
	int fd;

	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	config.base = base = event_base_new();
	cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
	for (unsigned i = 0; i < 2; i++)
		pick_address(addresses[i], sizeof(addresses[i]));
	cr_assert_eq(cw_service_new(base, &cw_clock_system, forks, make_config(), &service, &err),
		     0, "%s", err.text);
	start_peer();
}

static void tear_down(void)
{
	char command[128];

	cw_tcp_free(tcp);
	cw_transport_free(peer);
	cw_service_free(service);
	(void)cw_fork_server_free(forks); /* always NULL */
	event_base_free(base);
	(void)snprintf(command, sizeof(command), "rm -r '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(service_peers, .init = set_up, .fini = tear_down, .timeout = DEADLINE_S + 15);

static void on_time(evutil_socket_t fd, short what, void *user)
{
}

static void run_loop(int64_t ms)
{
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + ms * CW_NS_PER_MS;
	struct event *often = event_new(base, -1, EV_PERSIST, on_time, NULL);
	const struct timeval soon = { .tv_usec = 20000 };

	event_add(often, &soon);
	do {
		event_base_loop(base, EVLOOP_ONCE);
		cw_transport_run(peer);
	} while (cw_clock_now_ns(&cw_clock_system) < end_ns);
	event_free(often);
}

static bool has_said(const char *text)
{
	static char log[1 << 20];
	char path[128];
	size_t n;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/log", dir);
	f = fopen(path, "r");
	n = f ? fread(log, 1, sizeof(log) - 1, f) : 0;
	if (f)
		(void)fclose(f);
	log[n] = '\0';
	return strstr(log, text) != NULL;
}

static void send_many(const struct cw_message *msg, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cr_assert_eq(cw_transport_send(peer, "n", msg), 0);
}

static void ask_many(const char *verb, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct cw_message msg = { .type = CW_MSG_NODE_REQUEST,
					  .node_request = {
						  .verb = verb, .json = "{}", .uid = 1000 } };

		cr_assert_eq(cw_transport_request(peer, "n", &msg, 100000, on_reply, NULL, NULL),
			     0);
	}
}

Test(service_peers, what_a_peer_asks_for_goes_through_its_rates)
{
	static const char *const kinds[] = { "evidence", "windows",       "searches for ranks",
					     "mutes",    "announcements", "answers for users" };
	struct cw_msg_evidence_target target = { .pid = 1, .start_ticks = 1, .what = 1 };
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + DEADLINE_S * CW_NS_PER_S;
	char text[80];

	while (!cw_transport_is_alive(peer, "n") && cw_clock_now_ns(&cw_clock_system) < end_ns)
		run_loop(20);
	cr_assert(cw_transport_is_alive(peer, "n"));
	ask_many("mute", 100);
	send_many(&(struct cw_message){ .type = CW_MSG_EVIDENCE_REQUEST,
					.evidence_request = { .id = 1,
							      .deadline_ms = 1000,
							      .targets = &target,
							      .n_targets = 1,
							      .label = "name:j" } },
		  300);
	send_many(
		&(struct cw_message){
			.type = CW_MSG_WINDOW_REQUEST,
			.window_request = { .id = 1, .max_ops = 1, .label = "name:j" } },
		2000);
	send_many(&(struct cw_message){ .type = CW_MSG_RANK_SEARCH,
					.rank_search = { .label = "name:j", .uid = 1000 } },
		  1000);
	ask_many("report", 300);
	send_many(&(struct cw_message){ .type = CW_MSG_INCIDENT_ANNOUNCE,
					.incident_announce = { .id = "00000000000000aa",
							       .node = "b",
							       .summary = "s",
							       .uid = 1000,
							       .label = "name:j" } },
		  500);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		(void)snprintf(text, sizeof(text), "b asks for %s more often than", kinds[i]);
		while (!has_said(text) && cw_clock_now_ns(&cw_clock_system) < end_ns)
			run_loop(20);
		cr_expect(has_said(text), "%s", kinds[i]);
	}
	run_loop(1000);
	/* 64 mutes; of reports 32 at once, and 8 a second for as long as all this took. */
	cr_expect_geq(replies, 64 + 32);
	cr_expect_lt(replies, 100 + 300);
}
