/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends and receives. Those of one group form one batch. All make progress independently, and the
 * batch is done when all are. Between two ranks they match in order.
 *
 * A send is done when the peer reaches the matching receive. NCCL does the same for a message that
 * is larger than the buffers between two ranks. SIM_NCCL_BUFFERED is a number of bytes. With it, a
 * send is done as soon as at most that many bytes are in flight to its peer. NCCL's buffers allow
 * the same for small messages. Then a missing receive blocks no rank, and the next receive takes
 * its message. A receive smaller than the send takes its part and is done. A receive larger than
 * the send never finishes.
 */
#include <stdlib.h>
#include <string.h>

#include "lab/sim/nccl_reduce.h"
#include "lab/sim/nccl_sim.h"

struct p2p {
	ncclComm_t comm;
	const struct sim_task **recvs; /* per rank: the oldest unfinished receive */
	/* Per rank: its oldest unfinished receive wants more bytes than the matching send has. */
	bool *is_stuck;
	bool *wants_input;
};

static uint64_t task_bytes(const struct sim_task *t)
{
	return t->count * sim_dtype_size(t->dtype);
}

static const struct sim_task *next_of(const struct sim_task *t, enum sim_kind kind, int peer)
{
	while (t && (t->kind != kind || t->root != peer))
		t = t->next;
	return t;
}

/* Matches sends to this rank itself with receives in the same batch. Returns true if all match. */
static bool run_self(ncclComm_t comm, const struct sim_task *tasks)
{
	const struct sim_task *s = next_of(tasks, SIM_SEND, comm->rank);
	const struct sim_task *r = next_of(tasks, SIM_RECV, comm->rank);

	while (s && r && task_bytes(r) <= task_bytes(s)) {
		memmove(r->recv, s->send, task_bytes(r));
		s = next_of(s->next, SIM_SEND, comm->rank);
		r = next_of(r->next, SIM_RECV, comm->rank);
	}
	return !s && !r;
}

static uint64_t buffered_bytes(void)
{
	const char *text = getenv("SIM_NCCL_BUFFERED");

	return text ? strtoull(text, NULL, 10) : 0;
}

static bool post_sends(struct p2p *b, const struct sim_task *tasks)
{
	for (const struct sim_task *t = tasks; t; t = t->next) {
		struct sim_msg_header h = { .type = SIM_MSG_DATA, .bytes = task_bytes(t) };

		if (t->kind != SIM_SEND || t->root == b->comm->rank)
			continue;
		if (sim_link_post(&b->comm->p2p[t->root], &h, t->send) < 0)
			return false;
		b->comm->p2p[t->root].unacked++;
		b->comm->p2p[t->root].unacked_bytes += h.bytes;
	}
	return true;
}

/* Takes the first message of that type from the queue, or returns NULL. */
static struct sim_msg *take_type(struct sim_link *l, enum sim_msg_type type)
{
	struct sim_msg **link = &l->queue;
	struct sim_msg *m;

	while (*link && (*link)->header.type != type)
		link = &(*link)->next;
	m = *link;
	if (m) {
		*link = m->next;
		l->queued_bytes -= m->header.bytes;
	}
	return m;
}

static bool try_recv(struct p2p *b, int p)
{
	struct sim_msg_header ack = { .type = SIM_MSG_ACK };
	const struct sim_task *t = b->recvs[p];
	struct sim_msg *m = take_type(&b->comm->p2p[p], SIM_MSG_DATA);

	if (!m)
		return false;
	ack.units = m->header.bytes;
	(void)sim_link_post(&b->comm->p2p[p], &ack, NULL); /* if memory runs out, the peer hangs */
	if (m->header.bytes < task_bytes(t)) {
		memcpy(t->recv, m->data, m->header.bytes);
		b->is_stuck[p] = true;
		free(m);
		return false;
	}
	memcpy(t->recv, m->data, task_bytes(t));
	free(m);
	b->recvs[p] = next_of(t->next, SIM_RECV, p);
	return true;
}

static bool is_sent(const struct sim_link *l)
{
	uint64_t buffered = buffered_bytes();

	return l->unacked == 0 || (buffered && l->unacked_bytes <= buffered);
}

static bool advance(struct p2p *b)
{
	bool is_complete = true;

	for (int p = 0; p < b->comm->nranks; p++) {
		struct sim_link *l = &b->comm->p2p[p];
		struct sim_msg *ack;

		if (p == b->comm->rank || l->fd < 0)
			continue;
		sim_link_pump(l, b->wants_input[p]);
		while (l->unacked > 0 && (ack = take_type(l, SIM_MSG_ACK))) {
			l->unacked--;
			l->unacked_bytes -= ack->header.units;
			free(ack);
		}
		while (b->recvs[p] && !b->is_stuck[p] && try_recv(b, p))
			;
		sim_link_pump(l, false); /* writes the acknowledgements */
		b->wants_input[p] = !is_sent(l) || (b->recvs[p] && !b->is_stuck[p]);
		if (!is_sent(l) || b->recvs[p] || l->out)
			is_complete = false;
	}
	return is_complete;
}

static void run_batch(struct p2p *b, const struct sim_task *tasks)
{
	bool is_self_done = run_self(b->comm, tasks);

	for (int p = 0; p < b->comm->nranks; p++) {
		b->recvs[p] = p == b->comm->rank ? NULL : next_of(tasks, SIM_RECV, p);
		b->wants_input[p] = true;
	}
	while (!b->comm->is_aborted) {
		bool is_complete = advance(b);

		if (is_complete && is_self_done)
			return;
		/*
		 * The socket may have more data after a message was taken. poll() then returns at
		 * once.
		 */
		sim_links_wait(b->comm, b->comm->p2p, b->wants_input);
	}
}

void sim_p2p_run(ncclComm_t comm, const struct sim_task *tasks)
{
	size_t n = (size_t)comm->nranks;
	struct p2p b = {
		.comm = comm,
		.recvs = calloc(n, sizeof(struct sim_task *)),
		.is_stuck = calloc(n, sizeof(*b.is_stuck)),
		.wants_input = calloc(n, sizeof(*b.wants_input)),
	};

	if (b.recvs && b.is_stuck && b.wants_input && post_sends(&b, tasks))
		run_batch(&b, tasks);
	else
		sim_comm_set_async(comm, sim_fail(ncclSystemError, "out of memory"));
	free(b.recvs);
	free(b.is_stuck);
	free(b.wants_input);
}
