/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives. One rule covers all of them:
 *
 *	Every rank sends every other rank one message. The message says what the rank is doing
 *	(kind, root, number of units) and carries the data that the other rank needs, if any. A
 *	rank is done when it has from each peer a message of the same kind and root with at least
 *	as many units as the rank itself wants.
 *
 * The effects of a mismatch follow from that rule. After a skipped call, an extra one, another
 * kind, or another root, the message at the head of the connection never fits: all ranks hang. If
 * one rank has a smaller count, it has all its data and returns. The others wait for units that
 * never come. The message does not contain data type and operator. If these differ, each rank
 * computes with its own, and all finish with wrong data. Units are elements in reductions.
 * Elsewhere they are bytes, because real NCCL too knows only bytes there.
 *
 * A message that does not fit stays at the head; the op then waits until an abort.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lab/sim/nccl_proxy.h"
#include "lab/sim/nccl_reduce.h"
#include "lab/sim/nccl_sim.h"
#include "lab/sim/nccl_steps.h"

struct coll {
	ncclComm_t comm;
	const struct sim_task *task;
	size_t elem;
	uint64_t units;
	/* this rank's data, multiplied by the scalar of a user-made operator */
	void *scaled;
	bool *wants_input;     /* per rank: its message has not arrived yet */
	struct sim_msg **from; /* per rank: its matching message */
	/* per rank: the steps of its connection, to report to the profiler plugin */
	struct sim_steps *sends, *recvs;
};

static bool reduces(const struct sim_task *t)
{
	return t->kind == SIM_ALL_REDUCE || t->kind == SIM_REDUCE || t->kind == SIM_REDUCE_SCATTER;
}

static const char *own_data(const struct coll *c)
{
	return c->scaled ? c->scaled : c->task->send;
}

/*
 * Returns the bytes of the part of the caller's data that @peer needs, and the part itself in
 * *ret_data.
 */
static uint64_t part_for(const struct coll *c, int peer, const void **ret_data)
{
	uint64_t bytes = c->task->count * c->elem;

	*ret_data = own_data(c);
	switch (c->task->kind) {
	case SIM_ALL_REDUCE:
	case SIM_ALL_GATHER:
		return bytes;
	case SIM_REDUCE:
		return peer == c->task->root ? bytes : 0;
	case SIM_BROADCAST:
		return c->comm->rank == c->task->root ? bytes : 0;
	case SIM_REDUCE_SCATTER:
		*ret_data = own_data(c) + (size_t)peer * bytes;
		return bytes;
	default:
		return 0;
	}
}

static bool post_all(struct coll *c)
{
	for (int p = 0; p < c->comm->nranks; p++) {
		struct sim_msg_header h = { .type = SIM_MSG_COLL,
					    .kind = c->task->kind,
					    .root = c->task->root,
					    .units = c->units };
		const void *data;

		if (p == c->comm->rank)
			continue;
		h.bytes = part_for(c, p, &data);
		sim_steps_begin(&c->sends[p], c->comm, c->task->launched, p, &c->comm->coll[p],
				true, h.bytes);
		sim_steps_begin(&c->recvs[p], c->comm, c->task->launched, p, &c->comm->coll[p],
				false, c->task->count * c->elem);
		if (sim_link_post(&c->comm->coll[p], &h, data) < 0)
			return false;
	}
	return true;
}

static bool fits(const struct coll *c, const struct sim_msg_header *h)
{
	return h->kind == c->task->kind && h->root == c->task->root && h->units >= c->units;
}

/* Polls every link once. Returns true if the op is complete. */
static bool advance(struct coll *c)
{
	bool is_complete = true;

	for (int p = 0; p < c->comm->nranks; p++) {
		struct sim_link *l = &c->comm->coll[p];

		if (p == c->comm->rank)
			continue;
		c->wants_input[p] = !c->from[p] && !l->queue;
		sim_link_pump(l, c->wants_input[p]);
		if (!c->from[p] && l->queue && fits(c, &l->queue->header))
			c->from[p] = sim_link_take(l);
		c->wants_input[p] = !c->from[p] && !l->queue;
		sim_steps_advance(&c->sends[p], false);
		sim_steps_advance(&c->recvs[p], c->from[p] != NULL);
		if (!c->from[p] || l->out)
			is_complete = false;
	}
	return is_complete;
}

/*
 * Returns the contribution of rank @p, at least @bytes long. If @p has a smaller data type, the
 * missing bytes are zeros.
 */
static const void *part_from(struct coll *c, int p, size_t bytes)
{
	struct sim_msg *m = c->from[p];
	struct sim_msg *larger;

	if (p == c->comm->rank)
		return c->task->kind == SIM_REDUCE_SCATTER ? own_data(c) + (size_t)p * bytes
							   : own_data(c);
	if (m->header.bytes >= bytes)
		return m->data;
	larger = realloc(m, sizeof(*m) + bytes);
	if (!larger)
		return NULL;
	memset(larger->data + larger->header.bytes, 0, bytes - larger->header.bytes);
	c->from[p] = larger;
	return larger->data;
}

static void store_reduced(struct coll *c)
{
	const struct sim_task *t = c->task;
	union sim_value *acc = calloc(t->count, sizeof(*acc));

	if (!acc)
		return;
	/* We add in the order of the ranks, so that all ranks round equally. */
	for (int p = 0; p < c->comm->nranks; p++) {
		const void *data = part_from(c, p, t->count * c->elem);

		if (data && p == 0)
			sim_reduce_first(acc, data, t->count, t->dtype);
		else if (data)
			sim_reduce_next(acc, data, t->count, t->dtype, t->op);
	}
	sim_reduce_store(t->recv, acc, t->count, t->dtype, t->op, c->comm->nranks);
	free(acc);
}

static void store(struct coll *c)
{
	const struct sim_task *t = c->task;
	size_t bytes = t->count * c->elem;

	switch (t->kind) {
	case SIM_REDUCE:
		if (c->comm->rank == t->root)
			store_reduced(c);
		break;
	case SIM_ALL_REDUCE:
	case SIM_REDUCE_SCATTER:
		store_reduced(c);
		break;
	case SIM_BROADCAST: {
		const void *data = part_from(c, t->root, bytes);

		if (data && t->recv && data != t->recv)
			memmove(t->recv, data, bytes);
		break;
	}
	case SIM_ALL_GATHER:
		/*
		 * The own part comes first. If the op works in place, a peer's part would overwrite
		 * it otherwise.
		 */
		memmove((char *)t->recv + (size_t)c->comm->rank * bytes, t->send, bytes);
		for (int p = 0; p < c->comm->nranks; p++) {
			if (p != c->comm->rank)
				memcpy((char *)t->recv + (size_t)p * bytes, part_from(c, p, bytes),
				       bytes);
		}
		break;
	default:
		break;
	}
}

static bool scale_own_data(struct coll *c)
{
	const struct sim_task *t = c->task;
	size_t count = t->count;

	if (!reduces(t) || t->op < ncclNumOps)
		return true;
	if (t->kind == SIM_REDUCE_SCATTER)
		count *= (size_t)c->comm->nranks;
	c->scaled = malloc(count * c->elem);
	if (!c->scaled)
		return false;
	memcpy(c->scaled, t->send, count * c->elem);
	sim_reduce_scale(c->scaled, count, t->dtype, t->scalar);
	return true;
}

/*
 * Simulates a network failure between two ranks. If SIM_NCCL_STALL_FILE names an existing file, the
 * connection to the next rank stops, even during a collective. No rank gets an error.
 */
static void stall_if_asked(ncclComm_t comm)
{
	const char *file = getenv("SIM_NCCL_STALL_FILE");
	struct sim_link *next = &comm->coll[(comm->rank + 1) % comm->nranks];

	if (file && access(file, F_OK) == 0)
		next->in_dead = next->out_dead = true;
}

/*
 * Under SIM_NCCL_REMOTE_ERRORS, notices the deaths of peers. Real NCCL learns of a peer's death if
 * the network reports it; shared memory reports no deaths. It then returns the error when the
 * program queries it, while the kernel keeps waiting.
 */
static void note_lost_peers(const struct coll *c)
{
	ncclComm_t comm = c->comm;

	if (!getenv("SIM_NCCL_REMOTE_ERRORS"))
		return;
	for (int p = 0; p < comm->nranks; p++) {
		const struct sim_link *l = &comm->coll[p];

		/*
		 * This includes a dead peer whose part is complete, if we wait for another peer
		 * that lacks our part.
		 */
		if (!l->in_dead || (!c->wants_input[p] && !l->out_dead) ||
		    __atomic_load_n(&comm->async, __ATOMIC_ACQUIRE) != ncclSuccess)
			continue;
		sim_comm_set_async(
			comm, sim_fail(ncclRemoteError, "rank %d has closed the connection", p));
	}
}

/*
 * Simulates a device that dies during a kernel. If SIM_NCCL_GPU_DEATH_FILE names an existing file,
 * the peers get all data of this rank, but the rank itself never finishes.
 */
static bool dies_if_asked(ncclComm_t comm)
{
	const char *file = getenv("SIM_NCCL_GPU_DEATH_FILE");

	if (!file || access(file, F_OK) != 0)
		return false;
	while (!comm->is_aborted)
		(void)poll(&(struct pollfd){ .fd = comm->abort_fd, .events = POLLIN }, 1, -1);
	return true;
}

void sim_coll_run(ncclComm_t comm, const struct sim_task *task)
{
	struct coll c = { .comm = comm, .task = task, .elem = sim_dtype_size(task->dtype) };
	bool is_complete = false;

	c.units = reduces(task) ? task->count : task->count * c.elem;
	c.wants_input = calloc((size_t)comm->nranks, sizeof(*c.wants_input));
	c.from = calloc((size_t)comm->nranks, sizeof(struct sim_msg *));
	c.sends = calloc((size_t)comm->nranks, sizeof(*c.sends));
	c.recvs = calloc((size_t)comm->nranks, sizeof(*c.recvs));
	stall_if_asked(comm);
	sim_proxy_begin();
	if (c.wants_input && c.from && c.sends && c.recvs && scale_own_data(&c) && post_all(&c)) {
		while (!comm->is_aborted && !(is_complete = advance(&c))) {
			stall_if_asked(comm);
			note_lost_peers(&c);
			sim_links_wait(comm, comm->coll, c.wants_input);
		}
	} else {
		sim_comm_set_async(comm, sim_fail(ncclSystemError, "out of memory"));
	}
	sim_proxy_end();
	if (is_complete && !dies_if_asked(comm))
		store(&c);

	for (int p = 0; c.from && p < comm->nranks; p++)
		free(c.from[p]);
	for (int p = 0; c.sends && c.recvs && p < comm->nranks; p++) {
		sim_steps_end(&c.sends[p]);
		sim_steps_end(&c.recvs[p]);
	}
	free(c.sends);
	free(c.recvs);
	free(c.from);
	free(c.wants_input);
	free(c.scaled);
}
