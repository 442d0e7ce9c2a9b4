/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/sd_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/parse.h"

/* SD_LISTEN_FDS_START of sd_listen_fds(3): the first descriptor that the manager passes. */
#define FIRST_PASSED_FD 3
/* The most descriptors per message. A rank has two: its record and its pidfd. */
#define MAX_FDS 2u
#define SEND_LIMIT_MS 50
/*
 * The longest wait for the reports of start, reload and stop. These are rare, but if the manager
 * misses one of them, it kills the daemon.
 */
#define PHASE_LIMIT_MS 1000
#define SILENCE_NS (10 * CW_NS_PER_S)

/* Stores the address of the manager in *ret. Returns 0 or -errno. */
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
 * How long we wait for a manager that does not read. limit_ms = 0: we do not wait. After such a
 * time-out we send nothing to the manager for SILENCE_NS of `clock`. clock = NULL: we always send.
 * The ranks' descriptors need this silence: we store them one by one, a thousand at a time, and
 * must not wait for each.
 */
struct patience {
	unsigned limit_ms;
	const struct cw_clock *clock;
};

static int send_msg(const struct msghdr *msg, struct patience patience)
{
	const struct timeval limit = { .tv_sec = patience.limit_ms / 1000,
				       .tv_usec = patience.limit_ms % 1000 * 1000 };
	const struct cw_clock *clock = patience.clock;
	int flags = MSG_NOSIGNAL | (patience.limit_ms ? 0 : MSG_DONTWAIT);
	static int64_t silent_until_ns;
	int64_t now_ns = clock ? cw_clock_now_ns(clock) : 0;
	_cleanup_(closep) int fd = -1;
	int r = 0;

	if (clock && now_ns < silent_until_ns)
		return -EAGAIN;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) < 0 ||
	    sendmsg(fd, msg, flags) < 0)
		r = -errno;
	if (clock && r == -EAGAIN)
		silent_until_ns = now_ns + SILENCE_NS;
	return r;
}

static int send_to_manager(struct patience patience, const char *text, const int *fds, unsigned n)
{
	union {
		char space[CMSG_SPACE(MAX_FDS * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { (char *)(uintptr_t)text, strlen(text) }; /* not const-correct */
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
	return send_msg(&msg, patience);
}

/*
 * Sends a text to the manager. We ignore failure, because it means that there is no manager or that
 * the manager does not read.
 */
static void say(const char *text, unsigned limit_ms)
{
	(void)send_to_manager((struct patience){ .limit_ms = limit_ms }, text, NULL, 0);
}

static void say_status(const char *before, const char *status, unsigned limit_ms)
{
	char text[1024];

	(void)snprintf(text, sizeof(text), "%sSTATUS=%s", before, status);
	say(text, limit_ms);
}

void cw_notify_ready(const char *status)
{
	say_status("READY=1\n", status, PHASE_LIMIT_MS);
}

void cw_notify_reloading(int64_t monotonic_ns)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%lld",
		       (long long)(monotonic_ns / 1000));
	say(text, PHASE_LIMIT_MS);
}

void cw_notify_stopping(void)
{
	say("STOPPING=1", PHASE_LIMIT_MS);
}

void cw_notify_status(const char *status)
{
	say_status("", status, 0);
}

/*
 * Returns whether the manager set its variables for this process. A parent may have received them
 * and passed them on.
 */
static bool is_for_us(const char *pid_name)
{
	const char *text = getenv(pid_name);
	uint64_t pid;

	return text && cw_parse_u64(text, 1, INT32_MAX, &pid) == 0 && (pid_t)pid == getpid();
}

int64_t cw_notify_watchdog_ns(void)
{
	const char *text = getenv("WATCHDOG_USEC");
	uint64_t usec;

	if (!text || cw_parse_u64(text, 1, INT64_MAX / 1000, &usec) < 0)
		return 0;
	/* Without WATCHDOG_PID the watchdog applies to every process that has the variables. */
	if (getenv("WATCHDOG_PID") && !is_for_us("WATCHDOG_PID"))
		return 0;
	return (int64_t)usec * 1000;
}

void cw_notify_alive(void)
{
	say("WATCHDOG=1", 0); /* the next call tries again */
}

/*
 * Sets CLOEXEC on the descriptors that the manager passed, and returns their number. Returns 0 if
 * there is no manager, or if its variables are invalid.
 */
static unsigned passed(void)
{
	const char *text = getenv("LISTEN_FDS");
	uint64_t n;

	if (!text || !is_for_us("LISTEN_PID") ||
	    cw_parse_u64(text, 1, INT32_MAX - FIRST_PASSED_FD, &n) < 0)
		return 0;
	for (unsigned i = 0; i < n; i++)
		if (fcntl(FIRST_PASSED_FD + (int)i, F_SETFD, FD_CLOEXEC) < 0)
			return 0;
	return (unsigned)n;
}

/* Returns the next name of the list. A colon separates two names. */
static const char *next_name(const char **names, size_t *ret_len)
{
	const char *name = *names;

	*ret_len = strcspn(name, ":");
	*names = name + *ret_len + (name[*ret_len] == ':');
	return name;
}

static bool is_listening_stream(int fd)
{
	int domain, type, listens;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_UNIX &&
	       getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

int cw_notify_listen_fd(const char *name)
{
	const char *names = getenv("LISTEN_FDNAMES"), *found;
	unsigned n = names ? passed() : 0;
	size_t len;

	for (unsigned i = 0; i < n; i++) {
		found = next_name(&names, &len);
		if (len == strlen(name) && strncmp(found, name, len) == 0 &&
		    is_listening_stream(FIRST_PASSED_FD + (int)i))
			return FIRST_PASSED_FD + (int)i;
	}
	return -1;
}

int cw_notify_passed_fds(const char *prefix, struct cw_passed_fd **ret, size_t *ret_n)
{
	const char *names = getenv("LISTEN_FDNAMES"), *found;
	unsigned n = names ? passed() : 0;
	struct cw_passed_fd *list = calloc(n ? n : 1, sizeof(*list));
	size_t n_found = 0, len;

	for (unsigned i = 0; list && i < n; i++) {
		found = next_name(&names, &len);
		if (len < strlen(prefix) || strncmp(found, prefix, strlen(prefix)) != 0)
			continue;
		list[n_found].fd = FIRST_PASSED_FD + (int)i;
		list[n_found].name = strndup(found, len);
		if (!list[n_found++].name)
			goto no_memory;
	}
	if (!list)
		return -ENOMEM;
	*ret = list;
	*ret_n = n_found;
	return 0;

no_memory:
	while (n_found)
		free(list[--n_found].name);
	free(list);
	return -ENOMEM;
}

int cw_notify_store_fds(const struct cw_clock *clock, const char *name, const int *fds, unsigned n)
{
	char text[256];

	/*
	 * A pidfd hangs up when its process is reaped. By default the manager would then drop the
	 * pidfd, just when we need it most. With FDPOLL=0 the manager keeps it.
	 */
	(void)snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	return send_to_manager((struct patience){ SEND_LIMIT_MS, clock }, text, fds, n);
}

int cw_notify_remove_fds(const struct cw_clock *clock, const char *name)
{
	char text[256];

	(void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
	return send_to_manager((struct patience){ SEND_LIMIT_MS, clock }, text, NULL, 0);
}
