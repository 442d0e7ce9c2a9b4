/* SPDX-License-Identifier: Apache-2.0 */
#include "common/unixsock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; newer than Debian 12's headers */
#endif

/*
 * The kernel's limit of the backlog. With a shorter backlog, one client that connects very often
 * could keep others out.
 */
#define BACKLOG 4096
/* We receive at most this many descriptors with a message; the kernel closes the others. */
#define FDS_MAX 8

static int make_address(const char *path, struct sockaddr_un *ret)
{
	size_t len = strlen(path);

	if (len == 0 || len >= sizeof(ret->sun_path))
		return -ENAMETOOLONG;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path, path, len + 1);
	return 0;
}

static int make_parents(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)NULL)->sun_path)];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	for (char *p = dir + 1; *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(dir, 0755) < 0 && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}

/*
 * Makes the path free for a new socket. Returns 0 if the path is free now. We remove a socket only
 * if it refuses our connection.
 */
static int remove_stale(const char *path, const struct sockaddr_un *addr)
{
	_cleanup_(closep) int fd = -1;
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) == 0 || errno == EAGAIN)
		return -EADDRINUSE; /* EAGAIN: the listener's backlog is full */
	if (errno != ECONNREFUSED)
		return -errno;
	return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

int cw_unix_listen(const char *path, mode_t mode, gid_t group, struct cw_err *err)
{
	_cleanup_(closep) int fd = -1;
	struct sockaddr_un addr;
	int r;

	r = make_address(path, &addr);
	if (r < 0)
		return cw_err_set(err, -r, "socket path '%s' is empty or too long", path);
	r = make_parents(path);
	if (r < 0)
		return cw_err_set(err, -r, "cannot make the directory of socket '%s': %s", path,
				  strerror(-r));
	r = remove_stale(path, &addr);
	if (r == -EADDRINUSE)
		return cw_err_set(err, -r, "another process already listens on socket '%s'", path);
	if (r < 0)
		return cw_err_set(err, -r, "cannot replace '%s': %s", path, strerror(-r));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return cw_err_set(err, errno, "cannot make a socket: %s", strerror(errno));
	/*
	 * Set the final group and mode of the file between bind() and listen(), when no client can
	 * connect. umask would change a mode that we pass to bind().
	 */
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(path, mode) < 0 ||
	    (group != (gid_t)-1 && chown(path, (uid_t)-1, group) < 0) || listen(fd, BACKLOG) < 0)
		return cw_err_set(err, errno, "cannot listen on socket '%s': %s", path,
				  strerror(errno));
	return steal_fd(&fd);
}

static int set_send_timeout(int fd, int timeout_ms)
{
	struct timeval tv = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };

	return setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0 ? -errno : 0;
}

int cw_unix_connect(const char *path, int timeout_ms)
{
	_cleanup_(closep) int fd = -1;
	struct sockaddr_un addr;
	int r;

	r = make_address(path, &addr);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	/*
	 * A full backlog makes connect() wait. On UNIX sockets the send timeout limits that wait.
	 * (A non-blocking connect() would fail at once, and poll() could not wait for it.) A
	 * timeout of 0 means no limit, so we set at least 1 ms.
	 */
	r = set_send_timeout(fd, timeout_ms > 0 ? timeout_ms : 1);
	if (r < 0)
		return r;
	if (connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	r = set_send_timeout(fd, 0);
	if (r < 0)
		return r;
	return steal_fd(&fd);
}

int cw_unix_peer_user(int fd, uid_t *ret_uid, gid_t *ret_gid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret_uid = cred.uid;
	*ret_gid = cred.gid;
	return 0;
}

int cw_unix_peer_ids(int fd, struct cw_peer_cred *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	if (cred.pid <= 0)
		return -ESRCH; /* the peer's pid namespace is not visible to this process */
	*ret = (struct cw_peer_cred){
		.pid = cred.pid,
		.uid = cred.uid,
		.gid = cred.gid,
		.pidfd = -1,
	};
	return 0;
}

void cw_unix_peer_pidfd(int fd, struct cw_peer_cred *cred)
{
	socklen_t len = sizeof(cred->pidfd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &cred->pidfd, &len) < 0)
		cred->pidfd =
			(int)syscall(SYS_pidfd_open, cred->pid, 0); /* CLOEXEC by definition */
}

/* Returns the first descriptor of the message and closes all others. */
static int take_first_fd(struct msghdr *msg)
{
	int first = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (first < 0)
				first = fd;
			else
				(void)close(fd); /* the caller wants only one descriptor */
		}
	}
	return first;
}

ssize_t cw_unix_recv_fd(int fd, void *buf, size_t len, int *ret_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	ssize_t n;

	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	*ret_fd = take_first_fd(&msg);
	/*
	 * Our buffer has room for several descriptors. MSG_CTRUNC without any descriptor therefore
	 * means that this process had no free number.
	 */
	if (*ret_fd < 0 && msg.msg_flags & MSG_CTRUNC)
		return -EMFILE;
	return n;
}

ssize_t cw_unix_send_fd(int fd, const void *buf, size_t len, int send_fd)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	if (len == 0)
		return -EINVAL; /* a descriptor cannot travel alone on a stream */
	if (send_fd >= 0) {
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.align), &send_fd, sizeof(send_fd));
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
	}
	do
		n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

void cw_unix_take_oob_inline(int fd)
{
	static const int on = 1;

	(void)setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &on, sizeof(on)); /* cannot fail */
}

ssize_t cw_unix_recv_bytes(int fd, void *buf, size_t len)
{
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	/*
	 * We pass no control buffer, so the kernel only reports whether descriptors exist
	 * (MSG_CTRUNC) and passes none.
	 */
	n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT);
	if (n > 0 && (msg.msg_flags & MSG_CTRUNC))
		return -EBADMSG;
	/* Read only the bytes that we peeked at: later bytes may have descriptors. */
	if (n > 0)
		n = recv(fd, buf, (size_t)n, MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

bool cw_unix_has_descriptors(int fd)
{
	char buf[16384];
	ssize_t n;

	/* Fails if fd is no socket, and then fd holds no descriptors. */
	(void)shutdown(fd, SHUT_RD);
	do
		n = cw_unix_recv_bytes(fd, buf, sizeof(buf));
	while (n > 0 || n == -EINTR);
	return n == -EBADMSG;
}
