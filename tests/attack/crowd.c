/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: crowd SOCKET STATE UID JOBS RANKS train|hang|costly|heavy|fuse
 *
 * JOBS jobs of RANKS ranks each of one user: a process for each rank, with a record of its own. It
 * registers as agents do and reconnects as they do.
 *
 *	hang	the last rank of each job never enters the call in which the others wait
 *	fuse	the same, and above the stack of each rank lies a file whose pages never come
 *	costly	records with a table as long as there is room for; the ranks are stopped, go on and
 *		connect anew all the time
 *	heavy	the same ranks, with records as an agent might write them: full of calls, and
 *		changing all the time
 *
 * STATE: a file of struct slot, one for each rank, kept up to date. Until it is killed.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "model/op.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/node/mute_fuse.h"
#include "tests/support/record/record_writer.h"

/* As agent/link/link.c. */
#define RETRY_MS 1000
#define REFUSED_RETRY_MS 60000
#define ANSWER_MS 10000
#define BEAT_MS 1000
#define COSTLY_MS 300
#define COSTLY_REPLAYS 60000u
/* A job's communicator: another one for each user and job. */
#define COMM(uid, job) (((uint64_t)(uid) << 32) + 1 + (job))

struct slot {
	uint32_t is_up;
	uint32_t refused; /* answers */
};

struct rank {
	const char *path;
	struct slot *slot;
	struct cw_test_record *record;
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
	(void)close(fd);
	return map;
}

static void become(uid_t uid)
{
	if (geteuid() == 0)
		must(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0, "setuid");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user would clear it */
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static int64_t now_ns(void)
{
	return cw_clock_now_ns(&cw_clock_system);
}

static void make_record(struct rank *r, uid_t uid, unsigned job, unsigned rank, unsigned ranks,
			bool hangs)
{
	struct cw_test_record *rec = cw_test_record_new();
	uint64_t op;
	int comm;

	(void)snprintf(rec->header->job_label, sizeof(rec->header->job_label), "name:crowd-%u-%u",
		       (unsigned)uid, job);
	rec->header->rank_label = (int32_t)rank;
	rec->header->world_size_label = (int32_t)ranks;
	rec->now_ns = now_ns();
	comm = cw_test_record_comm(rec, COMM(uid, job), ranks, (int32_t)rank);
	op = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 4096);
	cw_test_record_return(rec, comm, op, 0);
	cw_test_record_progress(rec, comm, op, op);
	if (hangs && rank + 1 < ranks)
		(void)cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 4096);
	r->record = rec;
}

/*
 * A record of its own with few communicators and very many replays. Each replay stands for a graph
 * that no rank launches.
 */
static void make_costly(struct rank *r)
{
	struct cw_test_record *rec = r->record;
	struct cw_rec_section *s = rec->header->sections;
	size_t comms = sizeof(struct cw_rec_comm) * 8, at = sizeof(*rec->header);
	size_t bytes = at + comms + sizeof(struct cw_rec_replay) * COSTLY_REPLAYS;
	int fd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct cw_rec_replay *replays;
	char *map;

	must(fd >= 0 && ftruncate(fd, (off_t)bytes) == 0, "memfd");
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(map != MAP_FAILED &&
		     fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) == 0,
	     "seals");
	memcpy(map, rec->header, sizeof(*rec->header));
	memcpy(map + at, rec->comms, comms);
	rec->header = (struct cw_rec_header *)map;
	s = rec->header->sections;
	memset(s, 0, sizeof(rec->header->sections));
	s[0] = (struct cw_rec_section){ .type = CW_REC_SECTION_COMMS,
					.entry_bytes = sizeof(struct cw_rec_comm),
					.count = 8,
					.offset = at };
	s[1] = (struct cw_rec_section){ .type = CW_REC_SECTION_REPLAYS,
					.entry_bytes = sizeof(struct cw_rec_replay),
					.count = COSTLY_REPLAYS,
					.offset = at + comms };
	rec->header->total_bytes = bytes;
	rec->header->has = CW_REC_HAS_REPLAYS;
	replays = (struct cw_rec_replay *)(map + at + comms);
	for (unsigned i = 0; i < COSTLY_REPLAYS; i++)
		replays[i] = (struct cw_rec_replay){ .generation = 1, .comm_plus_1 = 1 };
	rec->fd = fd;
	rec->bytes = bytes;
	rec->ring = NULL;
}

/* All communicators have calls that have not returned. */
static void make_heavy(struct rank *r, uid_t uid)
{
	for (unsigned c = 1; c < CW_REC_COMMS; c++) {
		int comm = cw_test_record_comm(r->record, COMM(uid, 0x1000 + c), 2, 0);

		for (unsigned i = 0; i < CW_REC_COMM_OPS * 2; i++)
			(void)cw_test_record_collective(r->record, comm, CW_OP_ALL_REDUCE, 4096);
	}
}

/* As if the whole ring had been written since. */
static void turn_over(struct rank *r)
{
	struct cw_test_record *rec = r->record;

	if (!rec->ring)
		return;
	for (uint64_t i = 0; i < CW_REC_RING_OPS; i++)
		if (rec->ring[i].publish)
			rec->ring[i].publish += CW_REC_RING_OPS;
	rec->header->ring_ticket += CW_REC_RING_OPS;
}

static void make_hello(struct rank *r)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { .version_min = CW_WIRE_VERSION,
						   .version_max = CW_WIRE_VERSION,
						   .record_bytes = r->record->bytes } };
	uint8_t *bytes;
	size_t len;

	must(cw_message_encode(&msg, &bytes, &len) == 0 && len <= sizeof(r->hello), "hello");
	memcpy(r->hello, bytes, len);
	r->hello_len = len;
	free(bytes);
}

static int dial(const struct rank *r)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	must(fd >= 0 && strlen(r->path) < sizeof(addr.sun_path), "socket");
	memcpy(addr.sun_path, r->path, strlen(r->path) + 1);
	if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 &&
	    cw_unix_send_fd(fd, r->hello, r->hello_len, r->record->fd) == (ssize_t)r->hello_len)
		return fd;
	(void)close(fd);
	return -1;
}

static void beat(struct rank *r)
{
	__atomic_store_n(&r->record->header->beat_ns, (uint64_t)now_ns(), __ATOMIC_RELAXED);
}

/* The next message's type; CW_MSG_NONE when the connection ended, or nothing came in time. */
static unsigned next_message(struct rank *r, int fd, int64_t ms)
{
	int64_t until = now_ns() + ms * CW_NS_PER_MS;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct cw_message *msg = NULL;
	const uint8_t *payload;
	unsigned type = CW_MSG_NONE;
	size_t len, used;
	uint8_t buf[512];
	ssize_t n;

	while (poll(&p, 1, BEAT_MS) == 0) {
		beat(r);
		if (ms && now_ns() > until)
			return CW_MSG_NONE;
	}
	n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (n > 0 && cw_frame_parse(buf, (size_t)n, &payload, &len, &used) == 0 &&
	    cw_message_decode(payload, len, &msg) == 0)
		type = msg->type;
	(void)cw_message_free(msg); /* always NULL */
	return type;
}

static void wait_ms(struct rank *r, int64_t ms)
{
	int64_t until = now_ns() + ms * CW_NS_PER_MS;

	while (now_ns() < until) {
		int64_t left = (until - now_ns()) / CW_NS_PER_MS;

		beat(r);
		(void)poll(NULL, 0, left < BEAT_MS ? (int)left + 1 : BEAT_MS);
	}
}

/* One connection; how long to wait before the next. */
static int64_t connect_once(struct rank *r)
{
	int fd = dial(r);
	unsigned answer = fd < 0 ? CW_MSG_NONE : next_message(r, fd, ANSWER_MS);

	while (answer == CW_MSG_AGENT_WELCOME || answer == CW_MSG_PYTHON_STACKS_REQUEST) {
		__atomic_store_n(&r->slot->is_up, 1, __ATOMIC_RELEASE);
		answer = next_message(r, fd, 0);
	}
	__atomic_store_n(&r->slot->is_up, 0, __ATOMIC_RELEASE);
	if (fd >= 0)
		(void)close(fd);
	r->slot->refused += answer == CW_MSG_AGENT_REFUSED;
	return answer == CW_MSG_AGENT_REFUSED ? REFUSED_RETRY_MS : RETRY_MS;
}

static void be_rank(void *user)
{
	struct rank *r = user;

	make_hello(r);
	for (;;)
		wait_ms(r, connect_once(r));
}

/* Connects anew all the time, and is stopped and goes on in between. */
static void be_costly(struct rank *r)
{
	make_hello(r);
	for (;;) {
		int fd = dial(r);

		turn_over(r);
		if (fd >= 0 && next_message(r, fd, COSTLY_MS) == CW_MSG_AGENT_WELCOME)
			__atomic_store_n(&r->slot->is_up, 1, __ATOMIC_RELEASE);
		else
			r->slot->refused++;
		wait_ms(r, COSTLY_MS);
		if (fd >= 0)
			(void)close(fd);
	}
}

/* In a mount namespace of our own: no other process sees the mount, and it goes with us. */
static void mount_fuse(struct mute_fuse *fuse, const char *state)
{
	must(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0,
	     "mount namespace");
	(void)snprintf(fuse->dir, sizeof(fuse->dir), "%s.fuse", state);
	must(mute_fuse_mount(fuse), "FUSE");
}

static void stop_and_continue(const pid_t *pids, unsigned n)
{
	for (unsigned i = 0;; i++) {
		(void)kill(pids[i % n], SIGSTOP);
		(void)poll(NULL, 0, COSTLY_MS);
		(void)kill(pids[i % n], SIGCONT);
	}
}

int main(int argc, char **argv)
{
	unsigned uid, jobs, ranks;
	struct mute_fuse fuse = { 0 };
	bool hangs, is_costly, is_heavy;
	struct slot *slots;
	pid_t *pids;

	if (argc != 7 || (strcmp(argv[6], "train") != 0 && strcmp(argv[6], "hang") != 0 &&
			  strcmp(argv[6], "costly") != 0 && strcmp(argv[6], "heavy") != 0 &&
			  strcmp(argv[6], "fuse") != 0)) {
		fputs("usage: crowd SOCKET STATE UID JOBS RANKS train|hang|costly|heavy|fuse\n",
		      stderr);
		return 2;
	}
	uid = number(argv[3]);
	jobs = number(argv[4]);
	ranks = number(argv[5]);
	hangs = strcmp(argv[6], "train") != 0;
	is_costly = !strcmp(argv[6], "costly");
	is_heavy = !strcmp(argv[6], "heavy");
	pids = calloc(jobs * ranks + 1, sizeof(*pids));
	must(pids != NULL, "memory");
	if (!strcmp(argv[6], "fuse"))
		mount_fuse(&fuse, argv[2]);
	slots = map_state(argv[2], jobs * ranks);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < jobs * ranks; i++) {
		struct rank r = { .path = argv[1], .slot = &slots[i] };
		pid_t pid = fork();

		must(pid >= 0, "fork");
		pids[i] = pid;
		if (pid > 0)
			continue;
		become(uid);
		make_record(&r, uid, i / ranks, i % ranks, ranks, hangs);
		if (is_costly)
			make_costly(&r);
		if (is_heavy)
			make_heavy(&r, uid);
		if (is_costly || is_heavy)
			be_costly(&r);
		else if (fuse.server)
			must(mute_fuse_run_below(fuse.file, i % MUTE_FUSE_PARTS, be_rank, &r),
			     "a stack below a file");
		else
			be_rank(&r);
	}
	if (is_costly || is_heavy)
		stop_and_continue(pids, jobs * ranks);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 1;
}
