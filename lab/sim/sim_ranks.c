/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/sim/sim_ranks.h"

#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int start_child(struct sim_ranks *ranks, sim_rank_fn fn, struct sim_rank *self, int id_fd)
{
	pid_t pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ranks->arrived_fd);
		_exit(read(id_fd, &self->id, sizeof(self->id)) == sizeof(self->id) ? fn(self) : 1);
	}
	ranks->pids[self->rank] = pid;
	ranks->pidfds[self->rank] = (int)syscall(SYS_pidfd_open, pid, 0);
	return ranks->pidfds[self->rank] < 0 ? -errno : 0;
}

/*
 * We make the id after we have forked the children. Making it starts a thread, and a child of a
 * process with threads may inherit a locked lock.
 */
static int send_id(int fd, int n)
{
	ncclUniqueId id;

	if (ncclGetUniqueId(&id) != ncclSuccess)
		return -EINVAL;
	for (int i = 0; i < n; i++) {
		/* An id has fewer bytes than PIPE_BUF, so each child reads a whole id. */
		if (write(fd, &id, sizeof(id)) != sizeof(id))
			return -EIO;
	}
	return 0;
}

int sim_ranks_start(struct sim_ranks *ranks, int n, sim_rank_fn fn, void *arg)
{
	struct sim_rank self = { .n = n, .arg = arg };
	int fds[2], id_fds[2];
	int r = 0;

	memset(ranks, 0, sizeof(*ranks));
	if (n > SIM_RANKS_MAX)
		return -EINVAL;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(id_fds, O_CLOEXEC) < 0) {
		r = -errno;
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	ranks->arrived_fd = fds[0];
	self.arrived_fd = fds[1];
	for (; r == 0 && self.rank < n; self.rank++) {
		r = start_child(ranks, fn, &self, id_fds[0]);
		if (r == 0)
			ranks->n++;
	}
	close(fds[1]);
	close(id_fds[0]);
	if (r == 0)
		r = send_id(id_fds[1], n);
	close(id_fds[1]);
	return r;
}

void sim_rank_arrived(const struct sim_rank *self)
{
	char byte = 1;

	(void)!write(self->arrived_fd, &byte, 1); /* we cannot notify a parent that is gone */
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

bool sim_ranks_wait_arrived(struct sim_ranks *ranks)
{
	long deadline = now_ms() + SIM_RANKS_DEADLINE_MS;

	for (int got = 0; got < ranks->n;) {
		struct pollfd p = { .fd = ranks->arrived_fd, .events = POLLIN };
		char bytes[SIM_RANKS_MAX];
		ssize_t n;

		if (poll(&p, 1, (int)(deadline - now_ms())) <= 0)
			return false;
		n = read(ranks->arrived_fd, bytes, sizeof(bytes));
		if (n <= 0)
			return false;
		got += (int)n;
	}
	return true;
}

unsigned int sim_ranks_wait(struct sim_ranks *ranks, unsigned int mask, int timeout_ms)
{
	long deadline = now_ms() + timeout_ms;
	unsigned int finished = 0;

	for (;;) {
		struct pollfd p[SIM_RANKS_MAX];
		long left = deadline - now_ms();

		for (int i = 0; i < ranks->n; i++) {
			bool is_waited = (mask & 1u << i) && !ranks->is_finished[i];

			p[i] = (struct pollfd){ .fd = is_waited ? ranks->pidfds[i] : -1,
						.events = POLLIN };
			if ((mask & 1u << i) && ranks->is_finished[i])
				finished |= 1u << i;
		}
		if (finished == mask || left < 0 || poll(p, (nfds_t)ranks->n, (int)left) < 0)
			return finished;
		for (int i = 0; i < ranks->n; i++) {
			if (p[i].revents & POLLIN) {
				waitpid(ranks->pids[i], &ranks->statuses[i], 0);
				ranks->is_finished[i] = true;
			}
		}
	}
}

int sim_ranks_exit_status(const struct sim_ranks *ranks, int rank)
{
	if (!ranks->is_finished[rank] || !WIFEXITED(ranks->statuses[rank]))
		return -1;
	return WEXITSTATUS(ranks->statuses[rank]);
}

void sim_ranks_stop(struct sim_ranks *ranks)
{
	for (int i = 0; i < ranks->n; i++) {
		if (!ranks->is_finished[i]) {
			kill(ranks->pids[i], SIGKILL);
			waitpid(ranks->pids[i], &ranks->statuses[i], 0);
		}
		close(ranks->pidfds[i]);
	}
	close(ranks->arrived_fd);
	ranks->n = 0;
}

int sim_rank_open(const struct sim_rank *self, struct sim_rank_device *ret_dev)
{
	CUcontext ctx;
	CUdevice dev;
	CUstream stream;

	if (cuInit(0) != CUDA_SUCCESS || cuDeviceGet(&dev, self->rank % 8) != CUDA_SUCCESS ||
	    cuDevicePrimaryCtxRetain(&ctx, dev) != CUDA_SUCCESS ||
	    cuCtxSetCurrent(ctx) != CUDA_SUCCESS ||
	    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS)
		return __LINE__;
	ret_dev->stream = stream;
	if (ncclCommInitRank(&ret_dev->comm, self->n, self->id, self->rank) != ncclSuccess)
		return __LINE__;
	return 0;
}
