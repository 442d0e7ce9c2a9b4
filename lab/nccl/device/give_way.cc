/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's host threads ask their sockets again and again, each on a processor of its own, as they
 * have on a node for GPUs. Here all ranks share a few: who finds nothing lets the others have the
 * rest of its turn, or seven of eight ranks spin while the one they wait for stands in the queue.
 * A try to accept makes a socket and throws it away, which is a quarter of a start of eight ranks:
 * who finds nobody at the door waits a little for somebody to come.
 * Linked with --wrap=accept and --wrap=recv.
 */
#include <cerrno>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/types.h>

/* NCCL looks at its abort flags between two tries. */
static const int AT_THE_DOOR_MS = 1;

extern "C" int __real_accept(int fd, struct sockaddr *address, socklen_t *len);
extern "C" int __wrap_accept(int fd, struct sockaddr *address, socklen_t *len);
extern "C" ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
extern "C" ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);

int __wrap_accept(int fd, struct sockaddr *address, socklen_t *len)
{
	int accepted = __real_accept(fd, address, len);

	if (accepted < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		struct pollfd door = { fd, POLLIN, 0 };

		(void)poll(&door, 1, AT_THE_DOOR_MS);
		accepted = __real_accept(fd, address, len); /* with its own errno */
	}
	return accepted;
}

ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags)
{
	ssize_t n = __real_recv(fd, buf, len, flags);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
		int saved = errno;

		(void)sched_yield();
		errno = saved;
	}
	return n;
}
