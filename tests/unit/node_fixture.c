/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/node_fixture.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/record_layout.h"
#include "common/unixsock.h"
#include "daemon/procstat.h"
#include "proto/codec.h"
#include "proto/frame.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

#define DEADLINE_S 20
#define BURN_NS (100 * CW_NS_PER_MS)

static int64_t clock_offset_ns;

static int64_t fast_ns(void *user)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (t.tv_sec * CW_NS_PER_S + t.tv_nsec) * TEST_SPEED + clock_offset_ns;
}

static const struct cw_clock fast_clock = { .monotonic_ns = fast_ns, .wall_ns = fast_ns };

/* ---- the agent's side: a child process; exit code 99 = the test itself is broken ---- */

#define N_COMMS 2
#define N_RING 64
#define RECORD_BYTES                                                                               \
	(sizeof(struct cw_rec_header) + N_COMMS * sizeof(struct cw_rec_comm) +                     \
	 N_RING * sizeof(struct cw_rec_op))

struct fake {
	struct agent_options options;
	const char *path;
	int memfd, sock;
	struct cw_rec_header *header; /* of the mapping */
	struct cw_rec_comm *comm;     /* its first entry */
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
	h->beat_ns = (uint64_t)fast_ns(NULL);
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

/* Ops as the real agent writes them: slot, then counters. */
static void enter_op(struct fake *fake)
{
	struct cw_rec_comm *c = fake->comm;
	struct cw_rec_op *op = &c->ops[c->ring_ticket % CW_REC_COMM_OPS];

	*op = (struct cw_rec_op){
		.op_index = c->op_index + 1,
		.seq = c->coll_entered + 1,
		.enter_ns = (uint64_t)fast_ns(NULL),
		.count = 1000,
		.bytes = 4000,
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_FP32,
		.redop = CW_REDOP_SUM,
		.root_or_peer = CW_PEER_NONE,
		.progress_slot = CW_REC_NO_SLOT,
		.module = CW_REC_NO_SLOT,
		.comm_generation = 1,
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

	op->return_ns = (uint64_t)fast_ns(NULL);
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

static char answer_unasked(struct fake *fake, int fd)
{
	struct cw_message msg = { .type = CW_MSG_PYTHON_STACKS_REPLY,
				  .python_stacks_reply = { .id = 1, .text = "not mine" } };

	for (int i = 0; i < (fd >= 0 ? 50 : 1); i++)
		send_message(fake, &msg, fd);
	return 'k';
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

static void eat_memory(void)
{
	for (;;) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		need(p != MAP_FAILED);
	}
}

/* A real fault: the kernel sends the signal. */
static void fault(void)
{
	volatile char *p = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	*p = 1;
}

static void end_as(char command)
{
	/* Criterion's and a sanitizer's handlers are not a program's. */
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
	case 'q':
		return answer_unasked(fake, -1);
	case 'f':
		return answer_unasked(fake, fake->memfd);
	case 'm':
		return send_nonsense(fake);
	case 'b':
		return burn();
	}
	end_as(command);
	return '?';
}

static void agent_main(struct fake *fake, int in, int out)
{
	char c;

	make_record(fake);
	while (read(in, &c, 1) == 1) {
		c = obey(fake, c);
		need(write(out, &c, 1) == 1);
	}
	_exit(0);
}

/* ---- the test's side ---- */

struct agent agent_start(struct node_fixture *f, const struct agent_options *options)
{
	struct fake fake = { .options = *options, .path = f->path, .memfd = -1, .sock = -1 };
	struct cw_procstat st;
	struct agent a;
	int in[2], out[2], proc_fd;

	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	a.pid = options->fork ? options->fork() : fork();
	if (a.pid == 0) {
		close(in[1]);
		close(out[0]);
		agent_main(&fake, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	a.to = in[1];
	a.from = out[0];
	cr_assert_eq(fcntl(a.from, F_SETFL, O_NONBLOCK), 0);
	proc_fd = cw_proc_open(a.pid);
	cr_assert_eq(cw_procstat_read(proc_fd, &st), 0);
	a.start_ticks = st.start_ticks;
	close(proc_fd);
	return a;
}

struct answer {
	struct agent *agent;
	char c;
};

static bool has_answered(struct node_fixture *f, void *arg)
{
	struct answer *answer = arg;
	ssize_t n = read(answer->agent->from, &answer->c, 1);

	cr_assert(n == 1 || (n < 0 && errno == EAGAIN), "the agent died");
	return n == 1;
}

char agent_do(struct node_fixture *f, struct agent *a, char command)
{
	struct answer answer = { .agent = a };

	cr_assert_eq(write(a->to, &command, 1), 1);
	if (strchr("e01asg", command))
		return 'k';
	fixture_run_until(f, has_answered, &answer, "the agent's answer");
	return answer.c;
}

struct agent agent_register(struct node_fixture *f, const struct agent_options *options,
			    char expected)
{
	struct agent a = agent_start(f, options);

	cr_assert_eq(agent_do(f, &a, 'c'), expected);
	return a;
}

void agent_stop(struct agent *a)
{
	close(a->to);
	close(a->from);
	(void)kill(a->pid, SIGKILL); /* it may have ended */
	cr_assert_eq(waitpid(a->pid, NULL, 0), a->pid);
}

static void on_digest(const struct cw_msg_digest *digest, void *user)
{
	struct node_fixture *f = user;

	f->digests++;
	f->route = digest->route;
	snprintf(f->label, sizeof(f->label), "%s", digest->label);
	f->n_seen = 0;
	for (uint32_t i = 0; i < digest->n_ranks && i < MAX_SEEN; i++) {
		const struct cw_msg_rank *r = &digest->ranks[i];
		struct seen_rank *to = &f->seen[f->n_seen++];

		*to = (struct seen_rank){ .rank = *r };
		snprintf(to->command, sizeof(to->command), "%s", r->command);
		snprintf(to->cause, sizeof(to->cause), "%s", r->cause);
		if (r->n_members)
			to->member = r->members[0];
		if (r->n_members && r->members[0].pending) {
			to->pending = *r->members[0].pending;
			to->has_pending = true;
		}
	}
}

void fixture_start(struct node_fixture *f, uint32_t max_processes, uint32_t max_per_uid)
{
	struct cw_err err;

	*f = (struct node_fixture){ .base = event_base_new() };
	strcpy(f->dir, "/tmp/cw-node-XXXXXX");
	cr_assert(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/agent.sock", f->dir);
	f->config = (struct cw_node_config){
		.base = f->base,
		.clock = &fast_clock,
		.socket_path = f->path,
		.listen_fd = -1,
		.node_name = "node-a",
		.epoch = 1,
		.sample_ms = 200 / TEST_SPEED,
		.digest_ms = 1000 / TEST_SPEED,
		.max_processes = max_processes,
		.max_processes_per_uid = max_per_uid,
		.on_digest = on_digest,
		.user = f,
	};
	cr_assert_eq(cw_node_new(&f->config, &f->node, &err), 0);
}

void fixture_restart(struct node_fixture *f)
{
	struct cw_err err;

	cw_node_free(f->node);
	cr_assert_eq(cw_node_new(&f->config, &f->node, &err), 0);
}

void fixture_stop(struct node_fixture *f)
{
	cw_node_free(f->node);
	event_base_free(f->base);
	cr_assert_eq(rmdir(f->dir), 0, "the socket must be gone");
}

void fixture_skip_ns(int64_t ns)
{
	clock_offset_ns += ns;
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	cr_assert_fail("waited %d s for %s", DEADLINE_S, (const char *)arg);
}

void fixture_run_until(struct node_fixture *f, bool (*done)(struct node_fixture *, void *),
		       void *arg, const char *what)
{
	struct event *deadline = evtimer_new(f->base, on_deadline, (void *)(uintptr_t)what);
	struct timeval tv = { .tv_sec = DEADLINE_S };

	event_add(deadline, &tv);
	while (!done(f, arg))
		cr_assert_geq(event_base_loop(f->base, EVLOOP_ONCE), 0);
	event_free(deadline);
}

static bool digests_reach(struct node_fixture *f, void *arg)
{
	return f->digests >= *(unsigned *)arg;
}

void fixture_next_digest(struct node_fixture *f)
{
	unsigned wanted = f->digests + 2;

	fixture_run_until(f, digests_reach, &wanted, "a digest");
}

const struct seen_rank *fixture_seen(const struct node_fixture *f, const struct agent *a)
{
	for (unsigned i = 0; i < f->n_seen; i++)
		if (f->seen[i].rank.pid == a->pid && f->seen[i].rank.start_ticks == a->start_ticks)
			return &f->seen[i];
	return NULL;
}

struct cw_node_stats fixture_stats(const struct node_fixture *f)
{
	struct cw_node_stats stats;

	cw_node_stats(f->node, &stats);
	return stats;
}
