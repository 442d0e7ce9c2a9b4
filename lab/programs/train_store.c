/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/programs/train_store.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The pause between attempts to reach rank 0. */
#define RETRY_NS 20000000L

static void wait_a_moment(void)
{
	const struct timespec ts = { .tv_nsec = RETRY_NS };

	(void)nanosleep(&ts, NULL); /* a shorter wait is as good */
}

static int resolve(const char *addr, const char *port, struct addrinfo **ret_ai)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };

	return getaddrinfo(addr, port, &hints, ret_ai) == 0 ? 0 : -EADDRNOTAVAIL;
}

static int write_all(int fd, const void *buf, size_t len)
{
	const char *p = buf;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* Returns 0 only after all @len bytes. */
static int read_all(int fd, void *buf, size_t len)
{
	char *p = buf;

	while (len > 0) {
		ssize_t n = read(fd, p, len);

		if (n == 0)
			return -ENODATA;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int serve_all(int listener, int clients, const void *buf, size_t len)
{
	int r = 0;

	while (clients > 0 && r == 0) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0 && errno == EINTR)
			continue;
		if (fd < 0)
			return -errno;
		r = write_all(fd, buf, len);
		close(fd);
		clients--;
	}
	return r;
}

int train_store_serve(const char *addr, const char *port, int world, const void *buf, size_t len)
{
	struct addrinfo *ai;
	int one = 1;
	int fd, r;

	r = resolve(addr, port, &ai);
	if (r < 0)
		return r;
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
	    bind(fd, ai->ai_addr, ai->ai_addrlen) < 0 || listen(fd, 128) < 0)
		r = -errno;
	freeaddrinfo(ai);
	if (r == 0)
		r = serve_all(fd, world - 1, buf, len);
	if (fd >= 0)
		close(fd);
	return r;
}

int train_store_fetch(const char *addr, const char *port, void *buf, size_t len)
{
	struct addrinfo *ai;
	int r = resolve(addr, port, &ai);

	if (r < 0)
		return r;
	for (;;) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		r = fd < 0 ? -errno : 0;
		if (r == 0 && connect(fd, ai->ai_addr, ai->ai_addrlen) < 0)
			r = -errno;
		if (r == 0)
			r = read_all(fd, buf, len);
		if (fd >= 0)
			close(fd);
		if (r != -ECONNREFUSED)
			break;
		wait_a_moment();
	}
	freeaddrinfo(ai);
	return r;
}

int train_file_put(const char *path, const void *buf, size_t len)
{
	char tmp[4096];
	int fd, r;

	if (snprintf(tmp, sizeof(tmp), "%s.tmp", path) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, buf, len);
	close(fd);
	if (r == 0 && rename(tmp, path) < 0)
		r = -errno;
	return r;
}

int train_file_get(const char *path, void *buf, size_t len)
{
	int fd, r;

	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0) {
		if (errno != ENOENT)
			return -errno;
		wait_a_moment();
	}
	r = read_all(fd, buf, len);
	close(fd);
	return r;
}
