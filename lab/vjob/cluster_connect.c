/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lazy connections. Since 2.22 NCCL connects for a collective at its first launch (src/group.cc,
 * ncclPrepareTasksAndCollPreconnectFunc() with NCCL_RUNTIME_CONNECT). For a send or receive NCCL
 * always did so (ncclP2PPreconnectFunc(), ncclTransportP2pSetup() in src/transport.cc). The call
 * does not return before the peer has called, too. So a host that could have run ahead is stuck in
 * this call.
 */
#include "lab/vjob/cluster_state.h"

static bool is_first(struct member *m, const struct cw_op *op)
{
	return cw_op_is_p2p(op->kind) ? op->p2p_seq == 1 : !m->is_connected;
}

bool connect_is_needed(const struct item *item)
{
	struct member *m = item->m;

	if (!item->rank->c->s->families[m->comm->family].is_lazy || m->comm->nranks < 2)
		return false;
	for (uint32_t i = 0; i < item->n_ops; i++) {
		const struct cw_op *op = member_op(m, item->first_op + i);

		if (!(op->flags & CW_OPF_NO_COUNT) && is_first(m, op))
			return true;
	}
	return false;
}

/* True if the rank's process answers. */
static bool answers(const struct rank *r)
{
	return !r->ended_ns && !r->is_frozen;
}

static bool has_posted(const struct member *peer, const struct cw_op *op, uint32_t me)
{
	if (!peer->peers || !answers(peer->rank))
		return false;
	return op->kind == CW_OP_SEND ? peer->peers[me].recvs : peer->peers[me].sends;
}

static bool has_come(const struct member *m)
{
	const struct rank *r = m->rank;

	if (m->is_connected)
		return true;
	return r->connecting == m && answers(r) && !r->waiting->is_wedged &&
	       cw_op_is_collective(member_op(r->connecting, r->waiting->first_op)->kind);
}

static bool all_have_come(const struct comm *comm)
{
	for (uint32_t i = 0; i < comm->nranks; i++)
		if (!has_come(&comm->members[i]))
			return false;
	return true;
}

static bool is_met(struct member *m, const struct item *item, bool is_full)
{
	for (uint32_t i = 0; i < item->n_ops; i++) {
		const struct cw_op *op = member_op(m, item->first_op + i);

		if ((op->flags & CW_OPF_NO_COUNT) || !is_first(m, op))
			continue;
		if (cw_op_is_p2p(op->kind)
			    ? item->is_wedged ||
				      !has_posted(&m->comm->members[op->peer], op, m->comm_rank)
			    : !is_full)
			return false;
	}
	return true;
}

static void go_on(struct member *m, bool is_full)
{
	struct rank *r = m->rank;

	m->is_connected |= is_full;
	r->connecting = NULL;
	call_resume(r);
	host_wake_at(r, r->c->now_ns + 2 * MS);
}

void connect_step(struct comm *comm)
{
	bool is_full = all_have_come(comm);

	for (uint32_t i = 0; i < comm->nranks; i++) {
		struct member *m = &comm->members[i];

		if (m->rank->connecting == m && answers(m->rank) &&
		    is_met(m, m->rank->waiting, is_full))
			go_on(m, is_full);
	}
}

void connect_wait(struct rank *r, struct item *item)
{
	r->waiting = item;
	r->connecting = item->m;
	r->host = HOST_LAUNCH;
	/* If the stream is idle, the device reaches the op at once, before the call returns. */
	if (!r->streams[item->stream])
		device_note_reached(item);
	connect_step(item->m->comm);
}
