/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TCP connection with SO_LINGER whose peer does not read: the process that closes its
 * last copy waits.
 */
#include "loop/conn_closer.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/unixsock.h"
#include "loop/fork_server.h"

/* Longer than the limit of a test. */
#define LINGER_S 3600
#define LIMIT_S 60

static struct event_base *base;
static struct cw_fork_server *forks;
static struct cw_conn_closer *closer;

static void set_up(void)
{
	static const struct cw_fork_job jobs[] = { { cw_conn_closer_child, 0 } };
	struct cw_fork_server_config config = { .clock = &cw_clock_system,
						.jobs = jobs,
						.n_jobs = 1 };

	config.base = base = event_base_new();
	cr_assert_eq(cw_fork_server_new(&config, &forks), 0);
	cr_assert_eq(cw_conn_closer_new(base, forks, &closer), 0);
}

static void tear_down(void)
{
	cw_conn_closer_free(closer);
	cw_fork_server_free(forks);
	event_base_free(base);
}

TestSuite(conn_closer, .init = set_up, .fini = tear_down, .timeout = LIMIT_S);

/* Its other end is *ret_peer. */
static int lingering(int *ret_peer)
{
	static const struct linger linger = { .l_onoff = 1, .l_linger = LINGER_S };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	static const char much[65536];

	cr_assert_eq(bind(listener, (struct sockaddr *)&a, sizeof(a)), 0);
	cr_assert_eq(getsockname(listener, (struct sockaddr *)&a, &len), 0);
	cr_assert_eq(listen(listener, 1), 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	*ret_peer = accept(listener, NULL, NULL);
	cr_assert_geq(*ret_peer, 0);
	close(listener);
	while (send(fd, much, sizeof(much), MSG_DONTWAIT) > 0)
		;
	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	return fd;
}

/*
 * Returns the end of a connection that carries the only copy of a lingering one; *ret_peer: the
 * other end of the latter.
 */
static int with_lingering(int *ret_other, int *ret_peer, int flags)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .align = { .cmsg_level = SOL_SOCKET,
				 .cmsg_type = SCM_RIGHTS,
				 .cmsg_len = CMSG_LEN(sizeof(int)) } };
	struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	int pair[2], fd = lingering(ret_peer);

	memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cw_unix_take_oob_inline(pair[1]);
	cr_assert_eq(write(pair[0], "before", 6), 6);
	cr_assert_eq(sendmsg(pair[0], &msg, flags), 1);
	close(fd);
	*ret_other = pair[0];
	return pair[1];
}

/* It was closed: after all data comes its end. */
static void wait_for_end(int peer)
{
	char buf[65536];
	ssize_t n;

	do
		n = read(peer, buf, sizeof(buf));
	while (n > 0);
	cr_assert(n == 0 || errno == ECONNRESET, "%s", strerror(errno));
	close(peer);
}

static void run_until_given_away(void)
{
	while (cw_conn_closer_waiting(closer) > 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
}

Test(conn_closer, what_holds_no_descriptors_is_closed_at_once)
{
	char byte;
	int pair[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_assert_eq(write(pair[0], "unread", 6), 6);
	cw_conn_closer_close(closer, pair[1]);
	cr_assert_eq(fcntl(pair[1], F_GETFD), -1);
	(void)!read(pair[0], &byte, 1); /* ECONNRESET: something was not read */
	cr_assert_eq(send(pair[0], "x", 1, MSG_NOSIGNAL), -1);
	cr_assert_eq(cw_conn_closer_total(closer), 0);
	close(pair[0]);
}

Test(conn_closer, descriptors_in_it_are_closed_and_not_waited_for)
{
	int other, peer, fd = with_lingering(&other, &peer, 0);

	cw_conn_closer_close(closer, fd);
	cr_assert_eq(send(other, "x", 1, MSG_NOSIGNAL), -1, "its end is seen at once");
	run_until_given_away();
	wait_for_end(peer);
	cr_assert_eq(cw_conn_closer_total(closer), 1);
	cr_assert_eq(fcntl(fd, F_GETFD), -1);
	close(other);
}

Test(conn_closer, descriptors_are_closed_when_no_number_is_free)
{
	int other, peer, fd = with_lingering(&other, &peer, 0);
	struct rlimit limit = { .rlim_cur = 64, .rlim_max = 64 };

	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
		;
	cr_assert_eq(errno, EMFILE);
	cw_conn_closer_close(closer, fd);
	run_until_given_away();
	close(other);
	wait_for_end(peer);
}

Test(conn_closer, descriptors_out_of_band_are_seen_too)
{
	int other, peer, fd = with_lingering(&other, &peer, MSG_OOB);

	cw_conn_closer_close(closer, fd);
	run_until_given_away();
	wait_for_end(peer);
	cr_assert_eq(cw_conn_closer_total(closer), 1);
	close(other);
}

Test(conn_closer, many_are_closed)
{
	enum { N = 40 };
	int other[N], peer[N];

	for (unsigned i = 0; i < N; i++)
		cw_conn_closer_close(closer, with_lingering(&other[i], &peer[i], 0));
	run_until_given_away();
	for (unsigned i = 0; i < N; i++)
		wait_for_end(peer[i]);
	cr_assert_eq(cw_conn_closer_total(closer), N);
	for (unsigned i = 0; i < N; i++)
		close(other[i]);
}

/* More than one child is given at once. */
Test(conn_closer, many_more_than_a_message_holds_are_closed)
{
	enum { N = 600 };
	static int others[N], peers[N];

	for (unsigned i = 0; i < N; i++) {
		int pipe_fds[2], pair[2];

		cr_assert_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
		cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
		cr_assert_eq(cw_unix_send_fd(pair[0], "x", 1, pipe_fds[1]), 1);
		close(pipe_fds[1]);
		others[i] = pair[0];
		peers[i] = pipe_fds[0];
		cw_conn_closer_close(closer, pair[1]);
	}
	run_until_given_away();
	for (unsigned i = 0; i < N; i++) {
		wait_for_end(peers[i]);
		close(others[i]);
	}
	cr_assert_eq(cw_conn_closer_total(closer), N);
}

static pid_t server_pid(void)
{
	struct cw_fork_server_stats stats;

	cw_fork_server_stats(forks, &stats);
	return stats.pid;
}

/* Before a child has them, and after one has been given them. */
Test(conn_closer, what_a_lost_fork_server_did_not_take_another_one_closes)
{
	int other, peer, fd = with_lingering(&other, &peer, 0);

	while (server_pid() == 0)
		cr_assert_eq(event_base_loop(base, EVLOOP_ONCE), 0);
	cw_conn_closer_close(closer, fd);
	cr_assert_eq(kill(server_pid(), SIGKILL), 0);
	run_until_given_away();
	wait_for_end(peer);
	close(other);
}

/* As at the end of the daemon. */
Test(conn_closer, what_still_waits_when_it_ends_is_given_away)
{
	int other, peer, fd = with_lingering(&other, &peer, 0);

	cw_conn_closer_close(closer, fd);
	closer = cw_conn_closer_free(closer);
	wait_for_end(peer);
	close(other);
}
