/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/agent/fake_agent.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/unixsock.h"
#include "proto/codec.h"
#include "record/record_layout.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define BURN_NS (100 * CW_NS_PER_MS)

#define N_COMMS 2
#define N_RING 64
#define RECORD_BYTES                                                                               \
	(sizeof(struct cw_rec_header) + N_COMMS * sizeof(struct cw_rec_comm) +                     \
	 N_RING * sizeof(struct cw_rec_op))

struct fake {
	struct agent_options options;
	const char *path; /* path of the daemon's socket */
	const struct cw_clock *clock;
	int memfd, sock;
	struct cw_rec_header *header; /* header of the mapped record */
	struct cw_rec_comm *comm;     /* first communicator of the record */
};

static void need(bool ok)
{
	if (!ok)
		_exit(99);
}

static void fill_record(struct fake *fake)
{
	struct cw_rec_header *h = fake->header;
	struct cw_rec_comm *c = fake->comm;

	h->magic = CW_RECORD_MAGIC;
	h->version = CW_RECORD_VERSION;
	if (fake->options.flaw == AGENT_NEWER_RECORD || fake->options.flaw == AGENT_NEXT_VERSION)
		h->version++;
	if (fake->options.flaw == AGENT_NEXT_VERSION)
		h->readable_from = CW_RECORD_VERSION;
	h->header_bytes = sizeof(*h);
	h->total_bytes = RECORD_BYTES;
	h->clock = CW_REC_CLOCK_MONOTONIC;
	h->has = CW_REC_HAS_PYTHON;
	h->rank_label = fake->options.rank;
	h->world_size_label = 8;
	h->local_rank_label = -1;
	h->beat_ns = (uint64_t)cw_clock_now_ns(fake->clock);
	h->comms_used = 1;
	strcpy(h->rank_label_source, "RANK");
	snprintf(h->job_label, sizeof(h->job_label), "%s", fake->options.job);
	h->sections[0] = (struct cw_rec_section){ .type = CW_REC_SECTION_COMMS,
						  .entry_bytes = sizeof(*c),
						  .count = N_COMMS,
						  .offset = sizeof(*h) };
	h->sections[1] = (struct cw_rec_section){ .type = CW_REC_SECTION_RING,
						  .entry_bytes = sizeof(struct cw_rec_op),
						  .count = N_RING,
						  .offset = sizeof(*h) + N_COMMS * sizeof(*c) };
	c->comm_id = fake->options.comm_id;
	c->generation = 1;
	c->state = CW_COMM_READY;
	c->nranks = 8;
	c->comm_rank = fake->options.rank;
	c->device = 5;
	strcpy(c->name, "tp_group");
	h->state = 1;
}

static void make_record(struct fake *fake)
{
	char *map;

	if (fake->memfd >= 0)
		close(fake->memfd);
	fake->memfd = memfd_create(CW_RECORD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	need(fake->memfd >= 0 && ftruncate(fake->memfd, RECORD_BYTES) == 0);
	map = mmap(NULL, RECORD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fake->memfd, 0);
	need(map != MAP_FAILED);
	fake->header = (struct cw_rec_header *)map;
	fake->comm = (struct cw_rec_comm *)(map + sizeof(*fake->header));
	fill_record(fake);
	if (fake->options.flaw != AGENT_UNSEALED)
		need(fcntl(fake->memfd, F_ADD_SEALS,
			   F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
	if (fake->options.flaw == AGENT_NOT_MAPPED)
		need(munmap(map, RECORD_BYTES) == 0);
}

/* Writes an op as the real agent does: first the slot, then the counters. */
static void enter_op(struct fake *fake)
{
	struct cw_rec_comm *c = fake->comm;
	struct cw_rec_op *op = &c->ops[c->ring_ticket % CW_REC_COMM_OPS];

	*op = (struct cw_rec_op){
		.op_index = c->op_index + 1,
		.seq = c->coll_entered + 1,
		.enter_ns = (uint64_t)cw_clock_now_ns(fake->clock),
		.count = 1000,
		.bytes = 4000,
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_FP32,
		.redop = CW_REDOP_SUM,
		.root_or_peer = CW_PEER_NONE,
		.progress_slot = CW_REC_NO_SLOT,
		.module = CW_REC_NO_SLOT,
		.comm_generation = 1,
		.tid = (uint32_t)getpid(),
	};
	__atomic_store_n(&op->publish, c->ring_ticket + 1, __ATOMIC_RELEASE);
	c->ring_ticket++;
	c->op_index++;
	c->coll_entered++;
}

static void return_op(struct fake *fake)
{
	struct cw_rec_comm *c = fake->comm;
	struct cw_rec_op *op = &c->ops[(c->ring_ticket - 1) % CW_REC_COMM_OPS];

	op->return_ns = (uint64_t)cw_clock_now_ns(fake->clock);
	op->flags |= CW_OPF_RETURNED;
	c->op_returned++;
	c->coll_returned++;
	c->hash += 12345;
}

static void send_message(struct fake *fake, const struct cw_message *msg, int fd)
{
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t len;

	need(cw_message_encode(msg, &bytes, &len) == 0);
	(void)cw_unix_send_fd(fake->sock, bytes, len, fd); /* the daemon may have hung up */
}

/* Reads one frame; NULL = the daemon hung up. */
static struct cw_message *receive(struct fake *fake)
{
	struct cw_message *msg;
	uint8_t buf[4096];
	uint32_t len;

	if (recv(fake->sock, &len, sizeof(len), MSG_WAITALL) != sizeof(len))
		return NULL;
	len = __builtin_bswap32(len);
	need(len <= sizeof(buf));
	if (recv(fake->sock, buf, len, MSG_WAITALL) != (ssize_t)len)
		return NULL;
	need(cw_message_decode(buf, len, &msg) == 0);
	return msg;
}

static void say_hello(struct fake *fake)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { CW_WIRE_VERSION_MIN, CW_WIRE_VERSION,
						   RECORD_BYTES } };
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 1, 2, 3 };
	static const uint8_t garbage[] = { 0, 0, 0, 5, 0xff, 0xee, 0xdd, 0xcc, 0xbb };
	int fds[2];

	switch (fake->options.flaw) {
	case AGENT_NO_FD:
		send_message(fake, &msg, -1);
		return;
	case AGENT_NO_RECORD:
		need(pipe(fds) == 0);
		send_message(fake, &msg, fds[0]);
		return;
	case AGENT_TOO_NEW:
		msg.agent_hello.version_min = msg.agent_hello.version_max = 77;
		break;
	case AGENT_NEXT_VERSION:
		msg.agent_hello.version_max++;
		break;
	case AGENT_GARBAGE:
		need(send(fake->sock, garbage, sizeof(garbage), MSG_NOSIGNAL) > 0);
		return;
	case AGENT_HUGE_FRAME:
		need(send(fake->sock, huge, sizeof(huge), MSG_NOSIGNAL) > 0);
		return;
	case AGENT_WRONG_FIRST:
		msg = (struct cw_message){ .type = CW_MSG_PYTHON_STACKS_REQUEST };
		break;
	default:
		break;
	}
	send_message(fake, &msg, fake->memfd);
}

static char connect_to_daemon(struct fake *fake)
{
	struct cw_message *reply;
	char answer;

	if (fake->sock >= 0)
		close(fake->sock);
	fake->sock = cw_unix_connect(fake->path, 5000);
	need(fake->sock >= 0);
	say_hello(fake);
	reply = receive(fake);
	if (!reply)
		return 'X';
	answer = reply->type == CW_MSG_AGENT_WELCOME ? 'W' : 'R';
	cw_message_free(reply);
	return answer;
}

static char answer_python(struct fake *fake)
{
	struct cw_message *request = receive(fake);
	char text[64];

	need(request && request->type == CW_MSG_PYTHON_STACKS_REQUEST);
	snprintf(text, sizeof(text), "stacks of %d", (int)getpid());
	send_message(fake,
		     &(struct cw_message){
			     .type = CW_MSG_PYTHON_STACKS_REPLY,
			     .python_stacks_reply = { .id = request->python_stacks_request.id,
						      .status = CW_PYTHON_OK,
						      .text = text } },
		     -1);
	cw_message_free(request);
	return 'k';
}

#define LONG_BYTES (1u << 20)
#define LONG_BEGIN (600u << 10)

static char send_bytes(struct fake *fake, const char *bytes, size_t n)
{
	while (n > 0) {
		ssize_t sent = send(fake->sock, bytes, n, MSG_NOSIGNAL);

		if (sent <= 0)
			return 'X';
		bytes += sent;
		n -= (size_t)sent;
	}
	return 'k';
}

static char begin_long_answer(struct fake *fake)
{
	static char bytes[4 + LONG_BEGIN] = { 0, 0x10, 0, 0 }; /* 1 MiB, big endian */
	struct cw_message *request = receive(fake);

	need(request && request->type == CW_MSG_PYTHON_STACKS_REQUEST);
	cw_message_free(request);
	return send_bytes(fake, bytes, sizeof(bytes));
}

static char end_long_answer(struct fake *fake)
{
	static char bytes[LONG_BYTES - LONG_BEGIN];

	return send_bytes(fake, bytes, sizeof(bytes));
}

static char answer_unasked(struct fake *fake, int fd)
{
	struct cw_message msg = { .type = CW_MSG_PYTHON_STACKS_REPLY,
				  .python_stacks_reply = { .id = 1, .text = "not mine" } };

	for (int i = 0; i < (fd >= 0 ? 50 : 1); i++)
		send_message(fake, &msg, fd);
	return 'k';
}

static char answer_unasked_until_the_end(struct fake *fake)
{
	struct cw_message msg = { .type = CW_MSG_PYTHON_STACKS_REPLY,
				  .python_stacks_reply = { .id = 1, .text = "not mine" } };
	struct cw_message *reply;

	for (int i = 0; i < 200; i++)
		send_message(fake, &msg, -1);
	reply = receive(fake);
	return reply ? 'k' : 'X';
}

static char send_nonsense(struct fake *fake)
{
	struct cw_message msg = { .type = CW_MSG_AGENT_HELLO,
				  .agent_hello = { CW_WIRE_VERSION_MIN, CW_WIRE_VERSION, 0 } };
	struct cw_message *reply;

	for (int i = 0; i < 200; i++)
		send_message(fake, &msg, -1);
	reply = receive(fake);
	return reply ? 'k' : 'X';
}

static char burn(void)
{
	struct timespec t0, t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t0);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while ((t.tv_sec - t0.tv_sec) * CW_NS_PER_S + t.tv_nsec - t0.tv_nsec < BURN_NS);
	return 'k';
}

/* Changes the user as sudo does. The caller may run as any user. */
static char become(uid_t uid)
{
	need(seteuid(0) == 0 && setresuid(uid, uid, uid) == 0);
	return 'k';
}

static void eat_memory(void)
{
	for (;;) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		need(p != MAP_FAILED);
	}
}

/* Causes a real fault, so that the kernel sends the signal. */
static void fault(void)
{
	volatile char *p = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*p = 1;
}

static void end_as(char command)
{
	/* A rank's program does not have the signal handlers of Criterion or a sanitizer. */
	(void)signal(SIGSEGV, SIG_DFL);
	(void)signal(SIGABRT, SIG_DFL);
	switch (command) {
	case 'e':
		_exit(3);
	case '0':
		_exit(0);
	case '1':
		_exit(1);
	case 'a':
		abort();
	case 's':
		fault();
		break;
	case 'g':
		eat_memory();
		break;
	}
}

static char obey(struct fake *fake, char command)
{
	switch (command) {
	case 'c':
		return connect_to_daemon(fake);
	case 'd':
		close(fake->sock);
		fake->sock = -1;
		return 'k';
	case 'n':
		make_record(fake);
		return 'k';
	case 'o':
		enter_op(fake);
		return 'k';
	case 'r':
		return_op(fake);
		return 'k';
	case 'p':
		return answer_python(fake);
	case 'l':
		return begin_long_answer(fake);
	case 'L':
		return end_long_answer(fake);
	case 'z':
		return answer_unasked_until_the_end(fake);
	case 'q':
		return answer_unasked(fake, -1);
	case 'f':
		return answer_unasked(fake, fake->memfd);
	case 'm':
		return send_nonsense(fake);
	case 'b':
		return burn();
	case 'u':
		return become(fake->options.then_uid);
	}
	end_as(command);
	return '?';
}

void fake_agent_main(const struct agent_options *options, const char *socket_path,
		     const struct cw_clock *clock, int in, int out)
{
	struct fake fake = {
		.options = *options, .path = socket_path, .clock = clock, .memfd = -1, .sock = -1
	};
	char c;

	make_record(&fake);
	while (read(in, &c, 1) == 1) {
		c = obey(&fake, c);
		need(write(out, &c, 1) == 1);
	}
	_exit(0);
}
