/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters that come to the end of 32 bits: two communicators live through the same calls, groups
 * and sends, one of them from just below that end, and must look alike afterwards. Group numbers
 * (32 bits in the rings), the use counts of entries (16 bits there) and the words that the device
 * writes pass their end too, also for launches of a graph. At any time a reader knows the progress
 * of all.
 *
 *	stress_agent_wraps [--ops N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "record/record_reader.h"
#include "tests/support/agent/cuda/fake_cuda.h"

#define LOOK_EVERY 997 /* steps */
#define GROUP 5
#define PEER 3
#define STEP_OPS (2 * GROUP + 1)

/* The exported wrappers, called as a program that is linked with the driver does. */
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
int cuGraphLaunch(void *exec, void *stream);

static char handles[4];

static ncclResult_t fake_init(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	*comm = (ncclComm_t)&handles[(unsigned char)id.internal[0]];
	return ncclSuccess;
}

static ncclResult_t fake_all_reduce(const void *s, void *r, size_t n, int dt, int op, ncclComm_t c,
				    cudaStream_t st)
{
	return ncclSuccess;
}

static ncclResult_t fake_send(const void *s, size_t n, int dt, int peer, ncclComm_t c,
			      cudaStream_t st)
{
	return ncclSuccess;
}

static ncclResult_t fake_group(void)
{
	return ncclSuccess;
}

static ncclResult_t fake_destroy(ncclComm_t comm)
{
	return ncclSuccess;
}

static const struct cw_real fake = {
	.ncclAllReduce = fake_all_reduce,
	.ncclSend = fake_send,
	.ncclGroupStart = fake_group,
	.ncclGroupEnd = fake_group,
	.ncclCommInitRank = fake_init,
	.ncclCommDestroy = fake_destroy,
};

static ncclComm_t make(unsigned n)
{
	ncclUniqueId id = { { (char)n } };
	ncclComm_t comm = NULL;

	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, 8, id, 0);
	return comm;
}

static void reduce(ncclComm_t comm, uint64_t count)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, NULL, NULL, count, CW_DTYPE_INT8, CW_REDOP_SUM,
				    comm, NULL);
}

static void step(ncclComm_t comm, uint64_t n)
{
	(void)cw_impl_ncclGroupStart(&fake, NULL);
	for (uint64_t i = 1; i <= GROUP; i++)
		reduce(comm, n + i);
	(void)cw_impl_ncclSend(&fake, NULL, NULL, n + 1, CW_DTYPE_INT8, PEER, comm, NULL);
	(void)cw_impl_ncclGroupEnd(&fake, NULL);
	for (uint64_t i = 1; i <= GROUP; i++)
		reduce(comm, n + i);
}

/* An executable graph of GROUP collectives. */
static void *capture(ncclComm_t comm)
{
	static char graph;
	void *exec = NULL, *captured = NULL;

	fake_cuda.graph = &graph;
	if (cuStreamBeginCapture_v2(NULL, 0) != 0)
		return NULL;
	for (uint64_t i = 1; i <= GROUP; i++)
		reduce(comm, i);
	if (cuStreamEndCapture(NULL, &captured) != 0 ||
	    cuGraphInstantiateWithFlags(&exec, captured, 0) != 0)
		return NULL;
	return exec;
}

static struct cw_rec_comm *entry(ncclComm_t comm)
{
	return &cw_record.comms[cw_comm_find(comm)];
}

static struct cw_rec_p2p_peer *peer_of(const struct cw_rec_comm *rc)
{
	return &cw_record.p2p[rc->p2p_block - 1].peers[PEER];
}

static int complain(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %llu, not %llu\n", what, (unsigned long long)got,
		(unsigned long long)want);
	return 1;
}

/* Before the first op on the device: its words count from there. */
static void move_up(ncclComm_t comm, uint64_t start)
{
	struct cw_rec_comm *rc = entry(comm);

	rc->ring_ticket += start;
	rc->op_index += start;
	rc->op_returned += start;
	rc->coll_entered += start;
	rc->coll_returned += start;
}

/* After the first send, which makes the peer's counters. */
static void move_sends_up(ncclComm_t comm, uint64_t sends)
{
	struct cw_rec_comm *rc = entry(comm);

	rc->p2p_total[0] += sends;
	peer_of(rc)->count[0] += sends;
}

static int check_counters(const struct cw_rec_comm *moved, const struct cw_rec_comm *plain,
			  uint64_t start, uint64_t sends)
{
	int bad = 0;

	bad += complain("collectives", moved->coll_returned, plain->coll_returned + start);
	bad += complain("entered", moved->coll_entered, moved->coll_returned);
	bad += complain("ops", moved->op_index, plain->op_index + start);
	bad += complain("returned", moved->op_returned, plain->op_returned + start);
	bad += complain("ticket", moved->ring_ticket, plain->ring_ticket + start);
	bad += complain("sends", moved->p2p_total[0], plain->p2p_total[0] + sends);
	bad += complain("history", moved->hash, plain->hash);
	bad += complain("sends to the peer", peer_of(moved)->count[0],
			peer_of(plain)->count[0] + sends);
	bad += complain("sizes sent", peer_of(moved)->hash[0], peer_of(plain)->hash[0]);
	return bad;
}

/* Every slot holds the newest op that belongs there, returned, and numbered as its ticket says. */
static int check_ring(const struct cw_rec_op *ring, uint32_t count, uint64_t ticket)
{
	int bad = 0;

	for (uint32_t back = 1; back <= count && !bad; back++) {
		const struct cw_rec_op *op = &ring[(ticket - back) % count];

		bad += complain("slot", op->publish, ticket - back + 1);
		bad += complain("queued or not returned",
				op->flags & (CW_OPF_QUEUED | CW_OPF_RETURNED), CW_OPF_RETURNED);
		bad += complain("dropped", op->flags & CW_OPF_DROPPED, 0);
	}
	return bad;
}

/* Nothing is under way: all calls have completed, by the device's words. */
static int check_words(struct cw_record *rec)
{
	const struct cw_record_comm *comms;
	int bad = 0;
	size_t n;

	bad += complain("refresh", (uint64_t)-cw_record_refresh(rec), 0);
	comms = cw_record_comms(rec, &n);
	bad += complain("communicators", n, 3);
	for (size_t i = 0; i < n; i++) {
		struct cw_record_state state = { 0 };

		bad += complain("state", (uint64_t)-cw_record_state(rec, &comms[i], &state), 0);
		bad += complain("known", state.completed_known && state.reached_known, 1);
		bad += complain("pending", state.has_pending, 0);
		bad += complain("completed", state.coll_completed, comms[i].entry.coll_returned);
		bad += complain("reached", state.coll_reached, comms[i].entry.coll_returned);
	}
	return bad;
}

/* 16 bits of the number of an entry's uses lie in each op. */
static int check_generations(void)
{
	int c = cw_comm_find(make(2)), bad = 0;

	cw_record.comms[c].generation = UINT16_MAX - 1;
	(void)cw_impl_ncclCommDestroy(&fake, NULL, (ncclComm_t)&handles[2]);
	for (int i = 0; i < 4 * CW_REC_COMMS; i++) {
		ncclComm_t comm = make(2);
		const struct cw_rec_comm *rc = entry(comm);

		reduce(comm, 7);
		bad += complain("generation",
				rc->ops[(rc->ring_ticket - 1) % CW_REC_COMM_OPS].comm_generation,
				rc->generation & UINT16_MAX);
		(void)cw_impl_ncclCommDestroy(&fake, NULL, comm);
	}
	return bad + (cw_record.comms[c].generation <= UINT16_MAX
			      ? complain("uses of the entry", cw_record.comms[c].generation,
					 UINT16_MAX + 1)
			      : 0);
}

/* Launches of a graph; each is one op of the host and GROUP of the device. */
static struct {
	ncclComm_t comm;
	void *exec;
	uint64_t launches; /* before the first */
} replays;

static struct cw_rec_replay *replay_entry(void)
{
	return &cw_record.replays[0];
}

static int start_replays(uint64_t steps)
{
	struct cw_rec_comm *rc;

	replays.comm = make(3);
	replays.exec = capture(replays.comm);
	replays.launches = (UINT64_C(1) << 32) - steps / 2;
	if (!replays.exec)
		return complain("a graph", 0, 1);
	rc = entry(replays.comm);
	rc->ring_ticket += replays.launches;
	rc->op_index += replays.launches;
	rc->op_returned += replays.launches;
	rc->coll_entered = rc->coll_returned = GROUP * replays.launches;
	replay_entry()->launches = replays.launches;
	return 0;
}

static int check_replays(uint64_t steps)
{
	const struct cw_rec_comm *rc = entry(replays.comm);
	int bad = 0;

	bad += complain("launches", replay_entry()->launches, replays.launches + steps);
	bad += complain("replayed", rc->coll_returned, GROUP * (replays.launches + steps));
	bad += complain("counted", rc->flags & (CW_REC_COMM_UNCOUNTED | CW_REC_COMM_PROGRESS_LOST),
			0);
	return bad;
}

static void attach_device(void)
{
	static char context;

	fake_cuda.stream_owner = &context;
	fake_cuda.current = &context;
}

int main(int argc, char **argv)
{
	uint64_t ops = 100000, steps, start, sends;
	const struct cw_rec_header *h;
	struct cw_record *rec = NULL;
	ncclComm_t plain, moved;
	int bad = 0;

	if (argc == 3 && strcmp(argv[1], "--ops") == 0) {
		ops = strtoull(argv[2], NULL, 10);
	} else if (argc != 1) {
		fprintf(stderr, "usage: stress_agent_wraps [--ops N]\n");
		return 2;
	}
	attach_device();
	plain = make(0);
	moved = make(1);
	if (!cw_agent_is_armed()) {
		fprintf(stderr, "no record: no memfd here?\n");
		return 77;
	}
	steps = ops / (2 * STEP_OPS);
	start = (UINT64_C(1) << 32) - steps * STEP_OPS / 2;
	sends = (UINT64_C(1) << 32) - steps / 2;
	h = cw_record.header;
	if (cw_record_open(dup(cw_record.fd), true, &rec, NULL) < 0)
		return complain("a reader", 0, 1);
	bad += start_replays(steps);
	move_up(moved, start);
	step(plain, 1000);
	step(moved, 1000);
	move_sends_up(moved, sends);
	cw_record.header->ring_ticket += start / CW_REC_RING_OPS * CW_REC_RING_OPS;
	cw_record.header->group_ticket = (UINT64_C(1) << 32) - steps;
	for (uint64_t i = 0; i < steps; i++) {
		step(plain, i);
		step(moved, i);
		(void)cuGraphLaunch(replays.exec, NULL);
		if (i % LOOK_EVERY == 0)
			bad += check_words(rec);
	}
	bad += check_words(rec);
	rec = cw_record_close(rec);
	bad += check_replays(steps);
	bad += check_counters(entry(moved), entry(plain), start, sends);
	bad += check_ring(cw_record.ring, CW_REC_RING_OPS, h->ring_ticket);
	bad += check_ring(entry(plain)->ops, CW_REC_COMM_OPS, entry(plain)->ring_ticket);
	bad += check_ring(entry(moved)->ops, CW_REC_COMM_OPS, entry(moved)->ring_ticket);
	if (entry(moved)->op_index >> 32 != 1 || h->group_ticket >> 32 != 1 ||
	    h->ring_ticket >> 32 != 1 || entry(moved)->p2p_total[0] >> 32 != 1)
		bad += complain("counters past their end", 0, 4);
	bad += check_generations();
	printf("%llu ops across the end of 32 bits\n", (unsigned long long)(2 * steps * STEP_OPS));
	return bad ? 1 : 0;
}
