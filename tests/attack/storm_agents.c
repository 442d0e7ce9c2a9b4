/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: storm_agents ranks SOCKET STATE FIRST_UID USERS RANKS
 *        storm_agents flood SOCKET STATE UID CONNECTIONS
 *
 * ranks: RANKS processes of each of USERS users, one job each, that register as agents do and come
 * back: a second after a connection that ended, a few tenths of one when the daemon's queue is
 * full, and a minute after a refusal, as the agents of 6cba914 do. Each is a process with a record
 * of its own, because the daemon tells ranks apart by process and record.
 *
 * flood: one process that keeps CONNECTIONS connections open, and opens each anew the moment it is
 * closed. Of four neighbours the first stays silent. The second sends a hello with a record that it
 * does not map. The third sends hello with the same good record again and again. The fourth closes
 * as soon as it has sent hello.
 *
 * STATE: a file of struct slot, one for each rank or one for the flood, kept up to date. Until they
 * are killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "model/op.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/record/record_writer.h"

#define RETRY_MS 1000
#define FULL_RETRY_MS 200
#define REFUSED_RETRY_MS 60000
#define ANSWER_MS 10000
#define BEAT_MS 1000
#define MAX_CONNECTIONS 4096

struct slot {
	uint32_t is_up;   /* a rank: it has its welcome and the connection stands */
	uint32_t refused; /* answers, and connections that ended without a welcome */
	uint32_t deferred;
	uint32_t open; /* a flood: connections */
	int64_t up_ns; /* CLOCK_MONOTONIC */
	uint64_t attempts;
};

struct party {
	const char *path;
	struct slot *slots;
	uint8_t hello[64];
	size_t hello_len;
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(1);
}

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static struct slot *map_state(const char *path, unsigned n)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *map;

	must(fd >= 0 && ftruncate(fd, (off_t)(n * sizeof(struct slot))) == 0, path);
	map = mmap(NULL, n * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(map != MAP_FAILED, path);
	close(fd);
	return map;
}

static void make_hello(struct party *p, size_t record_bytes)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { .version_min = CW_WIRE_VERSION,
						   .version_max = CW_WIRE_VERSION,
						   .record_bytes = record_bytes } };
	uint8_t *bytes;
	size_t len;

	must(cw_message_encode(&msg, &bytes, &len) == 0 && len <= sizeof(p->hello), "hello");
	memcpy(p->hello, bytes, len);
	p->hello_len = len;
	free(bytes);
}

static void become(uid_t uid)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* before: changing the user clears it */
	if (geteuid() == 0)
		must(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0, "setuid");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_DUMPABLE, 1);
}

/* As the agent: it does not wait for a full queue. -1: errno tells. */
static int dial(const struct party *p)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), r;

	must(fd >= 0, "socket");
	strncpy(addr.sun_path, p->path, sizeof(addr.sun_path) - 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return fd;
	r = errno;
	close(fd);
	errno = r;
	return -1;
}

/* ---- ranks ---- */

static int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

static struct cw_test_record *make_record(unsigned user, unsigned rank, unsigned ranks)
{
	struct cw_test_record *rec = cw_test_record_new();
	uint64_t op;
	int comm;

	(void)snprintf(rec->header->job_label, sizeof(rec->header->job_label), "storm:%u", user);
	rec->header->rank_label = (int32_t)rank;
	rec->header->world_size_label = (int32_t)ranks;
	rec->now_ns = now_ns();
	comm = cw_test_record_comm(rec, 1000 + user, ranks, (int32_t)rank);
	op = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 4096);
	cw_test_record_return(rec, comm, op, 0);
	cw_test_record_progress(rec, comm, op, op);
	return rec;
}

static void wait_ms(struct cw_test_record *rec, int64_t ms)
{
	int64_t until = now_ns() + ms * CW_NS_PER_MS;

	do {
		int64_t left = (until - now_ns()) / CW_NS_PER_MS;

		__atomic_store_n(&rec->header->beat_ns, (uint64_t)now_ns(), __ATOMIC_RELAXED);
		(void)poll(NULL, 0, left < 0 ? 0 : left < BEAT_MS ? (int)left + 1 : BEAT_MS);
	} while (now_ns() < until);
}

/* Of the first whole message; CW_MSG_NONE when the connection ended or nothing came in time. */
static unsigned wait_for_answer(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct cw_message *msg = NULL;
	const uint8_t *payload;
	size_t len, used;
	uint8_t buf[512];
	unsigned type = CW_MSG_NONE;
	ssize_t n;

	if (poll(&p, 1, ANSWER_MS) != 1)
		return CW_MSG_NONE;
	n = recv(fd, buf, sizeof(buf), 0); /* sent at once: whole */
	if (n > 0 && cw_frame_parse(buf, (size_t)n, &payload, &len, &used) == 0 &&
	    cw_message_decode(payload, len, &msg) == 0)
		type = msg->type;
	(void)cw_message_free(msg); /* always NULL */
	return type;
}

static void stay(struct slot *slot, struct cw_test_record *rec, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t buf[512];

	slot->up_ns = now_ns();
	__atomic_store_n(&slot->is_up, 1, __ATOMIC_RELEASE);
	for (;;) {
		__atomic_store_n(&rec->header->beat_ns, (uint64_t)now_ns(), __ATOMIC_RELAXED);
		if (poll(&p, 1, BEAT_MS) == 1 && recv(fd, buf, sizeof(buf), 0) <= 0)
			break;
	}
	__atomic_store_n(&slot->is_up, 0, __ATOMIC_RELEASE);
}

static void be_rank(const struct party *p, struct slot *slot, unsigned user, unsigned rank,
		    unsigned ranks)
{
	struct cw_test_record *rec = make_record(user, rank, ranks);
	struct party own = *p;
	unsigned seed = user * 7919 + rank;

	make_hello(&own, rec->bytes);
	for (;;) {
		int fd = dial(&own);
		bool full = errno == EAGAIN;
		unsigned answer = CW_MSG_NONE;

		slot->attempts++;
		if (fd >= 0 && cw_unix_send_fd(fd, own.hello, own.hello_len, rec->fd) ==
				       (ssize_t)own.hello_len)
			answer = wait_for_answer(fd);
		if (answer == CW_MSG_AGENT_WELCOME)
			stay(slot, rec, fd);
		else if (answer == CW_MSG_AGENT_REFUSED)
			slot->refused++;
		else
			slot->deferred++;
		if (fd >= 0)
			close(fd);
		if (answer == CW_MSG_AGENT_REFUSED)
			wait_ms(rec, REFUSED_RETRY_MS);
		else if (fd < 0 && full)
			wait_ms(rec, FULL_RETRY_MS + rand_r(&seed) % FULL_RETRY_MS);
		else
			wait_ms(rec, RETRY_MS + rand_r(&seed) % (RETRY_MS / 2));
	}
}

static int run_ranks(struct party *p, const char *state, uid_t first, unsigned users,
		     unsigned ranks)
{
	p->slots = map_state(state, users * ranks);
	/* In the order of a machine that starts them: no user starts all of its ranks first. */
	for (unsigned rank = 0; rank < ranks; rank++) {
		for (unsigned user = 0; user < users; user++) {
			pid_t pid = fork();

			must(pid >= 0, "fork");
			if (pid > 0)
				continue;
			become(first + user);
			be_rank(p, &p->slots[user * ranks + rank], user, rank, ranks);
		}
	}
	while (wait(NULL) > 0)
		;
	return 1;
}

/* ---- a flood ---- */

enum { SILENT, UNMAPPED, AGAIN, GONE, N_KINDS };

/* The connection, or -1: the queue is full. */
static int open_one(const struct party *p, unsigned kind, int mapped_fd, int unmapped_fd)
{
	int fd = dial(p);

	p->slots->attempts++;
	if (fd < 0 || kind == SILENT)
		return fd;
	(void)cw_unix_send_fd(fd, p->hello, p->hello_len, /* gone: opened anew */
			      kind == AGAIN ? mapped_fd : unmapped_fd);
	if (kind == GONE) {
		close(fd);
		return -1;
	}
	return fd;
}

static void watch(int epoll_fd, int fd, unsigned i)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.u32 = i };

	must(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) == 0, "epoll_ctl");
}

static void run_flood(struct party *p, const char *state, uid_t uid, unsigned connections)
{
	static int fds[MAX_CONNECTIONS];
	struct rlimit limit = { MAX_CONNECTIONS + 64, MAX_CONNECTIONS + 64 };
	struct epoll_event events[256];
	struct cw_test_record *mapped, *unmapped;
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	must(connections <= MAX_CONNECTIONS && epoll_fd >= 0, "connections");
	must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "RLIMIT_NOFILE");
	p->slots = map_state(state, 1);
	become(uid);
	mapped = make_record(uid, 0, 1);
	unmapped = make_record(uid, 1, 1);
	make_hello(p, mapped->bytes);
	must(munmap(unmapped->header, unmapped->bytes) == 0, "munmap");
	for (unsigned i = 0; i < connections; i++)
		fds[i] = -1;
	for (;;) {
		unsigned open = 0, full = 0;
		int n;

		for (unsigned i = 0; i < connections && !full; i++) {
			if (fds[i] < 0) {
				fds[i] = open_one(p, i % N_KINDS, mapped->fd, unmapped->fd);
				full = fds[i] < 0 && i % N_KINDS != GONE;
				if (fds[i] >= 0)
					watch(epoll_fd, fds[i], i);
			}
		}
		for (unsigned i = 0; i < connections; i++)
			open += fds[i] >= 0;
		__atomic_store_n(&p->slots->open, open, __ATOMIC_RELEASE);
		n = epoll_wait(epoll_fd, events, 256, 1);
		for (int e = 0; e < n; e++) {
			int *fd = &fds[events[e].data.u32];
			uint8_t buf[256];

			if (recv(*fd, buf, sizeof(buf), MSG_DONTWAIT) > 0)
				continue; /* the end comes next, or it is welcome */
			close(*fd);
			*fd = -1;
		}
	}
}

int main(int argc, char **argv)
{
	struct party p = { 0 };

	if (argc > 2)
		p.path = argv[2];
	if (argc == 7 && !strcmp(argv[1], "ranks") && number(argv[6]))
		return run_ranks(&p, argv[3], number(argv[4]), number(argv[5]), number(argv[6]));
	if (argc == 6 && !strcmp(argv[1], "flood"))
		run_flood(&p, argv[3], number(argv[4]), number(argv[5])); /* never returns */
	(void)fprintf(stderr, "usage: storm_agents ranks SOCKET STATE FIRST_UID USERS RANKS\n"
			      "       storm_agents flood SOCKET STATE UID CONNECTIONS\n");
	return 1;
}
