/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads record at once, some in groups, one makes and ends communicators all the time,
 * while a reader copies the record with pread as the daemon does. No copy may be torn, and in the
 * end every number must be right. A plain program, so that ThreadSanitizer can look at it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/comms.h"
#include "agent/record.h"
#include "agent/wrap.h"
#include "common/op.h"
#include "common/signature.h"

#define WRITERS 4
#define OPS 300000
#define GROUP 5
#define CHURN 3000
/* What belongs together in an op: checked by the reader. */
#define MARK UINT64_C(0x9e3779b97f4a7c15)

static char handles[WRITERS + 2];
static atomic_bool is_over;
static atomic_ulong torn, copies;

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

static void call(ncclComm_t comm, uint64_t count)
{
	(void)cw_impl_ncclAllReduce(&fake, NULL, (void *)(count ^ MARK), (void *)(count + MARK),
				    count, CW_DTYPE_INT8, CW_REDOP_SUM, comm,
				    (cudaStream_t)(count * MARK));
}

/* Groups of GROUP collectives and a send: the same history for each writer. */
static void *writer(void *arg)
{
	ncclComm_t comm = arg;
	uint64_t n = 0;

	while (n < OPS) {
		(void)cw_impl_ncclGroupStart(&fake, NULL);
		for (int i = 0; i < GROUP; i++)
			call(comm, ++n);
		(void)cw_impl_ncclSend(&fake, NULL, (void *)(n ^ MARK), n, CW_DTYPE_INT8, 3, comm,
				       (cudaStream_t)(n * MARK));
		(void)cw_impl_ncclGroupEnd(&fake, NULL);
		for (int i = 0; i < GROUP; i++)
			call(comm, ++n);
	}
	return NULL;
}

static void *churner(void *arg)
{
	for (int i = 0; i < CHURN; i++) {
		ncclComm_t comm = make(WRITERS);

		call(comm, 7);
		(void)cw_impl_ncclCommDestroy(&fake, NULL, comm);
	}
	return NULL;
}

static void check_op(const struct cw_rec_op *op, uint64_t slot, uint32_t count)
{
	bool ok = (op->publish - 1) % count == slot && op->op_index > 0 && op->comm < CW_REC_COMMS;

	if (op->kind == CW_OP_ALL_REDUCE || op->kind == CW_OP_SEND)
		ok = ok && op->bytes == op->count && op->send_addr == (op->count ^ MARK) &&
		     op->stream == op->count * MARK;
	if (op->kind == CW_OP_ALL_REDUCE)
		ok = ok && op->recv_addr == op->count + MARK && op->dtype == CW_DTYPE_INT8;
	if ((op->flags & CW_OPF_RETURNED) && op->return_ns)
		ok = ok && op->return_ns >= op->enter_ns && op->result == 0;
	if (!ok)
		atomic_fetch_add(&torn, 1);
	atomic_fetch_add(&copies, 1);
}

static bool read_at(void *to, size_t len, size_t offset)
{
	return pread(cw_record.fd, to, len, (off_t)offset) == (ssize_t)len;
}

/* As common/record_layout.h tells a reader to do it. */
static void read_ring(size_t offset, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t at = offset + i * sizeof(struct cw_rec_op);
		uint64_t before, after;
		struct cw_rec_op op;

		if (!read_at(&before, sizeof(before), at) || !before ||
		    !read_at(&op, sizeof(op), at) || !read_at(&after, sizeof(after), at))
			continue;
		if (before == after && op.publish == before)
			check_op(&op, i, count);
	}
}

static void *reader(void *arg)
{
	size_t ring = (size_t)((char *)cw_record.ring - (char *)cw_record.header);
	size_t comm = (size_t)((char *)&cw_record.comms[0].ops[0] - (char *)cw_record.header);

	while (!atomic_load(&is_over)) {
		read_ring(ring, CW_REC_RING_OPS);
		for (int i = 0; i < 200; i++)
			read_ring(comm, CW_REC_COMM_OPS);
	}
	return NULL;
}

static int complain(const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "%s: %llu, not %llu\n", what, (unsigned long long)got,
		(unsigned long long)want);
	return 1;
}

static int check_end(const ncclComm_t *comms)
{
	const struct cw_rec_comm *first = &cw_record.comms[cw_comm_find(comms[0])];
	int bad = 0;

	for (int i = 0; i < WRITERS; i++) {
		const struct cw_rec_comm *rc = &cw_record.comms[cw_comm_find(comms[i])];

		bad += complain("collectives", rc->coll_returned, OPS);
		bad += complain("sends", rc->p2p_total[0], OPS / (2 * GROUP));
		bad += complain("ops", rc->op_index, 1 + OPS + OPS / (2 * GROUP));
		bad += complain("history", rc->hash, first->hash);
		bad += complain("checkpoints", rc->checkpoint_ticket, OPS / CW_CHECKPOINT_EVERY);
	}
	bad += complain("all ops", cw_record.header->ring_ticket,
			WRITERS * (1 + OPS + OPS / (2 * GROUP)) + 3 * CHURN);
	bad += complain("torn copies", atomic_load(&torn), 0);
	for (int i = 0; i < CW_REC_DROP__MAX; i++)
		bad += complain("drops", cw_record.header->drops[i], 0);
	if (!atomic_load(&copies))
		bad += complain("copies looked at", 0, 1);
	return bad;
}

int main(void)
{
	pthread_t threads[WRITERS + 2];
	ncclComm_t comms[WRITERS];
	int bad;

	for (unsigned i = 0; i < WRITERS; i++)
		comms[i] = make(i);
	if (!cw_agent_is_armed()) {
		fprintf(stderr, "no record: no memfd here?\n");
		return 77;
	}
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_create(&threads[i], NULL, writer, comms[i]);
	(void)pthread_create(&threads[WRITERS], NULL, churner, NULL);
	(void)pthread_create(&threads[WRITERS + 1], NULL, reader, NULL);
	for (unsigned i = 0; i <= WRITERS; i++)
		(void)pthread_join(threads[i], NULL);
	atomic_store(&is_over, true);
	(void)pthread_join(threads[WRITERS + 1], NULL);
	bad = check_end(comms);
	printf("%lu copies read while %d threads wrote\n", atomic_load(&copies), WRITERS + 1);
	return bad ? 1 : 0;
}
