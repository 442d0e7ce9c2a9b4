/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/unixsock.h"

static char dir[] = "/tmp/cw-unixsock-XXXXXX";
static char path[64];

static void setup(void)
{
	cr_assert_not_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/a/b/sock", dir);
}

static void teardown(void)
{
	char parent[64];

	(void)unlink(path);
	(void)snprintf(parent, sizeof(parent), "%s/a/b", dir);
	(void)rmdir(parent);
	(void)snprintf(parent, sizeof(parent), "%s/a", dir);
	(void)rmdir(parent);
	(void)rmdir(dir);
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TestSuite(unixsock, .init = setup, .fini = teardown);

Test(unixsock, listens_with_the_mode_asked_for_whatever_the_umask)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	umask(0177);
	umask(0077);
	fd = cw_unix_listen(path, 0666, (gid_t)-1, NULL);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0666u);
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	cr_expect(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

Test(unixsock, replaces_a_stale_socket_but_not_a_living_one)
{
	struct cw_err err;
	int fd = cw_unix_listen(path, 0600, (gid_t)-1, NULL);
	int second;

	cr_assert_geq(fd, 0);
	second = cw_unix_listen(path, 0600, (gid_t)-1, &err);
	cr_expect_eq(second, -EADDRINUSE);
	cr_expect_not_null(strstr(err.text, path));
	close(fd);
	fd = cw_unix_listen(path, 0600, (gid_t)-1, &err);
	cr_expect_geq(fd, 0);
	close(fd);
}

Test(unixsock, refuses_to_replace_what_is_no_socket)
{
	int fd = cw_unix_listen(path, 0600, (gid_t)-1, NULL);

	close(fd);
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	cr_expect_eq(cw_unix_listen(path, 0600, (gid_t)-1, NULL), -EEXIST);
}

Test(unixsock, refuses_paths_that_do_not_fit)
{
	char text[300];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	cr_expect_eq(cw_unix_listen(text, 0600, (gid_t)-1, NULL), -ENAMETOOLONG);
	cr_expect_eq(cw_unix_connect(text, 10), -ENAMETOOLONG);
	cr_expect_eq(cw_unix_connect("", 10), -ENAMETOOLONG);
	cr_expect_eq(cw_unix_connect("/nonexistent/sock", 10), -ENOENT);
}

Test(unixsock, connect_gives_up_when_nobody_accepts, .timeout = 300)
{
	/* One with a short queue: the daemon's takes more than a test may have descriptors. */
	_cleanup_(closep) int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fds[16], n = 0, r = 0;

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/short", dir);
	cr_assert_eq(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	cr_assert_eq(listen(listener, 2), 0);
	for (; n < 16; n++) {
		r = cw_unix_connect(addr.sun_path, 20);
		if (r < 0)
			break;
		fds[n] = r;
	}
	cr_expect_eq(r, -ETIMEDOUT, "%d after %d", r, n);
	while (n)
		close(fds[--n]);
	(void)unlink(addr.sun_path);
}

Test(unixsock, tells_who_the_peer_is)
{
	_cleanup_(closep) int listener = cw_unix_listen(path, 0600, (gid_t)-1, NULL);
	_cleanup_(closep) int client = cw_unix_connect(path, 1000);
	_cleanup_(closep) int server = accept(listener, NULL, NULL);
	struct cw_peer_cred cred;
	struct pollfd p;
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;

	cr_assert_geq(client, 0);
	cr_assert_eq(cw_unix_peer_user(server, &uid, &gid), 0);
	cr_expect(uid == getuid() && gid == getgid());
	cr_expect_lt(cw_unix_peer_user(STDIN_FILENO, &uid, &gid), 0);
	cr_assert_eq(cw_unix_peer_ids(server, &cred), 0);
	cw_unix_peer_pidfd(server, &cred);
	cr_expect_eq(cred.pid, getpid());
	cr_expect_eq(cred.uid, getuid());
	cr_assert_geq(cred.pidfd, 0);
	p = (struct pollfd){ .fd = cred.pidfd, .events = POLLIN };
	cr_expect_eq(poll(&p, 1, 0), 0, "the process behind it lives");
	cr_expect(fcntl(cred.pidfd, F_GETFD) & FD_CLOEXEC);
	close(cred.pidfd);
	cr_expect_lt(cw_unix_peer_ids(STDIN_FILENO, &cred), 0);
}

Test(unixsock, passes_one_descriptor_with_the_bytes)
{
	_cleanup_(closep) int a = -1, b = -1, file = -1, got = -1;
	struct stat sent, received;
	int pair[2];
	char buf[16];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	a = pair[0];
	b = pair[1];
	file = open("/dev/null", O_RDONLY | O_CLOEXEC);
	cr_expect_eq(cw_unix_send_fd(a, "hello", 5, file), 5);
	cr_expect_eq(cw_unix_recv_fd(b, buf, sizeof(buf), &got), 5);
	cr_expect_eq(memcmp(buf, "hello", 5), 0);
	cr_assert_geq(got, 0);
	cr_expect(fcntl(got, F_GETFD) & FD_CLOEXEC);
	cr_expect_eq(fstat(file, &sent), 0);
	cr_expect_eq(fstat(got, &received), 0);
	cr_expect_eq(sent.st_rdev, received.st_rdev);
}

Test(unixsock, bytes_alone_bring_no_descriptor)
{
	int pair[2], got = 7;
	char buf[16];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_expect_eq(cw_unix_send_fd(pair[0], "x", 1, -1), 1);
	cr_expect_eq(cw_unix_recv_fd(pair[1], buf, sizeof(buf), &got), 1);
	cr_expect_eq(got, -1);
	cr_expect_eq(cw_unix_send_fd(pair[0], "x", 0, 0), -EINVAL);
	close(pair[0]);
	cr_expect_eq(cw_unix_recv_fd(pair[1], buf, sizeof(buf), &got), 0, "end of stream");
	cr_expect_eq(cw_unix_send_fd(pair[1], "x", 1, -1), -EPIPE, "an error, not a signal");
	close(pair[1]);
}

/* A sender whose descriptor was lost must not look like a sender without one. */
Test(unixsock, says_when_there_was_no_room_for_a_descriptor)
{
	struct rlimit limit;
	int pair[2], got = 7, top;
	char buf[16];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_assert_eq(cw_unix_send_fd(pair[0], "x", 1, pair[0]), 1);
	cr_assert_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	top = dup(pair[0]);
	close(top);
	limit.rlim_cur = (rlim_t)top;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	cr_expect_eq(cw_unix_recv_fd(pair[1], buf, sizeof(buf), &got), -EMFILE);
	cr_expect_eq(got, -1);
	limit.rlim_cur = limit.rlim_max;
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	close(pair[0]);
	close(pair[1]);
}

/* To read on without taking them would be to close them. */
Test(unixsock, reads_up_to_descriptors_and_leaves_those_where_they_are)
{
	char buf[16];
	int pair[2], got;

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, sizeof(buf)), -EAGAIN);
	cr_assert_eq(cw_unix_send_fd(pair[0], "ab", 2, -1), 2);
	cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, 1), 1);
	cr_assert_eq(cw_unix_send_fd(pair[0], "c", 1, pair[0]), 1);
	cr_assert_eq(cw_unix_send_fd(pair[0], "d", 1, -1), 1);
	for (unsigned i = 0; i < 3; i++)
		cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, sizeof(buf)), -EBADMSG);
	cr_expect_eq(recv(pair[1], buf, 1, 0), 1);
	cr_expect_eq(buf[0], 'b');
	cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, sizeof(buf)), -EBADMSG);
	cr_expect_eq(cw_unix_recv_fd(pair[1], buf, 1, &got), 1);
	cr_expect_eq(buf[0], 'c');
	cr_expect_geq(got, 0);
	close(got);
	cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, sizeof(buf)), 1);
	close(pair[0]);
	cr_expect_eq(cw_unix_recv_bytes(pair[1], buf, sizeof(buf)), 0, "end of stream");
	close(pair[1]);
}

/* Sends n descriptors in one message, as an attacker that wants to fill our table would. */
static void send_many(int fd, int n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(64 * sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (char[]){ 'x' }, .iov_len = 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control };

	msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	control.align.cmsg_level = SOL_SOCKET;
	control.align.cmsg_type = SCM_RIGHTS;
	control.align.cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++)
		memcpy(CMSG_DATA(&control.align) + (size_t)i * sizeof(int), &fd, sizeof(fd));
	cr_assert_eq(sendmsg(fd, &msg, 0), 1);
}

Test(unixsock, closes_surplus_descriptors)
{
	int pair[2], got, before;
	char buf[4];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	before = count_fds();
	for (int n = 2; n <= 64; n += 31) {
		send_many(pair[0], n);
		cr_expect_eq(cw_unix_recv_fd(pair[1], buf, sizeof(buf), &got), 1);
		cr_expect_eq(count_fds(), before + 1, "%d sent", n);
		close(got);
	}
	close(pair[0]);
	close(pair[1]);
}
