/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/system/sd_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include "common/cleanup.h"
#include "common/clock.h"

/* A rank's record and its pidfd. */
#define MAX_FDS 2u
#define SEND_LIMIT_MS 50
#define SILENCE_NS (10 * CW_NS_PER_S)

/* sd_notify() failing means that nobody listens: there is nothing to do about it. */

void cw_notify_ready(const char *status)
{
	(void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void cw_notify_reloading(int64_t monotonic_ns)
{
	(void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)(monotonic_ns / 1000));
}

void cw_notify_stopping(void)
{
	(void)sd_notify(0, "STOPPING=1");
}

void cw_notify_status(const char *status)
{
	(void)sd_notifyf(0, "STATUS=%s", status);
}

int64_t cw_notify_watchdog_ns(void)
{
	uint64_t usec = 0;

	if (sd_watchdog_enabled(0, &usec) <= 0 || usec > INT64_MAX / 1000)
		return 0;
	return (int64_t)usec * 1000;
}

void cw_notify_alive(void)
{
	(void)sd_notify(0, "WATCHDOG=1");
}

int cw_notify_listen_fd(const char *name)
{
	char **names = NULL;
	int n, fd = -1;

	n = sd_listen_fds_with_names(0, &names);
	for (int i = 0; i < n; i++) {
		if (fd < 0 && !strcmp(names[i], name) &&
		    sd_is_socket_unix(SD_LISTEN_FDS_START + i, SOCK_STREAM, 1, NULL, 0) > 0)
			fd = SD_LISTEN_FDS_START + i;
		free(names[i]);
	}
	free(names);
	return fd;
}

int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n)
{
	struct cw_passed_fd *list;
	char **names = NULL;
	size_t found = 0;
	int n = sd_listen_fds_with_names(0, &names);

	list = calloc(n > 0 ? (size_t)n : 1, sizeof(*list));
	for (int i = 0; i < n; i++) {
		if (list && strncmp(names[i], prefix, strlen(prefix)) == 0)
			list[found++] = (struct cw_passed_fd){ SD_LISTEN_FDS_START + i, names[i] };
		else
			free(names[i]);
	}
	free(names);
	if (!list || n == -ENOMEM) {
		free(list);
		return -ENOMEM;
	}
	*ret = list;
	*ret_n = found;
	return 0;
}

/* 0, or -errno: where the manager listens. */
static int manager_address(struct sockaddr_un *ret, socklen_t *ret_len)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	if (!len)
		return -ENOENT;
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(ret->sun_path))
		return -EAFNOSUPPORT;
	*ret = (struct sockaddr_un){ .sun_family = AF_UNIX };
	memcpy(ret->sun_path, path, len);
	if (path[0] == '@')
		ret->sun_path[0] = '\0';
	*ret_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

/*
 * sd_notify() waits for ever when the manager does not read. Its few words may do that: they are as
 * many a minute as the manager itself asks for. These here come once per rank, a thousand at a
 * time.
 */
static int send_in_time(const struct msghdr *msg, const struct cw_clock *clock)
{
	const struct timeval limit = { .tv_usec = SEND_LIMIT_MS * 1000 };
	static int64_t silent_until_ns;
	int64_t now_ns = cw_clock_now_ns(clock);
	_cleanup_(closep) int fd = -1;
	int r = 0;

	if (now_ns < silent_until_ns)
		return -EAGAIN;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    sendmsg(fd, msg, MSG_NOSIGNAL) < 0)
		r = -errno;
	if (r == -EAGAIN)
		silent_until_ns = now_ns + SILENCE_NS;
	return r;
}

static int send_to_manager(const struct cw_clock *clock, char *text, const int *fds, unsigned n)
{
	union {
		char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { text, strlen(text) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct sockaddr_un address;
	struct cmsghdr *c;
	int r = manager_address(&address, &msg.msg_namelen);

	if (r < 0 || n > MAX_FDS)
		return r == -ENOENT ? 0 : r < 0 ? r : -E2BIG;
	msg.msg_name = &address;
	if (n) {
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	return send_in_time(&msg, clock);
}

int cw_notify_store_fds(const struct cw_clock *clock, const char *name, const int *fds, unsigned n)
{
	char text[256];

	/* FDPOLL=0: a pidfd hangs up when its process is reaped, and then it is wanted most. */
	(void)snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	return send_to_manager(clock, text, fds, n);
}

int cw_notify_remove_fds(const struct cw_clock *clock, const char *name)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return send_to_manager(clock, text, NULL, 0);
}
