/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/kernel/closed_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/unixsock.h"

enum map_call { MAP_UPDATE = CW_CLOSED_LINK + 1, MAP_DELETE, MAP_LOOKUP };

/*
 * A request to the child. The message also carries the descriptor of the directory or of the map.
 */
struct request {
	uint32_t id;
	uint32_t what; /* enum cw_closed_file or enum map_call */
	uint32_t number;
	uint32_t len; /* length of value in bytes */
	char value[CW_CLOSED_MAX_BYTES];
};

struct answer {
	uint32_t id;
	int32_t result; /* length of value, or -errno */
	char value[CW_CLOSED_MAX_BYTES];
};

#define HEAD_BYTES(type) offsetof(type, value)

/* The child. This process has at most one, because the rights belong to the whole process. */
static struct {
	bool is_used;
	int fd;
	uint32_t last_id;
	bool is_late; /* the answer to last_id has not come in time */
	void (*on_late)(void *user);
	void *user;
} child = { .fd = -1 };

/* ---- reading ---- */

static ssize_t read_file(int proc_fd, uint32_t file, int number, char *buf, size_t len)
{
	_cleanup_(closep) int fd = -1;
	char name[48];
	ssize_t n;

	switch (file) {
	case CW_CLOSED_STAT:
		strcpy(name, "stat");
		break;
	case CW_CLOSED_IO:
		strcpy(name, "io");
		break;
	case CW_CLOSED_SYSCALL:
		strcpy(name, "syscall");
		break;
	case CW_CLOSED_THREAD_SYSCALL:
		(void)snprintf(name, sizeof(name), "task/%d/syscall", number);
		break;
	case CW_CLOSED_CWD:
		n = readlinkat(proc_fd, "cwd", buf, len);
		return n < 0 ? -errno : n;
	case CW_CLOSED_LINK:
		(void)snprintf(name, sizeof(name), "fd/%d", number);
		n = readlinkat(proc_fd, name, buf, len);
		return n < 0 ? -errno : n;
	default:
		return -EINVAL;
	}
	fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	n = fd < 0 ? -1 : read(fd, buf, len);
	return n < 0 ? -errno : n;
}

static ssize_t call_map(int map_fd, uint32_t what, uint32_t key, char *value, size_t len)
{
	union bpf_attr attr = { .map_fd = (uint32_t)map_fd };
	int call = what == MAP_UPDATE   ? BPF_MAP_UPDATE_ELEM
		   : what == MAP_DELETE ? BPF_MAP_DELETE_ELEM
					: BPF_MAP_LOOKUP_ELEM;

	attr.key = (uint64_t)(uintptr_t)&key;
	attr.value = (uint64_t)(uintptr_t)value;
	if (syscall(SYS_bpf, call, &attr, sizeof(attr)) < 0)
		return -errno;
	return what == MAP_LOOKUP ? (ssize_t)len : 0;
}

/* ---- in the child ---- */

int cw_closed_files_child(int fd)
{
	struct request request;
	struct answer answer;

	/* The loop waits for this process. Ignore a failure, which only costs time. */
	(void)setpriority(PRIO_PROCESS, 0, -20);
	for (;;) {
		_cleanup_(closep) int of = -1;
		ssize_t n = cw_unix_recv_fd(fd, &request, sizeof(request), &of);
		size_t len = 0;

		if (n == -EMFILE)
			continue; /* the request is lost, and the daemon does not wait for long */
		if (n < (ssize_t)HEAD_BYTES(struct request) ||
		    request.len > sizeof(request.value) || of < 0)
			return n == 0 ? 0 : 1;
		answer.id = request.id;
		if (request.what < MAP_UPDATE) {
			answer.result = (int32_t)read_file(of, request.what, (int)request.number,
							   answer.value, sizeof(answer.value));
		} else {
			memcpy(answer.value, request.value, sizeof(answer.value));
			answer.result = (int32_t)call_map(of, request.what, request.number,
							  answer.value, request.len);
		}
		if (answer.result > 0)
			len = (size_t)answer.result;
		if (send(fd, &answer, HEAD_BYTES(struct answer) + len, MSG_NOSIGNAL) < 0)
			return 0; /* the daemon has ended */
	}
}

/* ---- in the loop ---- */

/* Receives the answer to the last request, and drops older ones. flags: 0 or MSG_DONTWAIT. */
static ssize_t take_answer(struct answer *answer, int flags)
{
	ssize_t n;

	do {
		n = recv(child.fd, answer, sizeof(*answer), flags);
		if (n < (ssize_t)HEAD_BYTES(struct answer))
			return n < 0 && errno == EINTR ? -EINTR : -EAGAIN;
	} while (answer->id != child.last_id);
	child.is_late = false;
	return n;
}

static ssize_t ask(struct request *request, int fd, void *ret, size_t len)
{
	struct answer answer;
	ssize_t n;

	if (child.fd < 0 || (child.is_late && take_answer(&answer, MSG_DONTWAIT) < 0))
		return -EAGAIN;
	request->id = ++child.last_id;
	if (cw_unix_send_fd(child.fd, request, HEAD_BYTES(struct request) + request->len, fd) < 0)
		return -EAGAIN;
	do
		n = take_answer(&answer, 0);
	while (n == -EINTR);
	if (n < 0) {
		child.is_late = true;
		if (child.on_late)
			child.on_late(child.user);
		return n;
	}
	if (answer.result < 0)
		return answer.result;
	n -= (ssize_t)HEAD_BYTES(struct answer);
	if (n > (ssize_t)len)
		n = (ssize_t)len;
	memcpy(ret, answer.value, (size_t)n);
	return n;
}

ssize_t cw_closed_files_read(int proc_fd, enum cw_closed_file file, int number, char *buf,
			     size_t len)
{
	struct request request = { .what = file, .number = (uint32_t)number };
	ssize_t n = child.is_used ? ask(&request, proc_fd, buf, len - 1)
				  : read_file(proc_fd, file, number, buf, len - 1);

	if (n >= 0)
		buf[n] = '\0';
	return n;
}

/*
 * Makes the call here, because newer kernels need only the descriptor. An older one returns -EPERM
 * to a process without CAP_BPF.
 */
static int map_call(int map_fd, enum map_call what, uint32_t key, void *value, size_t len)
{
	struct request request = { .what = what, .number = key };
	ssize_t n = call_map(map_fd, what, key, value, len);

	if (n != -EPERM || !child.is_used || len > sizeof(request.value))
		return n < 0 ? (int)n : 0;
	request.len = (uint32_t)len;
	if (what == MAP_UPDATE)
		memcpy(request.value, value, len);
	n = ask(&request, map_fd, value, what == MAP_LOOKUP ? len : 0);
	return n < 0 ? (int)n : 0;
}

int cw_closed_map_update(int map_fd, uint32_t key, const void *value, size_t len)
{
	return map_call(map_fd, MAP_UPDATE, key, (void *)value, len);
}

int cw_closed_map_delete(int map_fd, uint32_t key)
{
	return map_call(map_fd, MAP_DELETE, key, NULL, 0);
}

int cw_closed_map_lookup(int map_fd, uint32_t key, void *ret_value, size_t len)
{
	return map_call(map_fd, MAP_LOOKUP, key, ret_value, len);
}

void cw_closed_files_use(int fd, void (*on_late)(void *user), void *user)
{
	const struct timeval wait = { .tv_usec = CW_CLOSED_WAIT_MS * 1000 };

	child.is_used = true;
	child.is_late = false;
	child.fd = fd;
	child.on_late = on_late;
	child.user = user;
	if (fd < 0)
		return;
	/*
	 * The fork server's sockets do not block, and a socket that does not block knows no time
	 * limit. Neither call can fail for a socket.
	 */
	(void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
}

bool cw_closed_files_is_late(void)
{
	struct answer answer;

	return child.is_late && take_answer(&answer, MSG_DONTWAIT) < 0;
}
