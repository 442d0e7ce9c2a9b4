/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/codec.h"
#include "proto/frame.h"
#include "transport/tcp.h"
#include "transport/transport.h"

#define DEADLINE_S 120

/* One daemon's end; both ends of a test share a loop. */
struct end {
	struct cw_transport *transport;
	struct cw_tcp *tcp;
	char address[40];
	unsigned digests, copies, announcements, replies, timeouts;
	uint64_t last_number;
};

static struct event_base *base;
static struct end a, b;

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct end *e = user;

	if ((*msg)->type == CW_MSG_DIGEST) {
		e->digests++;
		e->last_number = (*msg)->digest.number;
	} else if ((*msg)->type == CW_MSG_DIGEST_COPY) {
		e->copies++;
		e->last_number = (*msg)->digest.number;
	} else if ((*msg)->type == CW_MSG_INCIDENT_ANNOUNCE) {
		e->announcements++;
	} else if ((*msg)->type == CW_MSG_WINDOW_REQUEST) {
		struct cw_message reply = { .type = CW_MSG_WINDOW_REPLY,
					    .window_reply = { .id = (*msg)->window_request.id } };

		if ((*msg)->window_request.max_ops) /* 0: the test wants no answer */
			cr_assert_eq(cw_transport_send(e->transport, from, &reply), 0);
	}
}

static void on_reply(const char *node, const struct cw_message *reply, void *user)
{
	struct end *e = user;

	if (reply)
		e->replies++;
	else
		e->timeouts++;
}

/* A port that no other process can take until the test ends; no connection gets it, either. */
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

static void make_transport(struct end *e, const char *self, const char *peer, const char *address)
{
	const char *names[] = { peer }, *addresses[] = { address };
	struct cw_transport_config config = { .clock = &cw_clock_system,
					      .self = self,
					      .names = names,
					      .addresses = addresses,
					      .n_peers = peer ? 1 : 0,
					      .on_message = on_message,
					      .user = e };

	cr_assert_eq(cw_transport_new(&config, &e->transport), 0);
}

static void open_tcp(struct end *e, uint64_t epoch)
{
	struct cw_tcp_config config = { .base = base,
					.clock = &cw_clock_system,
					.transport = e->transport,
					.epoch = epoch,
					.listen = e->address };
	struct cw_err err = { "" };

	cr_assert_eq(cw_tcp_new(&config, &e->tcp, &err), 0, "%s", err.text);
}

static void setup(void)
{
	base = event_base_new();
	pick_address(a.address, sizeof(a.address));
	pick_address(b.address, sizeof(b.address));
	make_transport(&a, "a", "b", b.address);
	make_transport(&b, "b", "a", a.address);
}

static void teardown(void)
{
	a.tcp = cw_tcp_free(a.tcp);
	b.tcp = cw_tcp_free(b.tcp);
	cw_transport_free(a.transport);
	cw_transport_free(b.transport);
	event_base_free(base);
}

/* Turns the loop until the condition holds; the test fails after DEADLINE_S. */
#define run_until(condition)                                                                       \
	do {                                                                                       \
		int64_t _end = cw_clock_now_ns(&cw_clock_system) + DEADLINE_S * CW_NS_PER_S;       \
		while (!(condition)) {                                                             \
			cr_assert_lt(cw_clock_now_ns(&cw_clock_system), _end, "%s", #condition);   \
			(void)event_base_loop(base, EVLOOP_ONCE);                                  \
			cw_transport_run(a.transport);                                             \
			cw_transport_run(b.transport);                                             \
		}                                                                                  \
	} while (0)

static uint32_t state_of(const struct end *e)
{
	unsigned n;

	return cw_transport_peers(e->transport, &n)[0].state;
}

static struct cw_message digest(const char *node, uint64_t number)
{
	struct cw_message m = { .type = CW_MSG_DIGEST,
				.digest = { .job_hash = 1,
					    .label = "job",
					    .node = node,
					    .epoch = 1,
					    .number = number,
					    .policy = "" } };

	return m;
}

TestSuite(transport, .init = setup, .fini = teardown);

Test(transport, own_node_is_reached_later_and_not_from_inside_the_send)
{
	struct cw_message m = digest("a", 7);

	cr_assert_eq(cw_transport_send(a.transport, "a", &m), 0);
	cr_assert_eq(a.digests, 0);
	cw_transport_run(a.transport);
	cr_assert_eq(a.digests, 1);
	cr_assert_eq(a.last_number, 7);
}

Test(transport, unknown_and_unconnected_nodes_are_errors_and_counted)
{
	struct cw_transport_stats stats;
	struct cw_message m = digest("a", 1);

	cr_assert_eq(cw_transport_send(a.transport, "z", &m), -ENOENT);
	cr_assert_eq(cw_transport_send(a.transport, "b", &m), -ENOTCONN);
	cw_transport_stats(a.transport, &stats);
	cr_assert_eq(stats.dropped, 1);
	cr_assert_not(cw_transport_is_alive(a.transport, "b"));
	cr_assert(cw_transport_is_alive(a.transport, "a"));
}

/* As if b had read it. */
static int hand_to_b(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	cw_transport_receive(b.transport, 0, frame + CW_FRAME_HEADER_BYTES,
			     len - CW_FRAME_HEADER_BYTES);
	return 0;
}

Test(transport, a_digest_goes_to_one_node_and_a_copy_of_it_to_another)
{
	static const struct cw_transport_ops ops = { .send = hand_to_b };
	struct cw_message m = digest("a", 5);
	struct cw_transport_stats stats;
	int copied = 1;

	cw_transport_set_backend(a.transport, &ops, NULL);
	cr_expect_eq(cw_transport_send_digest(a.transport, "a", "b", &m, &copied), 0);
	cr_expect_eq(copied, -ENOTCONN, "and the leader gets it all the same");
	cw_transport_run(a.transport);
	cr_expect_eq(a.digests, 1);
	cw_transport_peer_up(a.transport, 0, 1);
	cr_expect_eq(cw_transport_send_digest(a.transport, "a", "b", &m, &copied), 0);
	cr_expect_eq(copied, 0);
	cr_expect_eq(b.copies, 1);
	cr_expect_eq(b.digests, 0);
	cr_expect_eq(b.last_number, 5);
	cw_transport_run(a.transport);
	cr_expect_eq(a.digests, 2);
	m.digest.number = 6;
	cr_expect_eq(cw_transport_send_digest(a.transport, "b", "a", &m, &copied), 0);
	cr_expect_eq(copied, 0);
	cw_transport_run(a.transport);
	cr_expect_eq(b.digests, 1);
	cr_expect_eq(b.last_number, 6);
	cr_expect_eq(a.copies, 1);
	cr_expect_eq(a.last_number, 6);
	m.digest.node = NULL; /* cannot be encoded */
	cr_expect_eq(cw_transport_send_digest(a.transport, "a", "b", &m, &copied), -EINVAL);
	cr_expect_eq(copied, -EINVAL);
	cw_transport_stats(a.transport, &stats);
	cr_expect_eq(stats.sent, 2);
	cr_expect_eq(stats.dropped, 1);
}

Test(transport, peers_connect_whoever_starts_first_and_exchange_messages)
{
	struct cw_message m = digest("a", 3);

	open_tcp(&a, 10); /* dials, no listener: tries again */
	open_tcp(&b, 20);
	run_until(state_of(&a) == CW_PEER_CONNECTED && state_of(&b) == CW_PEER_CONNECTED);
	cr_assert_eq(cw_transport_peer(a.transport, "b")->epoch, 20);
	for (unsigned i = 0; i < 100; i++) /* several in one read */
		cr_assert_eq(cw_transport_send(a.transport, "b", &m), 0);
	run_until(b.digests == 100);
	m = digest("b", 4);
	cr_assert_eq(cw_transport_send(b.transport, "a", &m), 0);
	run_until(a.digests == 1);
}

Test(transport, request_gets_its_reply_or_its_deadline)
{
	uint64_t ids[1] = { 5 };
	struct cw_message q = {
		.type = CW_MSG_WINDOW_REQUEST,
		.window_request = { .job_hash = 1, .comm_ids = ids, .n_comm_ids = 1, .max_ops = 8 }
	};

	open_tcp(&a, 10);
	open_tcp(&b, 20);
	run_until(state_of(&a) == CW_PEER_CONNECTED && state_of(&b) == CW_PEER_CONNECTED);
	cr_assert_eq(cw_transport_request(a.transport, "b", &q, 5000, on_reply, &a, NULL), 0);
	run_until(a.replies == 1);
	q.window_request.max_ops = 0;
	cr_assert_eq(cw_transport_request(a.transport, "b", &q, 50, on_reply, &a, NULL), 0);
	run_until(a.timeouts == 1);
	cr_assert_eq(a.replies, 1);
}

Test(transport, goodbye_and_loss_are_told_apart)
{
	open_tcp(&a, 10);
	open_tcp(&b, 20);
	run_until(state_of(&a) == CW_PEER_CONNECTED && state_of(&b) == CW_PEER_CONNECTED);
	b.tcp = cw_tcp_free(b.tcp);
	run_until(state_of(&a) == CW_PEER_GOODBYE);
	cr_assert_not(cw_transport_is_alive(a.transport, "b"));
	open_tcp(&b, 30);
	run_until(state_of(&a) == CW_PEER_CONNECTED);
	cr_assert_eq(cw_transport_peer(a.transport, "b")->epoch, 30);
}

Test(transport, requests_to_a_peer_that_goes_away_end_at_once)
{
	uint64_t ids[1] = { 5 };
	struct cw_message q = { .type = CW_MSG_WINDOW_REQUEST,
				.window_request = { .comm_ids = ids, .n_comm_ids = 1 } };

	open_tcp(&a, 10);
	open_tcp(&b, 20);
	run_until(state_of(&a) == CW_PEER_CONNECTED && state_of(&b) == CW_PEER_CONNECTED);
	cr_assert_eq(cw_transport_request(a.transport, "b", &q, 600000, on_reply, &a, NULL), 0);
	b.tcp = cw_tcp_free(b.tcp);
	run_until(a.timeouts == 1);
}

/* A client of its own making. */
static int dial(const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	return fd;
}

static void write_hello(int fd, const char *name, uint32_t min, uint32_t max, uint64_t epoch)
{
	struct cw_message m = { .type = CW_MSG_PEER_HELLO,
				.peer_hello = { .node = name,
						.version_min = min,
						.version_max = max,
						.epoch = epoch } };
	uint8_t *frame;
	size_t len;

	cr_assert_eq(cw_message_encode(&m, &frame, &len), 0);
	cr_assert_eq(write(fd, frame, len), (ssize_t)len);
	free(frame);
}

static uint64_t turned_away(const struct end *e)
{
	struct cw_tcp_stats stats;

	cw_tcp_stats(e->tcp, &stats);
	return stats.refused + stats.protocol_errors;
}

Test(transport, strangers_wrong_versions_and_noise_are_turned_away)
{
	struct cw_tcp_stats stats;
	int fds[4];

	open_tcp(&b, 20);
	for (unsigned i = 0; i < 4; i++)
		fds[i] = dial(b.address);
	write_hello(fds[0], "mallory", 1, 1, 1);
	write_hello(fds[1], "a", CW_WIRE_VERSION + 1, CW_WIRE_VERSION + 9, 1);
	cr_assert_eq(write(fds[2], "GET / HTTP/1.1\r\n\r\n", 18), 18);
	cr_assert_eq(write(fds[3], "\0\0\0\2\xff\xff", 6), 6);
	run_until(turned_away(&b) == 4);
	cw_tcp_stats(b.tcp, &stats);
	cr_assert_eq(stats.connections, 0);
	cr_assert_neq(state_of(&b), CW_PEER_CONNECTED);
	for (unsigned i = 0; i < 4; i++)
		(void)close(fds[i]);
}

Test(transport, other_users_of_the_machine_cannot_pose_as_a_peer)
{
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	open_tcp(&b, 20);
	cr_assert_eq(seteuid(65534), 0);
	fd = dial(b.address);
	cr_assert_eq(seteuid(0), 0);
	write_hello(fd, "a", 1, CW_WIRE_VERSION, 1);
	run_until(turned_away(&b) == 1);
	cr_assert_neq(state_of(&b), CW_PEER_CONNECTED);
	(void)close(fd);
}

/* A socket belongs to its maker, a connection to the process that accepts it. */
static int listen_as(uid_t uid, const char *address)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1)) };
	int fd;

	cr_assert_eq(seteuid(uid), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(listen(fd, 4), 0);
	cr_assert_eq(seteuid(0), 0);
	return fd;
}

static int accept_as(uid_t uid, int listener)
{
	int fd;

	cr_assert_eq(seteuid(uid), 0);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	cr_assert_eq(seteuid(0), 0);
	return fd;
}

Test(transport, other_users_of_the_machine_cannot_pose_as_a_peer_that_is_down)
{
	struct cw_tcp_stats stats;
	int listener, fd = -1;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	listener = listen_as(65534, b.address);
	open_tcp(&a, 20);
	run_until((fd = accept_as(65534, listener)) >= 0);
	write_hello(fd, "b", 1, CW_WIRE_VERSION, 1);
	run_until((cw_tcp_stats(a.tcp, &stats), stats.refused > 0));
	cr_assert_neq(state_of(&a), CW_PEER_CONNECTED);
	(void)close(fd);
	(void)close(listener);
}

/*
 * Waits until the connection of that local port has no owner in the kernel's list. Its owner has
 * closed it, and the other end's kernel has answered.
 */
static void wait_for_nobodys(uint16_t port)
{
	int64_t end = cw_clock_now_ns(&cw_clock_system) + DEADLINE_S * CW_NS_PER_S;
	char line[256];
	unsigned from, state;
	bool is_there;
	FILE *f;

	do {
		is_there = false;
		f = fopen("/proc/net/tcp", "re");
		cr_assert_not_null(f);
		while (fgets(line, sizeof(line), f))
			is_there |= sscanf(line, " %*u: %*8x:%x %*8x:%*x %x", &from, &state) == 2 &&
				    from == port && state != 5 &&
				    state != 6; /* FIN_WAIT2, TIME_WAIT */
		(void)fclose(f);
		cr_assert_lt(cw_clock_now_ns(&cw_clock_system), end);
	} while (is_there);
}

Test(transport, who_has_closed_is_not_taken_for_root)
{
	struct sockaddr_in in = { 0 };
	socklen_t len = sizeof(in);
	struct cw_tcp_stats stats;
	int fd;

	if (geteuid() != 0)
		cr_skip_test("needs root to become another user");
	open_tcp(&b, 20);
	cr_assert_eq(seteuid(65534), 0);
	fd = dial(b.address);
	cr_assert_eq(seteuid(0), 0);
	write_hello(fd, "a", 1, CW_WIRE_VERSION, 1);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	(void)close(fd); /* before it is the listener's turn */
	wait_for_nobodys(ntohs(in.sin_port));
	run_until(turned_away(&b) == 1 || state_of(&b) == CW_PEER_CONNECTED);
	cw_tcp_stats(b.tcp, &stats);
	cr_assert_eq(stats.accepted, 0);
	cr_assert_neq(state_of(&b), CW_PEER_CONNECTED);
}

Test(transport, ipv6_loopback_works_as_well)
{
	const char *port = strchr(b.address, ':') + 1;
	char address[40];

	(void)snprintf(address, sizeof(address), "[::1]:%s", port);
	memcpy(b.address, address, sizeof(b.address));
	a.transport = cw_transport_free(a.transport);
	make_transport(&a, "a", "b", address);
	open_tcp(&b, 20);
	open_tcp(&a, 10);
	run_until(state_of(&a) == CW_PEER_CONNECTED && state_of(&b) == CW_PEER_CONNECTED);
}

Test(transport, of_two_connections_the_newest_epoch_stays)
{
	int old, new, older;

	open_tcp(&b, 20);
	old = dial(b.address);
	write_hello(old, "a", 1, CW_WIRE_VERSION, 100);
	run_until(state_of(&b) == CW_PEER_CONNECTED);
	new = dial(b.address);
	write_hello(new, "a", 1, CW_WIRE_VERSION, 200);
	run_until(cw_transport_peer(b.transport, "a")->epoch == 200);
	older = dial(b.address);
	write_hello(older, "a", 1, CW_WIRE_VERSION, 150);
	run_until(turned_away(&b) == 1);
	cr_assert_eq(state_of(&b), CW_PEER_CONNECTED);
	cr_assert_eq(cw_transport_peer(b.transport, "a")->epoch, 200);
	(void)close(old);
	(void)close(new);
	(void)close(older);
}

/*
 * A peer that claims it has no proof of it, and the owner of the name could never claim a
 * newer one.
 */
Test(transport, an_epoch_in_the_future_keeps_nobody_out)
{
	int liar, owner, second;

	open_tcp(&b, 20);
	liar = dial(b.address);
	write_hello(liar, "a", 1, CW_WIRE_VERSION, UINT64_MAX);
	run_until(state_of(&b) == CW_PEER_CONNECTED);
	owner = dial(b.address);
	write_hello(owner, "a", 1, CW_WIRE_VERSION, 200);
	run_until(cw_transport_peer(b.transport, "a")->epoch == 200 || turned_away(&b) > 0);
	cr_assert_eq(turned_away(&b), 0, "the owner of the name was kept out");
	second = dial(b.address);
	write_hello(second, "a", 1, CW_WIRE_VERSION, UINT64_MAX - 1);
	run_until(turned_away(&b) == 1);
	cr_assert_eq(cw_transport_peer(b.transport, "a")->epoch, 200);
	(void)close(liar);
	(void)close(owner);
	(void)close(second);
}

Test(transport, peer_that_does_not_read_costs_a_cap_and_a_count)
{
	struct cw_message m = digest("b", 1);
	char *label = calloc(1, 400001);
	int fd;

	memset(label, 'x', 400000);
	m.digest.label = label;
	open_tcp(&b, 20);
	fd = dial(b.address);
	write_hello(fd, "a", 1, CW_WIRE_VERSION, 100);
	run_until(state_of(&b) == CW_PEER_CONNECTED);
	for (unsigned i = 0; i < 100; i++) /* 40 MB */
		(void)cw_transport_send(b.transport, "a", &m);
	cr_assert_gt(cw_transport_peer(b.transport, "a")->dropped, 50);
	cr_assert_lt(cw_transport_peer(b.transport, "a")->dropped, 65);
	(void)close(fd);
	free(label);
}
