/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: odd_records SOCKET UID
 *
 * Registers flight records that lie about sizes. For each, a process of its own maps the file it
 * sends. The files have odd lengths with a good record's beginning, all sets of seals, or headers
 * and section tables with numbers that do not fit. Prints for each "NAME good|bad
 * welcome|refused|closed|silent", then "done". A process that the daemon accepts works on until it
 * is killed, with a rank's beat.
 */
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
#define NEEDED (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE)
#define MAX_BYTES (2ull * CW_RECORD_MAX_BYTES)

struct odd {
	char name[64];
	bool is_good;
	uint64_t bytes; /* of the file */
	int seals;
	int field; /* of the header, see set_field(); -1 = none */
	uint64_t value;
	struct cw_test_record *rec;
};

static const char *socket_path;
static uid_t uid;
static unsigned n_started;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	_exit(1);
}

/* ---- a record that lies ---- */

static void fill(struct cw_test_record *rec)
{
	rec->now_ns = cw_clock_now_ns(&cw_clock_system);
	(void)snprintf(rec->header->job_label, sizeof(rec->header->job_label), "name:odd");
	for (unsigned c = 0; c < 4; c++) {
		int comm = cw_test_record_comm(rec, 77 + c, 8, 0);

		for (int i = 0; i < 200; i++) {
			uint64_t op = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 64);

			cw_test_record_return(rec, comm, op, 0);
			cw_test_record_progress(rec, comm, op, op);
		}
	}
}

enum { TOTAL, HEADER, VERSION, READABLE, STATE, COMMS_USED, TICKET, OFFSET, ENTRY, COUNT, TYPE };

/* 16 sections for each of the last kinds. */
static void set_field(struct cw_rec_header *h, int field, uint64_t value)
{
	struct cw_rec_section *s = &h->sections[field / 16];

	switch (field % 16) {
	case TOTAL:
		h->total_bytes = value;
		break;
	case HEADER:
		h->header_bytes = (uint32_t)value;
		break;
	case VERSION:
		h->version = (uint32_t)value;
		break;
	case READABLE:
		h->readable_from = (uint32_t)value;
		break;
	case STATE:
		h->state = (uint32_t)value;
		break;
	case COMMS_USED:
		h->comms_used = (uint32_t)value;
		break;
	case TICKET:
		h->ring_ticket = h->ops_total = value;
		break;
	case OFFSET:
		s->offset = value;
		break;
	case ENTRY:
		s->entry_bytes = (uint32_t)value;
		break;
	case COUNT:
		s->count = (uint32_t)value;
		break;
	case TYPE:
		s->type = (uint32_t)value;
		break;
	}
}

/* The file, mapped as a rank's; -1: this system has no such file. */
static int make(struct odd *odd)
{
	size_t whole = odd->rec->bytes, mapped = odd->bytes < whole ? odd->bytes : whole;
	int fd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	void *map;

	must(fd >= 0, "memfd");
	if (ftruncate(fd, (off_t)odd->bytes) < 0)
		return -1;
	if (odd->field >= 0)
		set_field(odd->rec->header, odd->field, odd->value);
	if (mapped > 0) {
		map = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(map != MAP_FAILED, "map");
		memcpy(map, odd->rec->header, mapped);
		odd->rec->header = map;
	}
	return odd->seals == 0 || fcntl(fd, F_ADD_SEALS, odd->seals) == 0 ? fd : -1;
}

/* ---- the daemon's answers ---- */

static const char *answer_of(int conn)
{
	struct pollfd p = { .fd = conn, .events = POLLIN };
	struct cw_message *msg = NULL;
	const char *said = "closed";
	const uint8_t *payload;
	size_t len, used;
	uint8_t buf[512];
	ssize_t n;

	if (poll(&p, 1, ANSWER_MS) != 1)
		return "silent";
	n = recv(conn, buf, sizeof(buf), 0); /* sent at once: whole */
	if (n > 0 && cw_frame_parse(buf, (size_t)n, &payload, &len, &used) == 0 &&
	    cw_message_decode(payload, len, &msg) == 0)
		said = msg->type == CW_MSG_AGENT_WELCOME ? "welcome" : "refused";
	(void)cw_message_free(msg); /* always NULL */
	return said;
}

static void play(struct odd *odd)
{
	struct cw_message hello = { .type = CW_MSG_AGENT_HELLO,
				    .agent_hello = { .version_min = CW_WIRE_VERSION,
						     .version_max = CW_WIRE_VERSION } };
	const char *said;
	uint8_t *bytes;
	size_t len;
	int fd, conn;

	odd->rec = cw_test_record_new();
	fill(odd->rec);
	if (odd->bytes == UINT64_MAX)
		odd->bytes = odd->rec->bytes;
	hello.agent_hello.record_bytes = odd->bytes < MAX_BYTES ? odd->bytes : MAX_BYTES;
	fd = make(odd);
	if (fd < 0) {
		printf("%s %s impossible\n", odd->name, odd->is_good ? "good" : "bad");
		_exit(fflush(stdout) != 0);
	}
	must(cw_message_encode(&hello, &bytes, &len) == 0, "hello");
	conn = cw_unix_connect(socket_path, ANSWER_MS);
	must(conn >= 0 && cw_unix_send_fd(conn, bytes, len, fd) == (ssize_t)len, "connect");
	said = answer_of(conn);
	printf("%s %s %s\n", odd->name, odd->is_good ? "good" : "bad", said);
	must(fflush(stdout) == 0, "stdout");
	for (uint64_t i = 0; strcmp(said, "welcome") == 0; i++) {
		int64_t now = cw_clock_now_ns(&cw_clock_system);

		__atomic_store_n(&odd->rec->header->beat_ns, (uint64_t)now, __ATOMIC_RELAXED);
		(void)poll(NULL, 0, 200);
	}
	_exit(0);
}

static void start(struct odd odd)
{
	pid_t pid = fork();

	must(pid >= 0, "fork");
	n_started++;
	if (pid)
		return;
	must(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0, "setuid");
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)prctl(PR_SET_DUMPABLE, 1);
	play(&odd);
}

/* ---- which ---- */

static void odd_size(uint64_t bytes, bool is_good)
{
	struct odd odd = { .is_good = is_good, .bytes = bytes, .seals = NEEDED, .field = -1 };

	(void)snprintf(odd.name, sizeof(odd.name), "size-%llu", (unsigned long long)bytes);
	start(odd);
}

static void odd_seals(void)
{
	static const int kinds[] = { F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL };

	for (unsigned set = 0; set < 16; set++) {
		struct odd odd = { .bytes = UINT64_MAX, .field = -1 };

		for (unsigned i = 0; i < 4; i++)
			odd.seals |= set & 1u << i ? kinds[i] : 0;
		odd.is_good = (odd.seals & NEEDED) == NEEDED;
		(void)snprintf(odd.name, sizeof(odd.name), "seals-%x", odd.seals);
		start(odd);
	}
}

static void odd_field(const char *name, int field, uint64_t value, bool is_good)
{
	struct odd odd = { .is_good = is_good,
			   .bytes = UINT64_MAX,
			   .seals = NEEDED,
			   .field = field,
			   .value = value };

	(void)snprintf(odd.name, sizeof(odd.name), "%s-%d-%llx", name, field / 16,
		       (unsigned long long)value);
	start(odd);
}

static void odd_headers(size_t whole)
{
	static const uint64_t big[] = { UINT64_C(1) << 62, INT64_MAX, UINT64_MAX, UINT64_MAX - 63,
					UINT64_MAX - 4095 };

	for (unsigned i = 0; i < 5; i++)
		odd_field("total", TOTAL, big[i], false);
	odd_field("total", TOTAL, 0, false);
	odd_field("total", TOTAL, whole + 1, false);
	odd_field("total", TOTAL, whole - 1, true); /* nothing lies in its last page */
	odd_field("header", HEADER, 0, false);
	odd_field("header", HEADER, sizeof(struct cw_rec_header) - 1, false);
	odd_field("header", HEADER, UINT32_MAX, false);
	odd_field("version", VERSION, 0, false);
	odd_field("state", STATE, 0, false);
	odd_field("comms", COMMS_USED, UINT32_MAX, false);
	/* Read again and again, and believed as far as it goes. */
	odd_field("ticket", TICKET, UINT64_MAX, true);
	odd_field("ticket", TICKET, UINT64_C(1) << 62, true);
}

static void odd_sections(size_t whole)
{
	for (int s = 0; s < 12; s++) {
		odd_field("offset", 16 * s + OFFSET, 0, false);
		odd_field("offset", 16 * s + OFFSET, whole, false);
		odd_field("offset", 16 * s + OFFSET, UINT64_MAX - 63, false);
		odd_field("offset", 16 * s + OFFSET, UINT64_C(1) << 62, false);
		odd_field("entry", 16 * s + ENTRY, UINT32_MAX, false);
		odd_field("count", 16 * s + COUNT, UINT32_MAX, false);
		/* Then it has no such section, or a short one; none does without communicators. */
		odd_field("entry", 16 * s + ENTRY, 0, s > 0);
		odd_field("entry", 16 * s + ENTRY, 1, s > 0);
		odd_field("count", 16 * s + COUNT, 0, s > 0);
		odd_field("count", 16 * s + COUNT, 1, s > 0);
		odd_field("type", 16 * s + TYPE, UINT32_MAX, s > 0);
		odd_field("type", 16 * s + TYPE, 0, s > 0);
	}
}

int main(int argc, char **argv)
{
	struct cw_test_record *rec = cw_test_record_new();
	size_t whole = rec->bytes;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: odd_records SOCKET UID\n");
		return 2;
	}
	(void)cw_test_record_free(rec); /* always NULL */
	socket_path = argv[1];
	uid = (uid_t)strtoul(argv[2], NULL, 10);
	odd_size(0, false);
	odd_size(1, false);
	odd_size(sizeof(struct cw_rec_header) - 1, false);
	odd_size(sizeof(struct cw_rec_header), false);
	odd_size(sizeof(struct cw_rec_header) + 1, false);
	odd_size(whole - 1, false);
	odd_size(whole, true);
	odd_size(whole + 1, true);
	odd_size(MAX_BYTES, true);
	odd_size(MAX_BYTES + 1, false);
	odd_size(UINT64_C(1) << 40, false);
	odd_size(UINT64_C(1) << 62, false);
	odd_size(INT64_MAX, false);
	odd_seals();
	odd_headers(whole);
	odd_sections(whole);
	printf("started %u\n", n_started);
	must(fflush(stdout) == 0, "stdout");
	while (wait(NULL) > 0)
		;
	return 0;
}
