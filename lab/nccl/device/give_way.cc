/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's host threads poll their sockets without pause, because a GPU node has a processor for
 * each of them. Here all ranks share a few: a thread without data yields the rest of its time
 * slice. Otherwise seven of eight ranks spin while the awaited rank waits for a processor. An
 * attempt to accept makes a socket and discards it, which takes a quarter of the start of eight
 * ranks: a thread without a caller therefore waits a little for one. Single connections may have a
 * fault (socket_fault.h). Linked with --wrap for each of these calls.
 */
#include "lab/nccl/device/socket_fault.h"

#include <cerrno>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/types.h>

/* NCCL checks its abort flags between two attempts. */
static const int AT_THE_DOOR_MS = 1;

extern "C" int __real_accept(int fd, struct sockaddr *address, socklen_t *len);
extern "C" int __wrap_accept(int fd, struct sockaddr *address, socklen_t *len);
extern "C" int __real_connect(int fd, const struct sockaddr *address, socklen_t len);
extern "C" int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len);
extern "C" ssize_t __real_send(int fd, const void *buf, size_t len, int flags);
extern "C" ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags);
extern "C" ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
extern "C" ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *len)
{
	int accepted = __real_accept(fd, address, len);

	if (accepted < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		struct pollfd door = { fd, POLLIN, 0 };

		(void)poll(&door, 1, AT_THE_DOOR_MS);
		accepted = __real_accept(fd, address, len); /* sets errno itself */
	}
	if (accepted >= 0)
		lab::socket_accepted(accepted);
	return accepted;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t len)
{
	lab::socket_connecting(fd);
	return __real_connect(fd, address, len);
}

ssize_t __wrap_send(int fd, const void *buf, size_t len, int flags)
{
	size_t may = lab::socket_may_send(fd, len);
	ssize_t n;

	if (may < len && may == 0) {
		errno = EAGAIN;
		return -1;
	}
	n = __real_send(fd, buf, may, flags);
	if (n > 0)
		lab::socket_sent(fd, buf, (size_t)n);
	return n;
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	size_t may = lab::socket_may_receive(fd, len);
	ssize_t n = -1;

	if (may < len && may == 0)
		errno = EAGAIN;
	else
		n = __real_recv(fd, buf, may, flags);
	if (n > 0 && !(flags & MSG_PEEK))
		lab::socket_received(fd, buf, (size_t)n);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		int saved = errno;

		(void)sched_yield();
		errno = saved;
	}
	return n;
}
