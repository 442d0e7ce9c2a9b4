/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's host threads ask their sockets again and again, each on a processor of its own, as they
 * have on a node for GPUs. Here all ranks share a few: who finds nothing lets the others have the
 * rest of its turn, or seven of eight ranks spin while the one they wait for stands in the queue.
 * Linked with --wrap=recv.
 */
#include <cerrno>
#include <sched.h>
#include <sys/socket.h>
#include <sys/types.h>

extern "C" ssize_t __real_recv(int fd, void *buf, size_t len, int flags);
extern "C" ssize_t __wrap_recv(int fd, void *buf, size_t len, int flags);

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
