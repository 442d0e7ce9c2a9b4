/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL calls of the host, and what the agent records about each call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "lab/vjob/comm_slot.h"
#include "model/signature.h"

#define NCCL_SYSTEM_ERROR 2

static void fail(struct cluster *c, int error)
{
	if (!c->error)
		c->error = error;
}

static struct member *member_of(const struct rank *r, uint32_t family)
{
	return family < r->c->s->n_families ? r->members[family] : NULL;
}

static void make_room(struct member *m, bool p2p)
{
	if (!m->ring)
		m->ring = cw_or_exit(calloc(RING, sizeof(*m->ring)));
	if (p2p && !m->peers)
		m->peers = cw_or_exit(calloc(m->comm->nranks, sizeof(*m->peers)));
}

static uint64_t bytes_of(const struct suite_call *call)
{
	return call->count * cw_dtype_bytes(call->dtype);
}

/* Computes a hash like the agent's (agent/ops/p2p.c). */
static uint64_t further_hash(uint64_t count, uint64_t hash, uint64_t bytes)
{
	return cw_hash_commit(count ? hash : CW_HASH_INIT, cw_hash_mix64(bytes));
}

static void count_p2p(struct member *m, struct cw_op *op)
{
	struct peer_count *p = &m->peers[op->peer];

	if (op->kind == CW_OP_SEND) {
		p->send_hash = further_hash(p->sends, p->send_hash, op->bytes);
		op->p2p_seq = ++p->sends;
		m->sends++;
	} else {
		p->recv_hash = further_hash(p->recvs, p->recv_hash, op->bytes);
		op->p2p_seq = ++p->recvs;
		m->recvs++;
	}
}

/* Records the number of the call. All ops of one launch of a graph have the same number. */
static void note_place(const struct rank *r, struct member *m)
{
	m->calls += !r->launch || m->launch != r->launch;
	m->launch = r->launch;
	m->ring[m->op_index & (RING - 1)].call = m->calls;
}

static int64_t later_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * Returns the time of a call. A call right after another one (twice, swapped) is a little later,
 * because the host needs time for it.
 */
static int64_t call_time(const struct rank *r, bool is_grouped)
{
	if (r->c->now_ns > r->call_ns)
		return r->c->now_ns;
	return r->call_ns + (is_grouped ? 1 : CALL_NS);
}

/* Records the op as the agent does, including its numbers. */
static struct cw_op *note_op(struct rank *r, struct member *m, const struct suite_call *call,
			     int32_t peer, uint64_t group)
{
	struct cw_op *op;

	make_room(m, cw_op_is_p2p(call->kind));
	r->call_ns = call_time(r, group != 0);
	op = member_op(m, ++m->op_index);
	note_place(r, m);
	*op = (struct cw_op){
		.kind = call->kind,
		.dtype = call->dtype,
		.redop = call->redop,
		.progress = CW_PROGRESS_ENQUEUED,
		.flags = group ? CW_OPF_GROUPED : 0,
		.root = call->root,
		.peer = peer,
		.count = call->count,
		.bytes = bytes_of(call),
		.op_index = m->op_index,
		.group_id = group,
		.stream = 0x1000 + call->stream,
		.tid = 100 + r->index,
		/* The calls of a graph's launch count as one. */
		.enter_ns = r->launch ? r->c->now_ns : r->call_ns,
	};
	m->moved_ns = r->c->now_ns;
	if (cw_op_blocks_host(call->kind)) {
		op->progress = CW_PROGRESS_UNKNOWN;
		op->flags |= CW_OPF_NO_COUNT; /* agents set this flag, too */
	} else if (cw_op_is_p2p(call->kind)) {
		count_p2p(m, op);
	} else if (call->count == 0 || m->comm->nranks < 2) {
		op->flags |= CW_OPF_NO_COUNT;
		op->progress = CW_PROGRESS_COMPLETED;
	} else {
		op->coll_seq = ++m->entered;
	}
	record_op(m, op);
	member_advance(m);
	return op;
}

/* Records that the calls of an item return. The history of collectives then grows by one step. */
static void note_return(struct member *m, uint64_t first_op, uint32_t n)
{
	uint64_t sum = 0, before = m->returned;

	for (uint32_t i = 0; i < n; i++) {
		struct cw_op *op = member_op(m, first_op + i);

		op->flags |= CW_OPF_RETURNED;
		op->return_ns = later_ns(m->rank->c->now_ns, op->enter_ns) + CALL_NS;
		if (!op->coll_seq)
			continue;
		sum += cw_signature(op->kind, op->dtype, op->redop, op->root, op->count, op->bytes);
		m->returned = op->coll_seq;
	}
	if (m->returned == before)
		return;
	m->hash = cw_hash_commit(m->hash, sum);
	checkpoint_note(m, before);
}

static uint32_t n_real(struct member *m, uint64_t first_op, uint32_t n)
{
	uint32_t real = 0;

	for (uint32_t i = 0; i < n; i++)
		real += !(member_op(m, first_op + i)->flags & CW_OPF_NO_COUNT);
	return real;
}

static void launch(struct rank *r, struct item *item)
{
	note_return(item->m, item->first_op, item->n_ops);
	device_enqueue(item);
}

/* Launches one item. Waits if the device has no room. */
static void launch_ops(struct rank *r, struct member *m, uint64_t first_op, uint32_t n,
		       const struct suite_call *call)
{
	struct item *item;
	uint32_t open;

	if (n == 0)
		return;
	open = n_real(m, first_op, n);
	if (open == 0) {
		note_return(m, first_op, n);
		return;
	}
	item = cw_or_exit(calloc(1, sizeof(*item)));
	*item = (struct item){ .rank = r,
			       .m = m,
			       .stream = call->stream % STREAMS,
			       .first_op = first_op,
			       .n_ops = n,
			       .n_open = open,
			       .ns = call->takes_ns + r->wedge_ns,
			       .is_wedged = r->is_wedging };
	r->is_wedging = false;
	r->wedge_ns = 0;
	if (!r->waiting && !r->launch && connect_is_needed(item)) {
		connect_wait(r, item);
		return;
	}
	if (r->n_items < OPEN_MAX || r->waiting || r->launch) {
		launch(r, item);
		return;
	}
	r->waiting = item;
	r->host = HOST_LAUNCH;
}

void call_resume(struct rank *r)
{
	struct item *item = r->waiting;

	r->waiting = NULL;
	if (item)
		launch(r, item);
	record_return(r);
}

/*
 * Returns the comm rank of the peer of a send or receive; -1 = there is no peer, so skip the call.
 */
static int32_t peer_of(const struct member *m, const struct suite_call *call)
{
	const struct suite_comm_slot slot = { .place = m->comm_rank, .nranks = m->comm->nranks };

	return (int32_t)suite_peer(call, &slot);
}

/* Records the ops of one call, and returns their number. */
static uint32_t note_call(struct rank *r, struct member *m, const struct suite_call *call,
			  uint64_t group)
{
	uint32_t n = 0;

	if (!cw_op_is_p2p(call->kind)) {
		(void)note_op(r, m, call, CW_PEER_NONE, group);
		return 1;
	}
	if (call->peer_kind == SUITE_PEER_EACH) {
		for (uint32_t p = 0; p < m->comm->nranks && n < GROUP_MAX; p++)
			if (p != m->comm_rank) {
				(void)note_op(r, m, call, (int32_t)p, group);
				n++;
			}
		return n;
	}
	if (peer_of(m, call) < 0)
		return 0;
	(void)note_op(r, m, call, peer_of(m, call), group);
	return 1;
}

static bool is_usable(const struct member *m)
{
	return m && m->state == CW_COMM_READY;
}

void call_fail(struct rank *r, const struct suite_call *call)
{
	struct member *m = member_of(r, call->family);
	int32_t peer = cw_op_is_p2p(call->kind) && m ? peer_of(m, call) : CW_PEER_NONE;
	struct peer_count before = { 0 };
	struct cw_op *op;

	if (!is_usable(m) || (cw_op_is_p2p(call->kind) && peer < 0))
		return;
	if (m->peers && peer >= 0)
		before = m->peers[peer];
	op = note_op(r, m, call, peer, 0);
	op->flags |= CW_OPF_RETURNED | CW_OPF_DROPPED;
	op->progress = CW_PROGRESS_UNKNOWN;
	op->result = NCCL_SYSTEM_ERROR;
	op->return_ns = op->enter_ns + CALL_NS;
	if (op->coll_seq)
		m->entered--;
	if (peer >= 0) {
		m->sends -= call->kind == CW_OP_SEND;
		m->recvs -= call->kind == CW_OP_RECV;
		m->peers[peer] = before;
	}
	m->last_result = NCCL_SYSTEM_ERROR;
	member_advance(m);
	record_failed(r, NCCL_SYSTEM_ERROR);
}

/* Launches those ops of a group that belong to one comm, on the stream of the first one. */
static void make_comm_calls(struct rank *r, const struct suite_call *calls, uint32_t n,
			    uint32_t family, uint64_t group)
{
	struct member *m = member_of(r, family);
	const struct suite_call *first = NULL;
	uint64_t first_op;
	uint32_t n_ops = 0;

	if (!is_usable(m))
		return;
	first_op = m->op_index + 1;
	for (uint32_t i = 0; i < n; i++) {
		if (calls[i].family != family)
			continue;
		first = first ? first : &calls[i];
		n_ops += note_call(r, m, &calls[i], group);
	}
	if (n_ops > RING / 2)
		fail(r->c, -EINVAL);
	else
		launch_ops(r, m, first_op, n_ops, first);
}

void call_make(struct rank *r, const struct suite_call *calls, uint32_t n, bool is_group)
{
	uint64_t group = is_group ? r->c->next_order + 1 : 0;
	uint32_t done = 0;

	if (is_group)
		record_group(r);
	for (uint32_t i = 0; i < n; i++) {
		if (done & (1u << calls[i].family))
			continue;
		done |= 1u << calls[i].family;
		make_comm_calls(r, calls, n, calls[i].family, group);
	}
	record_launch(r);
	if (r->host != HOST_LAUNCH)
		record_return(r);
}

/* ---- calls that wait for all members ---- */

/* Returns how long the call takes after all members have entered. */
static int64_t barrier_takes_ns(const struct comm *comm, uint32_t kind)
{
	if (kind == 0 && trait_sizes_differ(comm))
		return SUITE_FOREVER;
	return comm->jam_ns == SUITE_FOREVER ? SUITE_FOREVER : comm->jam_ns + 2 * MS;
}

static void jam_barrier(struct rank *r, struct comm *comm)
{
	if (r->is_wedging)
		comm->jam_ns = SUITE_FOREVER;
	else if (r->wedge_ns > comm->jam_ns)
		comm->jam_ns = r->wedge_ns;
	r->is_wedging = false;
	r->wedge_ns = 0;
}

static void open_barrier(struct comm *comm, uint32_t kind)
{
	int64_t ns = barrier_takes_ns(comm, kind);

	if (ns == SUITE_FOREVER)
		return;
	comm->inside[kind] = 0;
	comm->jam_ns = 0;
	for (uint32_t i = 0; i < comm->nranks; i++) {
		struct rank *r = comm->members[i].rank;

		if (r->host == HOST_BARRIER && r->barrier_member == &comm->members[i])
			host_wake_at(r, r->c->now_ns + ns);
	}
}

static uint32_t barrier_index(unsigned kind)
{
	return kind == CW_OP_COMM_INIT ? 0 : kind == CW_OP_COMM_SPLIT ? 1 : 2;
}

void call_block_host(struct rank *r, const struct suite_call *call)
{
	struct member *m = member_of(r, call->family);
	uint32_t kind = barrier_index(call->kind);

	if (!m || (kind == 0 ? m->state != CW_COMM_FREE : m->state != CW_COMM_READY))
		return;
	if (kind == 0)
		m->state = CW_COMM_INIT;
	if (kind == 2)
		m->state = CW_COMM_FINALIZING;
	(void)note_op(r, m, call, CW_PEER_NONE, 0);
	record_block(m, call->kind);
	r->host = HOST_BARRIER;
	r->barrier_member = m;
	r->barrier_kind = kind;
	r->barrier_call = *call;
	jam_barrier(r, m->comm);
	if (++m->comm->inside[kind] == m->comm->nranks)
		open_barrier(m->comm, kind);
}

void call_refuse(struct rank *r, const struct suite_call *call)
{
	struct member *m = member_of(r, call->family);
	bool is_making = call->kind == CW_OP_COMM_INIT;
	struct cw_op *op;

	if (!m || m->state != (is_making ? CW_COMM_FREE : CW_COMM_READY))
		return;
	if (is_making)
		m->state = CW_COMM_INIT;
	op = note_op(r, m, call, CW_PEER_NONE, 0);
	record_block(m, call->kind);
	op->flags |= CW_OPF_RETURNED | CW_OPF_DROPPED;
	op->result = NCCL_SYSTEM_ERROR;
	op->return_ns = r->c->now_ns;
	m->last_result = NCCL_SYSTEM_ERROR;
	m->moved_ns = r->c->now_ns;
	if (is_making)
		m->state = CW_COMM_FAILED;
	member_advance(m);
	record_refused(m, NCCL_SYSTEM_ERROR);
}

void call_leave_barrier(struct rank *r)
{
	struct member *m = r->barrier_member, *child;
	struct cw_op *op = member_op(m, m->op_index);

	op->flags |= CW_OPF_RETURNED;
	op->return_ns = r->c->now_ns;
	m->moved_ns = r->c->now_ns;
	member_advance(m);
	if (r->barrier_kind == 0)
		m->state = CW_COMM_READY;
	if (r->barrier_kind == 2)
		m->state = CW_COMM_DESTROYED;
	record_unblock(m, r->barrier_call.kind);
	child = r->barrier_kind == 1 ? member_of(r, r->barrier_call.child) : NULL;
	if (child) {
		child->state = CW_COMM_READY;
		record_ready(child);
	}
	r->barrier_member = NULL;
}
