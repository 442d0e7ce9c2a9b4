/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/cluster/tls_ends.h"

#include <criterion/criterion.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct event_base *base;
struct end a, b;
char dir[] = "/tmp/cw-tls-XXXXXX";
int64_t skipped_ns;

static int64_t ahead_now(void *user)
{
	return cw_clock_now_ns(&cw_clock_system) + skipped_ns;
}

static int64_t ahead_wall(void *user)
{
	return cw_clock_wall_ns(&cw_clock_system);
}

static const struct cw_clock ahead_clock = { .monotonic_ns = ahead_now, .wall_ns = ahead_wall };
const struct cw_clock *const ends_clock = &ahead_clock;

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct end *e = user;

	if ((*msg)->type != CW_MSG_DIGEST)
		return;
	e->digests++;
	e->label_bytes += strlen((*msg)->digest.label);
}

/*
 * Chooses a port and keeps it bound, so that no other process or connection gets it before the test
 * ends.
 */
static void pick_address(char *buf, size_t len, const char *host)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY) };
	socklen_t in_len = sizeof(in);
	/* the end of the test's process closes it */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)), 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&in, &in_len), 0);
	(void)snprintf(buf, len, "%s:%u", host, ntohs(in.sin_port));
}

void make_transport(struct end *e, const char *self, const char *peer, const char *address)
{
	struct cw_transport_config config = { .clock = &ahead_clock,
					      .self = self,
					      .names = &peer,
					      .addresses = &address,
					      .n_peers = 1,
					      .on_message = on_message,
					      .user = e };

	cw_transport_free(e->transport);
	cr_assert_eq(cw_transport_new(&config, &e->transport), 0);
}

void make_finder(struct end *e, const char *self)
{
	struct cw_transport_config config = { .clock = &ahead_clock,
					      .self = self,
					      .finds_peers = true,
					      .on_message = on_message,
					      .user = e };

	cw_transport_free(e->transport);
	cr_assert_eq(cw_transport_new(&config, &e->transport), 0);
}

int try_tcp(struct end *e, const struct cw_tls_files *files, struct cw_err *err)
{
	struct cw_tcp_config config = { .base = base,
					.clock = &ahead_clock,
					.transport = e->transport,
					.epoch = 7,
					.listen = e->address };

	if (files)
		config.tls = *files;

	return cw_tcp_new(&config, &e->tcp, err);
}

void open_tcp(struct end *e, const struct cw_tls_files *files)
{
	struct cw_err err = { "" };

	cr_assert_eq(try_tcp(e, files, &err), 0, "%s", err.text);
}

void ends_setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	base = event_base_new();
	pick_address(a.address, sizeof(a.address), "127.0.0.1");
	pick_address(b.address, sizeof(b.address), "127.0.0.2");
	make_transport(&a, "a", "b", b.address);
	make_transport(&b, "b", "a", a.address);
}

void ends_teardown(void)
{
	a.tcp = cw_tcp_free(a.tcp);
	b.tcp = cw_tcp_free(b.tcp);
	cw_transport_free(a.transport);
	cw_transport_free(b.transport);
	event_base_free(base);
	cr_assert_eq(rmdir(dir), 0);
}

const struct cw_peer *peer_of(const struct end *e)
{
	unsigned n;

	return cw_transport_peers(e->transport, &n);
}

struct cw_tcp_stats stats_of(const struct end *e)
{
	struct cw_tcp_stats stats;

	cw_tcp_stats(e->tcp, &stats);
	return stats;
}

bool is_refused(const struct end *e, enum cw_peer_refusal why)
{
	return peer_of(e)->refusal == why;
}
