/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: lying_agents SOCKET STATE UID
 *
 * The ranks of one job, "name:lies", that hangs: a process for each lie, and its record claims a
 * Python interpreter. To a request for stacks it answers with lengths that do not fit the bytes
 * that follow. Rank 0 is honest: it is inside "honest.py", and the others wait for it. All
 * reconnect a second after a connection ends.
 *
 * STATE: a file of struct slot, one for each rank, kept up to date. Until it is killed.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "model/op.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "tests/support/record/record_writer.h"

#define ANSWER_MS 60000
#define RETRY_MS 1000
#define MANY 4000
#define LARGE (CW_FRAME_MAX_BYTES - 64)
#define TRACEBACK                                                                                  \
	"Thread 0x00007f0000000001 (most recent call first):\n"                                    \
	"  File \"honest.py\", line 7 in read_sample\n"

struct slot {
	uint32_t up, asked, ended;
};

struct rank {
	const char *path;
	struct slot *slot;
	struct cw_test_record *rec;
	unsigned number;
	int conn;
};

struct bytes {
	uint8_t *at;
	size_t n, room;
};

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(1);
}

/* ---- bytes of a message, with lengths of choice ---- */

static void put(struct bytes *b, const void *data, size_t n)
{
	if (b->n + n > b->room) {
		b->room = 2 * (b->n + n);
		b->at = realloc(b->at, b->room);
		must(b->at != NULL, "realloc");
	}
	memcpy(b->at + b->n, data, n);
	b->n += n;
}

static void put_varint(struct bytes *b, uint64_t v)
{
	uint8_t byte;

	for (; v > 127; v >>= 7) {
		byte = (uint8_t)(v | 128);
		put(b, &byte, 1);
	}
	byte = (uint8_t)v;
	put(b, &byte, 1);
}

struct lie {
	const char *text; /* NULL: LARGE bytes of 'x' */
	size_t times;     /* of the text */
	uint64_t claimed; /* length of the text; 0 = right */
	uint64_t message; /* of the message; 0 = right */
	uint32_t frame;   /* of the frame; 0 = right */
	uint64_t status, id_off;
	size_t cut;  /* so many bytes of the end do not come */
	bool closes; /* after that */
	unsigned answers;
};

static const struct lie lies[] = {
	{ .text = TRACEBACK }, /* none */
	{ .text = TRACEBACK, .claimed = UINT64_C(1) << 62 },
	{ .text = TRACEBACK, .claimed = UINT64_MAX },
	{ .text = TRACEBACK, .claimed = INT64_MAX },
	{ .text = TRACEBACK, .claimed = (UINT64_C(1) << 32) + 3 },
	{ .text = TRACEBACK, .claimed = 5 },
	{ .text = TRACEBACK, .claimed = 5000 },
	{ .text = TRACEBACK, .message = UINT64_C(1) << 62 },
	{ .text = TRACEBACK, .message = UINT64_MAX },
	{ .text = TRACEBACK, .message = 9 },
	{ .text = TRACEBACK, .message = 900000 },
	{ .text = TRACEBACK, .frame = UINT32_MAX },
	{ .text = TRACEBACK, .frame = 0x80000000 },
	{ .text = TRACEBACK, .frame = CW_FRAME_MAX_BYTES + 1 },
	{ .text = TRACEBACK, .frame = CW_FRAME_MAX_BYTES },
	{ .text = TRACEBACK, .frame = 1 },
	{ .text = TRACEBACK, .frame = 30 },
	{ .text = TRACEBACK, .cut = 20 },
	{ .text = TRACEBACK, .cut = 20, .closes = true },
	{ .text = TRACEBACK, .status = UINT64_MAX },
	{ .text = TRACEBACK, .id_off = 1 },
	{ .text = TRACEBACK, .id_off = UINT64_MAX },
	{ .text = TRACEBACK, .answers = 1000 },
	{ .text = NULL },
	{ .text = NULL, .cut = LARGE / 2 },
	{ .text = NULL, .answers = 100 },
	{ .text = "Thread 0x1 (most recent call first):\n", .times = MANY },
	{ .text = TRACEBACK, .times = MANY },
	{ .text = "\n", .times = 50 * MANY },
	{ .text = "  File \"", .times = MANY },
	{ .text = "Thread 0x", .times = MANY },
	{ .text = "", .times = 1 },
};
#define N_LIES (sizeof(lies) / sizeof(lies[0]))

static struct bytes make_answer(const struct lie *lie, uint64_t id)
{
	struct bytes text = { 0 }, inner = { 0 }, payload = { 0 }, frame = { 0 };
	uint32_t claimed;

	for (size_t i = 0; lie->text && i < (lie->times ? lie->times : 1); i++)
		put(&text, lie->text, strlen(lie->text));
	for (size_t i = 0; !lie->text && i < LARGE; i++)
		put(&text, "x", 1);
	put(&inner, "\x08", 1);
	put_varint(&inner, id + lie->id_off);
	put(&inner, "\x10", 1);
	put_varint(&inner, lie->status);
	put(&inner, "\x1a", 1);
	put_varint(&inner, lie->claimed ? lie->claimed : text.n);
	put(&inner, text.at ? text.at : (uint8_t *)"", text.n);
	put(&payload, "\x08\x01\x72", 3); /* version 1; PythonStacksReply */
	put_varint(&payload, lie->message ? lie->message : inner.n);
	put(&payload, inner.at, inner.n);
	claimed = htonl(lie->frame ? lie->frame : (uint32_t)payload.n);
	put(&frame, &claimed, sizeof(claimed));
	put(&frame, payload.at, payload.n);
	frame.n -= lie->cut;
	free(text.at);
	free(inner.at);
	free(payload.at);
	return frame;
}

/* ---- a rank ---- */

static void beat(struct rank *r)
{
	__atomic_store_n(&r->rec->header->beat_ns, (uint64_t)cw_clock_now_ns(&cw_clock_system),
			 __ATOMIC_RELAXED);
}

static struct cw_message *next_message(struct rank *r)
{
	struct pollfd p = { .fd = r->conn, .events = POLLIN };
	struct cw_message *msg = NULL;
	const uint8_t *payload;
	size_t len, used;
	uint8_t buf[512];
	ssize_t n;

	do
		beat(r);
	while (poll(&p, 1, RETRY_MS) == 0);
	n = recv(r->conn, buf, sizeof(buf), MSG_DONTWAIT); /* short ones, one at a time: whole */
	if (n > 0 && cw_frame_parse(buf, (size_t)n, &payload, &len, &used) == 0)
		(void)cw_message_decode(payload, len, &msg); /* NULL: nothing that we know */
	return msg;
}

static void answer(struct rank *r, uint64_t id)
{
	const struct lie *lie = &lies[r->number];
	struct bytes b = make_answer(lie, id);

	for (unsigned i = 0; i < (lie->answers ? lie->answers : 1); i++) {
		size_t done = 0;

		while (done < b.n) {
			ssize_t n = send(r->conn, b.at + done, b.n - done, MSG_NOSIGNAL);

			if (n <= 0)
				break; /* it has hung up */
			done += (size_t)n;
		}
	}
	free(b.at);
	if (lie->closes)
		(void)shutdown(r->conn, SHUT_RDWR); /* or it has gone */
}

static void connect_once(struct rank *r)
{
	struct cw_message hello = { .type = CW_MSG_AGENT_HELLO,
				    .agent_hello = { .version_min = CW_WIRE_VERSION,
						     .version_max = CW_WIRE_VERSION,
						     .record_bytes = r->rec->bytes } };
	struct cw_message *msg;
	uint8_t *bytes;
	size_t len;

	r->conn = cw_unix_connect(r->path, ANSWER_MS);
	if (r->conn < 0)
		return;
	must(cw_message_encode(&hello, &bytes, &len) == 0, "hello");
	(void)cw_unix_send_fd(r->conn, bytes, len, r->rec->fd); /* gone: then it ends here */
	free(bytes);
	while ((msg = next_message(r))) {
		if (msg->type == CW_MSG_AGENT_WELCOME)
			r->slot->up = 1;
		if (msg->type == CW_MSG_PYTHON_STACKS_REQUEST) {
			r->slot->asked++;
			answer(r, msg->python_stacks_request.id);
		}
		(void)cw_message_free(msg); /* always NULL */
	}
	r->slot->up = 0;
	r->slot->ended++;
	(void)close(r->conn);
}

static void be_rank(struct rank *r)
{
	struct cw_rec_header *h;
	uint64_t op;
	int comm;

	r->rec = cw_test_record_new();
	h = r->rec->header;
	(void)snprintf(h->job_label, sizeof(h->job_label), "name:lies");
	h->rank_label = (int32_t)r->number;
	h->world_size_label = (int32_t)N_LIES;
	h->has |= CW_REC_HAS_PYTHON;
	r->rec->now_ns = cw_clock_now_ns(&cw_clock_system);
	comm = cw_test_record_comm(r->rec, 4711, N_LIES, (int32_t)r->number);
	op = cw_test_record_collective(r->rec, comm, CW_OP_ALL_REDUCE, 4096);
	cw_test_record_return(r->rec, comm, op, 0);
	cw_test_record_progress(r->rec, comm, op, op);
	if (r->number > 0)
		(void)cw_test_record_collective(r->rec, comm, CW_OP_ALL_REDUCE, 4096);
	for (;;) {
		connect_once(r);
		for (int i = 0; i < 5; i++) {
			beat(r);
			(void)poll(NULL, 0, RETRY_MS / 5);
		}
	}
}

static struct slot *map_state(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	void *map;

	must(fd >= 0 && ftruncate(fd, (off_t)(N_LIES * sizeof(struct slot))) == 0, path);
	map = mmap(NULL, N_LIES * sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(map != MAP_FAILED, path);
	(void)close(fd);
	return map;
}

int main(int argc, char **argv)
{
	struct slot *slots;
	uid_t uid;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: lying_agents SOCKET STATE UID\n");
		return 2;
	}
	uid = (uid_t)strtoul(argv[3], NULL, 10);
	slots = map_state(argv[2]);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < N_LIES; i++) {
		struct rank r = { .path = argv[1], .slot = &slots[i], .number = i };
		pid_t pid = fork();

		must(pid >= 0, "fork");
		if (pid > 0)
			continue;
		must(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0, "setuid");
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)prctl(PR_SET_DUMPABLE, 1);
		be_rank(&r);
	}
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 1;
}
