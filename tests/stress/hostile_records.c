/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks through descriptors: some are no record, others are records that lie. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/stress/hostile.h"
#include "tests/support/record/record_writer.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define MANY_FDS 64u
/* Long enough to be read some times. */
#define LIFE_NS (1500 * CW_NS_PER_MS)

/* ---- descriptors; each returns one, or -1 where the system has no such thing ---- */

static int memfd(unsigned flags, off_t size, int seals)
{
	int fd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0 || ftruncate(fd, size) < 0 || (seals && fcntl(fd, F_ADD_SEALS, seals) < 0)) {
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	return fd;
}

static int unsealed(void)
{
	return memfd(0, 1 << 20, 0);
}

static int half_sealed(void)
{
	return memfd(0, 1 << 20, F_SEAL_SHRINK | F_SEAL_GROW);
}

static int huge_pages(void)
{
	return memfd(MFD_HUGETLB, 2 << 20, SEALS);
}

static int empty_file(void)
{
	return memfd(0, 0, SEALS);
}

static int too_small(void)
{
	return memfd(0, 4095, SEALS);
}

static int too_large(void)
{
	return memfd(0, (off_t)1 << 40, SEALS);
}

static int all_zero(void)
{
	return memfd(0, 1 << 20, SEALS);
}

/* A good record, which this process does not map: another one's. */
static int foreign(void)
{
	struct cw_test_record *rec = cw_test_record_new();
	int fd = cw_test_record_dup(rec);

	(void)cw_test_record_free(rec); /* always NULL */
	return fd;
}

static int pipe_end(void)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -1;
	(void)close(fds[1]);
	return fds[0];
}

static int socket_end(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int event(void)
{
	return eventfd(0, EFD_CLOEXEC);
}

static int poll_set(void)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

static int directory(void)
{
	return open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int own_memory(void)
{
	return open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
}

static int endless(void)
{
	return open("/dev/zero", O_RDONLY | O_CLOEXEC);
}

static int path_only(void)
{
	return open("/", O_PATH | O_CLOEXEC);
}

static void send_one(struct hostile *h, const int *fds, unsigned n)
{
	uint8_t hello[64];
	size_t len = hostile_hello(hello);
	int conn = hostile_connect(h);

	if (conn < 0)
		return;
	(void)hostile_send(conn, hello, len, fds, n); /* gone: that is the answer */
	hostile_expect_refusal(h, conn);
}

/* Of one good record as many copies as a message carries: it is not one descriptor. */
static void send_many(struct hostile *h)
{
	int fds[MANY_FDS], fd = foreign();

	for (unsigned i = 0; i < MANY_FDS; i++)
		fds[i] = fd;
	send_one(h, fds, MANY_FDS);
	(void)close(fd);
}

void hostile_descriptors(struct hostile *h)
{
	static int (*const kinds[])(void) = {
		unsealed,  half_sealed, huge_pages, empty_file, too_small, too_large,
		all_zero,  foreign,     pipe_end,   socket_end, event,     poll_set,
		directory, own_memory,  endless,    path_only,
	};
	int hanging = hostile_fuse_file(h), sent = 0;

	for (unsigned i = 0; hostile_goes_on(); i++) {
		unsigned kind = i % (sizeof(kinds) / sizeof(kinds[0]) + 1);
		int fd;

		if (kind == sizeof(kinds) / sizeof(kinds[0])) {
			send_many(h);
			continue;
		}
		fd = kinds[kind]();
		if (fd < 0)
			continue;
		send_one(h, &fd, 1);
		(void)close(fd);
	}
	/* Last: a user whose descriptors hang when they are closed is not served any more. */
	for (; sent < 4 && hanging >= 0; sent++)
		send_one(h, &hanging, 1);
	hostile_fuse_end(h, sent);
}

/* ---- records ---- */

/* Words that a reader may trip over. */
static uint64_t odd_word(struct hostile *h)
{
	static const uint64_t odd[] = { 0,
					1,
					UINT64_MAX,
					INT64_MAX,
					(uint64_t)INT64_MAX + 1,
					UINT32_MAX,
					UINT64_C(0x0000000100000000),
					UINT64_C(0xffffffff00000000),
					UINT64_C(0x4141414141414141) };
	uint64_t at = hostile_random(h) % (2 * sizeof(odd) / sizeof(odd[0]));

	return at < sizeof(odd) / sizeof(odd[0]) ? odd[at] : hostile_random(h);
}

/* A job at work, so that the daemon has something to believe. */
static void work(struct cw_test_record *rec)
{
	for (int c = 0; c < 32; c++) {
		cw_test_record_comm(rec, 0x6666000 + (uint64_t)c, 8, 3);
		for (int i = 0; i < 100; i++) {
			uint64_t op = cw_test_record_collective(rec, c, 1, 64);

			cw_test_record_return(rec, c, op, 0);
		}
	}
}

/* One word somewhere, mostly where the counters and the table are. The header's first page stays
 * as it is but for its fields that are read again and again. */
static void spoil(struct hostile *h, struct cw_test_record *rec)
{
	uint64_t *words = (uint64_t *)rec->header;
	size_t n = rec->bytes / 8, comms = sizeof(*rec->comms) * 32 / 8;
	size_t header = sizeof(*rec->header) / 8, at;

	switch (hostile_random(h) % 4) {
	case 0: /* from the beat to the texts' end */
		at = 11 + hostile_random(h) % 67;
		break;
	case 1:
		at = hostile_random(h) % n;
		if (at < header)
			at = header;
		break;
	default:
		at = header + hostile_random(h) % comms;
	}
	__atomic_store_n(&words[at], odd_word(h), __ATOMIC_RELAXED);
}

static void spoil_counts(struct hostile *h, struct cw_test_record *rec)
{
	struct cw_rec_comm *c = &rec->comms[hostile_random(h) % CW_REC_COMMS];

	__atomic_store_n(&rec->header->comms_used, (uint32_t)odd_word(h), __ATOMIC_RELAXED);
	__atomic_store_n(&c->nranks, (uint32_t)odd_word(h), __ATOMIC_RELAXED);
	__atomic_store_n(&c->coll_entered, c->coll_entered - 1, __ATOMIC_RELAXED); /* backwards */
	__atomic_store_n(&c->ring_ticket, odd_word(h), __ATOMIC_RELAXED);
	memset(c->name, 'A', sizeof(c->name)); /* no NUL */
	memset(c->last_error, 0x1b, sizeof(c->last_error));
	memset(rec->header->job_label, 'B', sizeof(rec->header->job_label));
}

static int register_record(struct hostile *h, const struct cw_test_record *rec)
{
	uint8_t hello[64];
	size_t len = hostile_hello(hello);
	int conn = hostile_connect(h);

	if (conn < 0)
		return -1;
	h->tried++;
	if (!hostile_send(conn, hello, len, &rec->fd, 1) ||
	    hostile_answer(conn, 4000) != ANSWER_WELCOME) {
		(void)close(conn);
		return -1;
	}
	h->welcomed++;
	return conn;
}

/* One process: a good record, which turns bad while it is read. */
static void lie(struct hostile *h)
{
	int64_t end_ns = cw_clock_now_ns(&cw_clock_system) + LIFE_NS;
	struct cw_test_record *rec = cw_test_record_new();
	int conn;

	work(rec);
	conn = register_record(h, rec);
	for (uint64_t i = 0; hostile_goes_on() && cw_clock_now_ns(&cw_clock_system) < end_ns; i++) {
		if (i % 64 == 0)
			spoil_counts(h, rec);
		spoil(h, rec);
	}
	if (conn >= 0)
		(void)close(conn);
	(void)cw_test_record_free(rec); /* always NULL */
}

/*
 * Processes come and go: each record claims another process, and its content freezes when
 * that ends.
 */
void hostile_records(struct hostile *h)
{
	struct hostile *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		abort();
	*shared = *h;
	while (hostile_goes_on()) {
		pid_t pid = fork();

		if (pid == 0) {
			shared->seed = (unsigned)hostile_random(shared);
			lie(shared);
			_exit(0);
		}
		while (pid > 0 && waitpid(pid, NULL, 0) < 0 && hostile_goes_on())
			;
		if (pid > 0 && !hostile_goes_on())
			(void)kill(pid, SIGKILL);
	}
	*h = *shared;
}
