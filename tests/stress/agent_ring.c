/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several threads record at once, some in groups, one makes and ends communicators all the time,
 * while a reader copies the record with pread as the daemon does, in a process of its own as well
 * as in this one. No copy may be torn, and in the end every number must be right. A plain program,
 * so that ThreadSanitizer can look at it.
 *
 *	stress_agent_ring [--ops N] [--one-process]
 *
 * --ops: of each of the four writers, a multiple of 10. --one-process: ThreadSanitizer does not
 * support a fork of a process with threads.
 *
 * Each op carries a checksum: its addresses and stream are functions of its count, which is
 * different for every op of a communicator. So do communicators, whose entries are used again and
 * again: size and rank are functions of the id; and the writers live through the same calls, so a
 * checkpoint of one is a checkpoint of all.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/hooks/wrap.h"
#include "agent/record/comms.h"
#include "agent/record/record.h"
#include "model/op.h"
#include "model/signature.h"
#include "record/record_reader.h"

#define WRITERS 4
#define GROUP 5
#define CHURN 3000 /* at least: as long as there is writing */
/* Often, and without a system call in between: an op is being written for 10 ns in 50 us. */
#define MAPPED_LOOKS 5000
#define COMM_LOOKS 20 /* for one look at both rings, which takes as long */
/* The fields of an op that belong together: the reader checks them. */
#define MARK UINT64_C(0x9e3779b97f4a7c15)

static uint64_t ops = 300000;
static char handles[WRITERS + 2];
static uint64_t churned;
static atomic_bool is_written, is_over;
static atomic_ulong torn, copies, comms_seen, pairs_seen;

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

static uint32_t size_of(uint64_t comm_id)
{
	return 2 + (uint32_t)(comm_id % 9973);
}

static int32_t rank_of(uint64_t comm_id)
{
	return (int32_t)(comm_id % size_of(comm_id));
}

/* n: which handle; round: of several with this handle. */
static ncclComm_t make(unsigned n, int round)
{
	ncclUniqueId id = { { (char)n } };
	ncclComm_t comm = NULL;
	uint64_t comm_id;

	memcpy(&id.internal[1], &round, sizeof(round));
	comm_id = cw_comm_id_of(&id, 1);
	(void)cw_impl_ncclCommInitRank(&fake, NULL, &comm, (int)size_of(comm_id), id,
				       rank_of(comm_id));
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

	while (n < ops) {
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
	for (; churned < CHURN || !atomic_load(&is_written); churned++) {
		ncclComm_t comm = make(WRITERS, (int)churned);

		call(comm, 7);
		(void)cw_impl_ncclCommDestroy(&fake, NULL, comm);
	}
	return NULL;
}

static void check_op(const struct cw_rec_op *op, uint64_t slot, uint32_t count)
{
	bool ok = (op->publish - 1) % count == slot && op->op_index > 0 && op->comm < CW_REC_COMMS;

	/* A communicator's own ring has all of its ops, so the ticket is the number. */
	if (count == CW_REC_COMM_OPS)
		ok = ok && op->op_index == op->publish;

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

/* As record/record_layout.h tells a reader to do it. */
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

static void read_record(void)
{
	size_t ring = (size_t)((char *)cw_record.ring - (char *)cw_record.header);
	size_t comm = (size_t)((char *)&cw_record.comms[0].ops[0] - (char *)cw_record.header);

	read_ring(ring, CW_REC_RING_OPS);
	for (int i = 0; i < 200; i++)
		read_ring(comm, CW_REC_COMM_OPS);
}

/* Through the mapping, where ThreadSanitizer sees it: everything is stored atomically. */
static void read_mapped(const struct cw_rec_op *ring, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const uint64_t *from = (const uint64_t *)&ring[i];
		union {
			struct cw_rec_op op;
			uint64_t words[sizeof(struct cw_rec_op) / sizeof(uint64_t)];
		} copy;

		copy.words[0] = __atomic_load_n(&from[0], __ATOMIC_ACQUIRE);
		for (unsigned w = 1; w < sizeof(copy) / sizeof(uint64_t); w++)
			copy.words[w] = __atomic_load_n(&from[w], __ATOMIC_ACQUIRE);
		if (copy.words[0] && __atomic_load_n(&from[0], __ATOMIC_ACQUIRE) == copy.words[0])
			check_op(&copy.op, i, count);
	}
}

/* ---- communicators, with the daemon's own reader ---- */

struct watch {
	struct cw_record *rec;
	struct cw_rec_comm last[CW_REC_COMMS]; /* as last seen, by entry */
	struct cw_rec_checkpoint known[4096];  /* by coll_seq */
};

static bool goes_back(const struct cw_rec_comm *last, const struct cw_rec_comm *e)
{
	return last->generation == e->generation && last->comm_id == e->comm_id &&
	       (e->coll_returned < last->coll_returned || e->op_index < last->op_index ||
		e->p2p_total[0] < last->p2p_total[0]);
}

static void check_checkpoints(struct watch *w, const struct cw_record_comm *comm)
{
	struct cw_checkpoint pairs[CW_RECORD_CHECKPOINTS];
	size_t n = 0;

	if (cw_record_checkpoints(w->rec, comm, pairs, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct cw_rec_checkpoint *known =
			&w->known[pairs[i].coll_seq / CW_CHECKPOINT_EVERY % 4096];

		if (known->coll_seq == pairs[i].coll_seq) {
			atomic_fetch_add(&torn, known->hash != pairs[i].hash);
			atomic_fetch_add(&pairs_seen, 1);
		}
		*known = (struct cw_rec_checkpoint){ pairs[i].coll_seq, pairs[i].hash };
	}
}

static void check_comms(struct watch *w)
{
	const struct cw_record_comm *comms;
	size_t n = 0;

	if (!w->rec || cw_record_refresh(w->rec) < 0)
		return;
	comms = cw_record_comms(w->rec, &n);
	for (size_t i = 0; i < n; i++) {
		const struct cw_rec_comm *e = &comms[i].entry;
		struct cw_rec_comm *last = &w->last[comms[i].index];

		if (e->nranks != size_of(e->comm_id) || e->comm_rank != rank_of(e->comm_id) ||
		    goes_back(last, e))
			atomic_fetch_add(&torn, 1);
		*last = *e;
		check_checkpoints(w, &comms[i]);
		atomic_fetch_add(&comms_seen, 1);
	}
}

static struct watch *watch_new(void)
{
	struct watch *w = calloc(1, sizeof(*w));
	int fd = dup(cw_record.fd);

	if (w && fd >= 0)
		(void)cw_record_open(fd, false, &w->rec, NULL);
	return w;
}

static void watch_free(struct watch *w)
{
	if (w)
		(void)cw_record_close(w->rec);
	free(w);
}

static void *reader(void *arg)
{
	struct watch *w = watch_new();

	while (w && !atomic_load(&is_over)) {
		for (int i = 0; i < COMM_LOOKS; i++)
			check_comms(w);
		read_record();
		read_mapped(cw_record.ring, CW_REC_RING_OPS);
		for (int i = 0; i < MAPPED_LOOKS; i++)
			read_mapped(cw_record.comms[i % WRITERS].ops, CW_REC_COMM_OPS);
	}
	watch_free(w);
	return NULL;
}

/* ---- a reader that shares nothing with the writers but the descriptor ---- */

static struct {
	pid_t pid;
	int stop, answer; /* closed at the end; four numbers come back */
} other = { .pid = -1, .stop = -1, .answer = -1 };

static void read_until_closed(int stop, int answer)
{
	struct pollfd p = { .fd = stop, .events = POLLIN };
	struct watch *w = watch_new();
	unsigned long result[4];

	while (w && poll(&p, 1, 0) == 0) {
		for (int i = 0; i < COMM_LOOKS; i++)
			check_comms(w);
		read_record();
	}
	watch_free(w);
	result[0] = atomic_load(&torn);
	result[1] = atomic_load(&copies);
	result[2] = atomic_load(&comms_seen);
	result[3] = atomic_load(&pairs_seen);
	_exit(write(answer, result, sizeof(result)) == sizeof(result) ? 0 : 1);
}

static bool start_other(void)
{
	int stop[2], answer[2];

	if (pipe(stop) < 0 || pipe(answer) < 0)
		return false;
	other.stop = stop[1];
	other.answer = answer[0];
	other.pid = fork();
	if (other.pid == 0) {
		(void)close(stop[1]);
		read_until_closed(stop[0], answer[1]);
	}
	(void)close(stop[0]);
	(void)close(answer[1]);
	return other.pid > 0;
}

static bool stop_other(void)
{
	unsigned long result[4] = { 0 };
	ssize_t n;
	int status;

	(void)close(other.stop);
	n = read(other.answer, result, sizeof(result));
	if (waitpid(other.pid, &status, 0) != other.pid || status != 0 || n != sizeof(result) ||
	    !result[1] || !result[2] || !result[3])
		return false;
	atomic_fetch_add(&torn, result[0]);
	atomic_fetch_add(&copies, result[1]);
	atomic_fetch_add(&comms_seen, result[2]);
	atomic_fetch_add(&pairs_seen, result[3]);
	return true;
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

		bad += complain("collectives", rc->coll_returned, ops);
		bad += complain("sends", rc->p2p_total[0], ops / (2 * GROUP));
		bad += complain("ops", rc->op_index, 1 + ops + ops / (2 * GROUP));
		bad += complain("history", rc->hash, first->hash);
		bad += complain("checkpoints", rc->checkpoint_ticket, ops / CW_CHECKPOINT_EVERY);
	}
	bad += complain("all ops", cw_record.header->ring_ticket,
			WRITERS * (1 + ops + ops / (2 * GROUP)) + 3 * churned);
	bad += complain("torn copies", atomic_load(&torn), 0);
	for (int i = 0; i < CW_REC_DROP__MAX; i++)
		bad += complain("drops", cw_record.header->drops[i], 0);
	if (!atomic_load(&copies) || !atomic_load(&comms_seen) || !atomic_load(&pairs_seen))
		bad += complain("copies looked at", 0, 1);
	return bad;
}

const char *__tsan_default_suppressions(void);

/*
 * ThreadSanitizer takes the descriptors of the agent's thread, which has its own table, for
 * the program's.
 */
const char *__tsan_default_suppressions(void)
{
	return "race:^drop$\nrace:^cw_fd_release$\n";
}

static int usage(void)
{
	fprintf(stderr, "usage: stress_agent_ring [--ops N] [--one-process]\n");
	return 2;
}

int main(int argc, char **argv)
{
	pthread_t threads[WRITERS + 2];
	bool is_one_process = false;
	ncclComm_t comms[WRITERS];
	int bad = 0;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--one-process") == 0)
			is_one_process = true;
		else if (strcmp(argv[i], "--ops") == 0 && i + 1 < argc)
			ops = strtoull(argv[++i], NULL, 10) / (2 * GROUP) * (2 * GROUP);
		else
			return usage();
	}
	for (unsigned i = 0; i < WRITERS; i++)
		comms[i] = make(i, 0);
	if (!cw_agent_is_armed()) {
		fprintf(stderr, "no record: no memfd here?\n");
		return 77;
	}
	if (!is_one_process && !start_other())
		return complain("a reader in a process of its own", 0, 1);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_create(&threads[i], NULL, writer, comms[i]);
	(void)pthread_create(&threads[WRITERS], NULL, churner, NULL);
	(void)pthread_create(&threads[WRITERS + 1], NULL, reader, NULL);
	for (unsigned i = 0; i < WRITERS; i++)
		(void)pthread_join(threads[i], NULL);
	atomic_store(&is_written, true);
	(void)pthread_join(threads[WRITERS], NULL);
	atomic_store(&is_over, true);
	(void)pthread_join(threads[WRITERS + 1], NULL);
	if (!is_one_process && !stop_other())
		bad += complain("an answer of the other reader", 0, 1);
	bad += check_end(comms);
	printf("%lu ops, %lu communicators and %lu checkpoints read while %d threads wrote %llu "
	       "ops\n",
	       atomic_load(&copies), atomic_load(&comms_seen), atomic_load(&pairs_seen),
	       WRITERS + 1, (unsigned long long)(WRITERS * (ops + ops / (2 * GROUP))));
	return bad ? 1 : 0;
}
