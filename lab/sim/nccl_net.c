/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sockets of the simulated NCCL. Every socket is non-blocking and close-on-exec. All waits are in
 * poll(), together with the communicator's abort descriptor.
 *
 * A process listens on the first IPv4 address of an interface, or on the loopback address.
 * NCCL_SOCKET_IFNAME names the interface, by a prefix or by a whole name after '='.
 */
#include "lab/sim/nccl_net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

struct sim_pending {
	struct sim_pending *next;
	int fd;
	struct sim_hello hello;
};

static bool ifname_matches(const char *spec, const char *name)
{
	if (spec[0] == '=')
		return strcmp(spec + 1, name) == 0;
	return strncmp(spec, name, strlen(spec)) == 0;
}

static int local_addr(struct sockaddr_in *ret_addr)
{
	const char *spec = getenv("NCCL_SOCKET_IFNAME");
	struct ifaddrs *all;
	int r = -ENODEV;

	memset(ret_addr, 0, sizeof(*ret_addr));
	ret_addr->sin_family = AF_INET;
	ret_addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (!spec || !*spec)
		return 0;
	if (getifaddrs(&all) < 0)
		return -errno;
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != AF_INET || !(i->ifa_flags & IFF_UP) ||
		    !ifname_matches(spec, i->ifa_name))
			continue;
		ret_addr->sin_addr = ((struct sockaddr_in *)i->ifa_addr)->sin_addr;
		r = 0;
		break;
	}
	freeifaddrs(all);
	return r;
}

/* Waits for the event. Returns 0, or -ECANCELED after an abort. */
static int wait_fd(int fd, short events, int abort_fd)
{
	struct pollfd p[2] = { { .fd = fd, .events = events },
			       { .fd = abort_fd, .events = POLLIN } };

	for (;;) {
		int n = poll(p, 2, -1);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			return -ECANCELED;
		if (n > 0)
			return 0;
	}
}

int sim_send_all(int fd, const void *buf, size_t len, int abort_fd)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
		int r;

		if (n >= 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_fd(fd, POLLOUT, abort_fd);
		if (r < 0)
			return r;
	}
	return 0;
}

int sim_recv_all(int fd, void *buf, size_t len, int abort_fd)
{
	char *p = buf;

	while (len > 0) {
		ssize_t n = recv(fd, p, len, 0);
		int r;

		if (n == 0)
			return -ECONNRESET;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		r = wait_fd(fd, POLLIN, abort_fd);
		if (r < 0)
			return r;
	}
	return 0;
}

int sim_listener_open(struct sim_listener *l, uint64_t key, int abort_fd)
{
	socklen_t len = sizeof(l->addr);
	int r;

	*l = (struct sim_listener){ .fd = -1, .abort_fd = abort_fd, .key = key };
	r = local_addr(&l->addr);
	if (r < 0)
		return r;
	l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd < 0)
		return -errno;
	if (bind(l->fd, (struct sockaddr *)&l->addr, sizeof(l->addr)) < 0 ||
	    listen(l->fd, BACKLOG) < 0 ||
	    getsockname(l->fd, (struct sockaddr *)&l->addr, &len) < 0) {
		r = -errno;
		sim_listener_close(l);
		return r;
	}
	return 0;
}

void sim_listener_close(struct sim_listener *l)
{
	while (l->pending) {
		struct sim_pending *p = l->pending;

		l->pending = p->next;
		close(p->fd);
		free(p);
	}
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
}

static void set_no_delay(int fd)
{
	int one = 1;

	/* if this fails, the socket is only slower */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Accepts one caller and adds it to the list. Rejects callers that do not know the key. */
static int accept_one(struct sim_listener *l)
{
	struct sim_pending *p;
	int fd, r;

	r = wait_fd(l->fd, POLLIN, l->abort_fd);
	if (r < 0)
		return r;
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? 0 : -errno;
	set_no_delay(fd);
	p = calloc(1, sizeof(*p));
	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	p->fd = fd;
	r = sim_recv_all(fd, &p->hello, sizeof(p->hello), l->abort_fd);
	if (r < 0 || p->hello.key != l->key) {
		close(fd);
		free(p);
		return r == -ECANCELED ? r : 0;
	}
	p->next = l->pending;
	l->pending = p;
	return 0;
}

static bool is_wanted(const struct sim_hello *h, enum sim_hello_type type, uint32_t ordinal,
		      const bool *wanted, int num_ranks)
{
	if (h->type != type || h->ordinal != ordinal)
		return false;
	return !wanted || (h->rank >= 0 && h->rank < num_ranks && wanted[h->rank]);
}

int sim_listener_take(struct sim_listener *l, enum sim_hello_type type, uint32_t ordinal,
		      const bool *wanted, int num_ranks, struct sim_hello *ret_hello)
{
	for (;;) {
		int r;

		for (struct sim_pending **link = &l->pending; *link; link = &(*link)->next) {
			struct sim_pending *p = *link;
			int fd = p->fd;

			if (!is_wanted(&p->hello, type, ordinal, wanted, num_ranks))
				continue;
			*link = p->next;
			*ret_hello = p->hello;
			free(p);
			return fd;
		}
		r = accept_one(l);
		if (r < 0)
			return r;
	}
}

int sim_connect(const struct sockaddr_in *addr, const struct sim_hello *hello, int abort_fd)
{
	int fd, r, err = 0;
	socklen_t len = sizeof(err);

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	set_no_delay(fd);
	r = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ? -errno : 0;
	if (r == -EINPROGRESS || r == -EINTR) {
		r = wait_fd(fd, POLLOUT, abort_fd);
		if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
			r = -errno;
		if (r == 0)
			r = -err;
	}
	if (r == 0)
		r = sim_send_all(fd, hello, sizeof(*hello), abort_fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	return fd;
}
