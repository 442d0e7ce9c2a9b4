/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a child of the daemon inherits holds neither the webhook's URL nor the headers,
 * from reading the configuration to a request that is under way.
 *
 * This program has tokens masked, and in the clear in secret memory only, so that the search finds
 * no copy of the test's own.
 */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/alerts/webhook.h"
#include "daemon/alerts/webhook_post.h"
#include "daemon/config/config.h"
#include "loop/fork_server.h"
#include "transport/secret.h"

#define MASK 0x55
#define TOKEN_LEN 24u
/* More in one piece is a sanitizer's shadow. */
#define LARGEST_MAPPING ((uintptr_t)1 << 30)

static const unsigned char masked_url_token[TOKEN_LEN] = {
	0x01, 0x64, 0x3e, 0x62, 0x0f, 0x2d, 0x03, 0x6c, 0x3b, 0x04, 0x67, 0x3d,
	0x1e, 0x66, 0x22, 0x07, 0x60, 0x39, 0x18, 0x61, 0x25, 0x11, 0x6d, 0x37,
};
static const unsigned char masked_header_token[TOKEN_LEN] = {
	0x13, 0x6d, 0x27, 0x10, 0x61, 0x34, 0x0c, 0x62, 0x3c, 0x01, 0x60, 0x20,
	0x1d, 0x65, 0x3f, 0x06, 0x63, 0x21, 0x1b, 0x67, 0x36, 0x0a, 0x64, 0x2e,
};

static char *unmask(const unsigned char *masked)
{
	char *token = cw_secret_calloc(TOKEN_LEN + 1, 1);

	cr_assert_not_null(token);
	for (unsigned i = 0; i < TOKEN_LEN; i++)
		token[i] = (char)(masked[i] ^ MASK);
	return token;
}

/* Reads all mapped memory, so no sanitizer may watch it. */
#define READS_ANYTHING __attribute__((no_sanitize("address")))

static READS_ANYTHING bool is_at(const unsigned char *p, const unsigned char *masked)
{
	for (unsigned i = 0; i < TOKEN_LEN; i++)
		if (p[i] != (masked[i] ^ MASK))
			return false;
	return true;
}

/* How often it lies anywhere in the memory of this process that can be written. */
static unsigned count(const unsigned char *masked)
{
	FILE *f = fopen("/proc/self/maps", "re");
	unsigned char *start, *end;
	uintptr_t from, to;
	char line[512], mode[8];
	unsigned n = 0;

	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s", &from, &to, mode) != 3 ||
		    mode[0] != 'r' || mode[1] != 'w' || to - from > LARGEST_MAPPING)
			continue;
		end = (unsigned char *)to - TOKEN_LEN;
		for (start = (unsigned char *)from; start <= end; start++)
			n += is_at(start, masked);
	}
	(void)fclose(f);
	return n;
}

/* The same in a child, which is forked as the daemon's are. */
static unsigned count_in_child(const unsigned char *masked)
{
	int fds[2], status;
	unsigned n = 0;
	pid_t child;

	cr_assert_eq(pipe(fds), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		n = count(masked);
		_exit(write(fds[1], &n, sizeof(n)) == sizeof(n) ? 0 : 1);
	}
	cr_assert_eq(close(fds[1]), 0);
	cr_assert_eq(read(fds[0], &n, sizeof(n)), sizeof(n));
	cr_assert_eq(close(fds[0]), 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	return n;
}

/* ---- files with tokens ---- */

static char dir[] = "/tmp/cw-webhook-secrets-XXXXXX", conf[64], headers[64];

static void put(int fd, const char *text)
{
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static void write_file(const char *path, const char *before, const unsigned char *masked,
		       const char *after)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
	char *token = unmask(masked);

	cr_assert_geq(fd, 0);
	put(fd, before);
	put(fd, token);
	put(fd, after);
	cr_assert_eq(close(fd), 0);
	cw_secret_free(token);
}

/* Accepts, and reads nothing: the data stays in the kernel. */
static int listener(uint16_t *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	cr_assert_geq(fd, 0);
	cr_assert_eq(bind(fd, (struct sockaddr *)&address, len), 0);
	cr_assert_eq(listen(fd, 4), 0);
	cr_assert_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

static const struct cw_fork_job jobs[] = { { cw_webhook_post_child, 0, true } };

static struct event_base *base;
static struct cw_fork_server *forks;
static int listen_fd;

static void set_up(void)
{
	struct cw_fork_server_config server = { .clock = &cw_clock_system,
						.jobs = jobs,
						.n_jobs = 1 };
	char before[128];
	uint16_t port;

	unsetenv("http_proxy");
	base = event_base_new();
	server.base = base;
	cr_assert_eq(cw_fork_server_new(&server, &forks), 0);
	listen_fd = listener(&port);
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(conf, sizeof(conf), "%s/conf", dir);
	(void)snprintf(headers, sizeof(headers), "%s/headers", dir);
	(void)snprintf(before, sizeof(before),
		       "webhook_header_file = \"%s\"\nwebhook_url = \"http://127.0.0.1:%u/",
		       headers, port);
	write_file(conf, before, masked_url_token, "\"\nmode = \"alert\"\n");
	write_file(headers, "X-Other: 1\nAuthorization: Bearer ", masked_header_token, "\n");
}

static void tear_down(void)
{
	(void)unlink(conf);
	(void)unlink(headers);
	(void)rmdir(dir);
	(void)close(listen_fd);
	forks = cw_fork_server_free(forks);
	event_base_free(base);
}

TestSuite(webhook_secrets, .init = set_up, .fini = tear_down);

static struct cw_config *load(void)
{
	struct cw_config *c = NULL;
	struct cw_err err = { "" };

	cr_assert_eq(cw_config_load(conf, &c, &err), 0, "%s", err.text);
	return c;
}

static struct cw_webhook *make(const struct cw_config *c)
{
	struct cw_webhook_config config = {
		.base = base,
		.forks = forks,
		.clock = &cw_clock_system,
		.url = c->webhook_url,
		.headers = c->webhook_headers.text,
		.header_file = c->webhook_header_file,
		.timeout_ms = 600000,
		.max_attempts = 1,
		.max_pending = 4,
	};
	struct cw_webhook *w = NULL;
	struct cw_err err = { "" };

	cr_assert_eq(cw_webhook_new(&config, &w, &err), 0, "%s", err.text);
	return w;
}

/* Until a whole request was sent; returns the connection. */
static int await_request(void)
{
	int conn = -1, there = 0;

	while (there < 200) {
		cr_assert_geq(event_base_loop(base, EVLOOP_NONBLOCK), 0);
		if (conn < 0)
			conn = accept(listen_fd, NULL, NULL);
		if (conn >= 0)
			cr_assert_eq(ioctl(conn, FIONREAD, &there), 0);
		(void)usleep(1000);
	}
	return conn;
}

static void expect_hidden(const char *when)
{
	cr_expect_geq(count(masked_url_token), 1, "%s: the search finds what is there", when);
	cr_expect_eq(count_in_child(masked_url_token), 0, "%s: the URL is in the child", when);
	cr_expect_eq(count_in_child(masked_header_token), 0, "%s: the header is in the child",
		     when);
}

Test(webhook_secrets, a_child_inherits_neither_url_nor_headers)
{
	struct cw_config *c = load(), *again;
	struct cw_webhook *w;
	int conn;

	expect_hidden("configuration read");
	w = make(c);
	cr_expect_geq(count(masked_header_token), 1);
	expect_hidden("webhook made");
	cr_assert_eq(cw_webhook_post(w, 1, "a1", "{}", NULL, NULL), 0);
	conn = await_request();
	expect_hidden("request under way");

	/* As a reload does it. */
	again = load();
	cw_config_take_reloadable(c, again);
	cw_config_free(again);
	expect_hidden("reloaded");
	cw_webhook_free(w);
	(void)close(conn);
	expect_hidden("webhook gone");
	cw_config_free(c);
	cr_expect_eq(count(masked_url_token), 0, "what was freed is overwritten");
	cr_expect_eq(count(masked_header_token), 0);
}
