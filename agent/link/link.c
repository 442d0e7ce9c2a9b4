/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper thread runs one loop around poll(). The loop stores beats, connects to the daemon or
 * waits for its messages, and answers them. The program may close the socket's descriptor and reuse
 * the number for its own file. We therefore check the socket's identity before each use.
 */
#include "agent/link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent/base/descriptors.h"
#include "agent/base/features.h"
#include "agent/base/log.h"
#include "agent/base/state.h"
#include "agent/base/thread.h"
#include "agent/link/tracer.h"
#include "agent/link/wire.h"
#include "agent/python/python_stacks.h"
#include "agent/record/record.h"
#include "common/job_env.h"

#define BEAT_MS 1000
#define RETRY_MS 1000     /* a restarted daemon has every agent back within 2 s */
#define FULL_RETRY_MS 200 /* the daemon's queue is full, but drains quickly */
/*
 * The delay after a refusal. The delay doubles with each further refusal, up to
 * REFUSED_RETRY_MAX_MS. The daemon may refuse for a temporary reason, so the first retry comes
 * early. If the reason is permanent, rare retries suffice until perhaps another daemon takes over.
 */
#define REFUSED_RETRY_MS 2000
#define REFUSED_RETRY_MAX_MS 60000
/*
 * We wait this long for the daemon's answer after it accepted the connection. The daemon may have
 * thousands of agents to register, and an agent that reconnects would lose its place in the queue.
 * If the daemon exits, we notice its end at once.
 */
#define ANSWER_MS 30000
#define SEND_MS 5000 /* limit for a daemon that does not read our reply */

enum link_state { LINK_DOWN, LINK_HELLO, LINK_UP };

/* The state of the connection. Only the helper thread uses it. */
static struct {
	struct sockaddr_un addr;
	socklen_t addr_len;
	enum link_state state;
	int fd;
	struct cw_fd_identity id; /* the application may close fd and reuse the number */
	uint64_t deadline_ms;     /* time of the next connect, or limit for the daemon's answer */
	uint8_t in[CW_WIRE_MAX_IN];
	size_t in_len;
	uint32_t random;
	uint32_t refused_ms; /* delay after the next refusal */
} lk = { .fd = -1, .refused_ms = REFUSED_RETRY_MS };

static uint8_t out[CW_PYTHON_TEXT_MAX + CW_WIRE_OVERHEAD];

static uint64_t now_ms(void)
{
	return cw_now_ns() / 1000000u;
}

/*
 * Returns a random number from 0 to range - 1. An xorshift, seeded with thread id and time,
 * suffices to spread retries.
 */
static uint32_t jitter(uint32_t range)
{
	lk.random ^= lk.random << 13;
	lk.random ^= lk.random >> 17;
	lk.random ^= lk.random << 5;
	return lk.random % range;
}

static bool owns_fd(void)
{
	return cw_fd_is(lk.fd, &lk.id);
}

static void drop(uint64_t retry_ms)
{
	if (owns_fd())
		(void)close(lk.fd);
	lk.fd = -1;
	lk.state = LINK_DOWN;
	lk.in_len = 0;
	lk.deadline_ms = now_ms() + retry_ms;
}

/*
 * Closes the connection and schedules a retry. Each agent retries at most once a second. The jitter
 * spreads the retries of a node's ranks.
 */
static void retry_soon(void)
{
	drop(RETRY_MS + jitter(RETRY_MS / 2));
}

/*
 * Closes the connection and schedules a retry after a refusal. The delay varies by a quarter.
 * Otherwise ranks that the daemon refused together would return together.
 */
static void retry_after_refusal(void)
{
	drop(lk.refused_ms * 3 / 4 + jitter(lk.refused_ms / 2));
	lk.refused_ms =
		lk.refused_ms < REFUSED_RETRY_MAX_MS / 2 ? 2 * lk.refused_ms : REFUSED_RETRY_MAX_MS;
}

/* Set when the daemon's queue has our hello. The thread that ends the program reads it. */
static bool has_said_hello;

/*
 * Sends the record's descriptor with the first byte of the hello message. Any socket buffer has
 * room for the whole message, so a partial send is an error.
 */
static bool send_hello(int fd)
{
	uint8_t buf[64];
	size_t len = cw_wire_hello(buf, sizeof(buf), cw_record.total_bytes, 0);
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
	int record = cw_fd_reopen(cw_record.fd, &cw_record.id, O_RDONLY);
	ssize_t sent;

	/*
	 * The application closed the record's descriptor. The daemon finds the mapping without us.
	 */
	if (record < 0)
		return false;
	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &record, sizeof(record));
	sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	cw_fd_release(record);
	if (sent == (ssize_t)len)
		__atomic_store_n(&has_said_hello, true, __ATOMIC_RELEASE);
	return sent == (ssize_t)len;
}

static void try_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || cw_fd_identify(fd, &lk.id) < 0) {
		if (fd >= 0)
			(void)close(fd);
		retry_soon();
		return;
	}
	/* The application may close a descriptor that it did not open. owns_fd() detects this. */
	lk.fd = cw_fd_dup_high(fd);
	errno = 0;
	if (!owns_fd() || connect(lk.fd, (struct sockaddr *)&lk.addr, lk.addr_len) < 0) {
		/* EAGAIN: the daemon's queue is full. We do not wait for room. */
		if (errno == EAGAIN)
			drop(FULL_RETRY_MS + jitter(FULL_RETRY_MS));
		else
			retry_soon();
		return;
	}
	if (!send_hello(lk.fd)) {
		retry_soon();
		return;
	}
	lk.state = LINK_HELLO;
	lk.deadline_ms = now_ms() + ANSWER_MS;
}

static void beat(void)
{
	struct cw_rec_header *h = cw_record.header;

	CW_STORE(h->ops_total, CW_LOAD(h->ring_ticket));
	CW_STORE(h->beat_ns, cw_now_ns());
}

/* Sends all bytes or gives up after SEND_MS. Stores beats while it waits. */
static bool send_all(const uint8_t *buf, size_t len)
{
	uint64_t until = now_ms() + SEND_MS;

	while (len > 0) {
		struct pollfd p = { .fd = lk.fd, .events = POLLOUT };
		ssize_t n = send(lk.fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			buf += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (now_ms() >= until)
			return false;
		(void)poll(&p, 1, BEAT_MS / 2);
		beat();
	}
	return true;
}

static void answer_python(uint64_t id)
{
	const char *text = "";
	enum cw_python_status status = cw_python_stacks(&text, beat);
	size_t len = cw_wire_python_stacks(out, sizeof(out), id, status, text);

	if (!len)
		len = cw_wire_python_stacks(out, sizeof(out), id, CW_PYTHON_FAILED, "");
	if (!owns_fd() || !send_all(out, len))
		retry_soon();
}

static void on_message(const struct cw_wire_in *in)
{
	switch (in->kind) {
	case CW_WIRE_WELCOME:
		if (lk.state == LINK_HELLO) {
			cw_log("registered with the daemon");
			cw_tracer_name(lk.fd);
		}
		lk.state = LINK_UP;
		lk.refused_ms = REFUSED_RETRY_MS;
		break;
	case CW_WIRE_REFUSED:
		cw_log("refused by the daemon: %s", in->reason);
		retry_after_refusal();
		break;
	case CW_WIRE_PYTHON_STACKS:
		if (lk.state == LINK_UP)
			answer_python(in->id);
		break;
	case CW_WIRE_OTHER:
		break;
	}
}

static void on_readable(void)
{
	ssize_t n = recv(lk.fd, lk.in + lk.in_len, sizeof(lk.in) - lk.in_len, MSG_DONTWAIT);
	struct cw_wire_in in;
	int used = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		retry_soon();
		return;
	}
	lk.in_len += (size_t)n;
	while (lk.state != LINK_DOWN && (used = cw_wire_parse(lk.in, lk.in_len, &in)) > 0) {
		lk.in_len -= (size_t)used;
		memmove(lk.in, lk.in + used, lk.in_len);
		on_message(&in);
	}
	if (used < 0)
		retry_soon();
}

static void step(void)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };
	uint64_t now = now_ms();
	int wait_ms = BEAT_MS;

	if (lk.state == LINK_DOWN && now >= lk.deadline_ms) {
		try_connect();
		now = now_ms();
	} else if (lk.state == LINK_HELLO && now >= lk.deadline_ms) {
		retry_soon();
	}
	if (lk.state != LINK_DOWN && !owns_fd())
		retry_soon(); /* the application closed the socket */
	if (lk.state == LINK_DOWN && lk.deadline_ms - now < (uint64_t)wait_ms)
		wait_ms = lk.deadline_ms > now ? (int)(lk.deadline_ms - now) : 0;
	p.fd = lk.fd; /* poll() ignores a negative fd */
	if (poll(&p, 1, wait_ms) > 0) {
		if (owns_fd())
			on_readable();
		else
			retry_soon();
	}
}

/* The helper thread. arg is NULL if the thread must stay in the program's descriptor table. */
static void *run(void *arg)
{
	if (arg)
		cw_fd_table_unshare();
	(void)prctl(PR_SET_NAME, "collwatch");
	lk.random = (uint32_t)cw_now_ns() | 1;
	lk.random ^= (uint32_t)syscall(SYS_gettid) << 8;
	while (cw_agent_is_armed()) {
		beat();
		cw_features_beat();
		step();
	}
	return NULL;
}

/* Sets the daemon's address. If the path is too long, addr_len stays 0. */
static void find_address(void)
{
	const char *path = getenv("COLLWATCH_SOCKET");
	size_t len;

	if (!path || !path[0])
		path = CW_DEFAULT_AGENT_SOCKET;
	len = strlen(path);
	lk.addr.sun_family = AF_UNIX;
	if (len < sizeof(lk.addr.sun_path)) {
		memcpy(lk.addr.sun_path, path, len + 1);
		lk.addr_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
	} else {
		cw_log("COLLWATCH_SOCKET is too long");
	}
}

/* Connects once, and does not wait. Returns the socket, or -1. */
static int connect_once(void)
{
	int fd = lk.addr_len ? socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

	if (fd >= 0 && connect(fd, (struct sockaddr *)&lk.addr, lk.addr_len) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void cw_link_report_no_record(int error)
{
	uint8_t buf[64];
	size_t len = cw_wire_hello(buf, sizeof(buf), 0, (uint32_t)error);
	int fd;

	find_address();
	fd = connect_once();
	if (fd < 0)
		return;
	(void)send(fd, buf, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd);
}

/*
 * A rank that fails in its first call may end before the helper thread has run. The daemon would
 * then never see its record, so the exit sends the hello. The daemon accepts it from a process that
 * has ended.
 */
__attribute__((destructor)) static void say_hello_at_exit(void)
{
	int saved_errno = errno, fd;

	if (!cw_agent_is_armed() || __atomic_load_n(&has_said_hello, __ATOMIC_ACQUIRE))
		return;
	fd = connect_once();
	if (fd >= 0) {
		(void)send_hello(fd); /* the process ends, so nothing is left to try */
		(void)close(fd);
	}
	errno = saved_errno;
}

void cw_link_start(void)
{
	int r;

	cw_tracer_start();
	find_address();
	r = cw_thread_start(run, cw_fd_table_can_unshare(cw_record.fd, &cw_record.id) ? &lk : NULL);
	if (r < 0)
		cw_log("no helper thread: %s", strerror(-r));
}
