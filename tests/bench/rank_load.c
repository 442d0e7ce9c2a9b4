/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: rank_load SOCKET RANKS COMMS OPS_PER_SECOND
 *
 * Processes that register like agents and enter, return and complete so many ops a second, each on
 * so many communicators, until they are killed. With 0 ops they only show that they live, so a
 * machine holds hundreds of them. tests/bench/daemon-cost measures a daemon with them.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/unixsock.h"
#include "model/op.h"
#include "proto/codec.h"
#include "tests/support/record/record_writer.h"

#define TICK_NS (5 * CW_NS_PER_MS)

struct load {
	const char *path;
	unsigned ranks, comms, ops;
};

static int connect_and_register(const struct load *l, const struct cw_test_record *rec)
{
	struct cw_message hello = { .type = CW_MSG_AGENT_HELLO,
				    .agent_hello = { .version_min = CW_WIRE_VERSION,
						     .version_max = CW_WIRE_VERSION,
						     .record_bytes = rec->bytes } };
	int conn = cw_unix_connect(l->path, 5000);
	uint8_t *bytes;
	size_t len;

	if (conn < 0 || cw_message_encode(&hello, &bytes, &len) < 0 ||
	    cw_unix_send_fd(conn, bytes, len, rec->fd) != (ssize_t)len)
		abort();
	free(bytes);
	return conn;
}

static void one_op(struct cw_test_record *rec, int comm)
{
	uint64_t op;

	rec->now_ns = cw_clock_now_ns(&cw_clock_system);
	op = cw_test_record_collective(rec, comm, CW_OP_ALL_REDUCE, 4096);
	cw_test_record_return(rec, comm, op, 0);
	cw_test_record_progress(rec, comm, op, op);
}

static void be_rank(const struct load *l, unsigned rank)
{
	struct cw_test_record *rec = cw_test_record_new();
	int64_t tick_ns = l->ops ? TICK_NS : CW_NS_PER_S;
	struct timespec next;
	unsigned comm = 0;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* else it is killed with its group */
	rec->header->rank_label = (int32_t)rank;
	rec->header->world_size_label = (int32_t)l->ranks;
	for (unsigned c = 0; c < l->comms; c++)
		cw_test_record_comm(rec, 1000 + c, l->ranks, (int32_t)rank);
	(void)connect_and_register(l, rec); /* stays open */
	(void)clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		for (unsigned i = 0; i < l->ops * TICK_NS / CW_NS_PER_S; i++)
			one_op(rec, (int)(comm++ % l->comms));
		if (!l->ops)
			rec->now_ns += tick_ns;
		__atomic_store_n(&rec->header->beat_ns, (uint64_t)rec->now_ns, __ATOMIC_RELAXED);
		next.tv_nsec += tick_ns;
		if (next.tv_nsec >= CW_NS_PER_S) {
			next.tv_nsec -= CW_NS_PER_S;
			next.tv_sec++;
		}
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

int main(int argc, char **argv)
{
	struct load l;

	if (argc != 5) {
		(void)fprintf(stderr, "usage: rank_load SOCKET RANKS COMMS OPS_PER_SECOND\n");
		return 1;
	}
	l = (struct load){ .path = argv[1],
			   .ranks = (unsigned)strtoul(argv[2], NULL, 10),
			   .comms = (unsigned)strtoul(argv[3], NULL, 10),
			   .ops = (unsigned)strtoul(argv[4], NULL, 10) };
	if (!l.ranks || !l.comms || l.comms > CW_REC_COMMS || (l.ops && l.ops < 200)) {
		(void)fprintf(stderr,
			      "rank_load: ranks, communicators (at most %d) and 200 ops a "
			      "second or more, or none\n",
			      CW_REC_COMMS);
		return 1;
	}
	for (unsigned r = 0; r < l.ranks; r++)
		if (fork() == 0)
			be_rank(&l, r);
	while (wait(NULL) > 0)
		;
	return 1;
}
