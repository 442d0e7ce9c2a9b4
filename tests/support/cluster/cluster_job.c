/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_job.h"

#include "identity/job_label.h"
#include "model/signature.h"

#define COMM_ID UINT64_C(0xc0ffee)
#define COUNT 1024u
#define MAX_WINDOW 2049u

static unsigned node_of(const struct cluster *c, unsigned rank)
{
	unsigned n = c->n_rank_nodes ? c->n_rank_nodes : c->n_nodes;

	return (c->first_node + rank * n / c->n_ranks) % c->n_nodes;
}

static int32_t pid_of(const struct cluster *c, unsigned rank)
{
	return (int32_t)(1000 + rank + (c->uid - CLUSTER_UID));
}

static uint64_t comm_of(const struct cluster *c)
{
	return COMM_ID + 2 * (c->uid - CLUSTER_UID);
}

static bool is_stuck(const struct cluster *c)
{
	return c->fault != FAULT_NONE && c->fault != FAULT_WRONG_REDOP &&
	       c->fault != FAULT_LEFT_MESSAGE;
}

/* Returns which of the two histories of calls the rank has: 1 = that with the wrong call. */
static unsigned history_of(const struct cluster *c, unsigned rank)
{
	return c->fault_seq && rank == c->fault_rank;
}

static bool has_entered(const struct cluster *c, unsigned rank)
{
	if (c->fault == FAULT_NODE_LOST)
		return node_of(c, rank) != c->culprit;
	return is_stuck(c) && (rank != c->culprit || c->fault == FAULT_MISMATCH);
}

/* Makes an op with ages instead of times, as messages have them. */
static struct cw_msg_op make_op(const struct cluster *c, unsigned rank, uint64_t seq,
				bool is_pending)
{
	int64_t age = is_pending
			      ? c->now_ns - c->fault_ns
			      : c->now_ns - c->step_ns + (int64_t)(c->seq - seq) * c->step_every_ns;
	struct cw_msg_op op = {
		.kind = CW_OP_ALL_REDUCE,
		.dtype = CW_DTYPE_FP32,
		.redop = CW_REDOP_SUM,
		.progress = is_pending ? CW_PROGRESS_REACHED : CW_PROGRESS_COMPLETED,
		.flags = CW_OPF_RETURNED,
		.root = CW_PEER_NONE,
		.peer = CW_PEER_NONE,
		.count = COUNT,
		.bytes = COUNT * 4,
		.coll_seq = seq,
		.op_index = seq,
		.enter_age_ns = age,
		.return_age_ns = age,
	};

	if (is_pending && rank == c->culprit && c->fault == FAULT_MISMATCH) {
		op.count /= 2;
		op.bytes /= 2;
	}
	if (history_of(c, rank) && seq == c->fault_seq)
		op.redop = CW_REDOP_MAX;
	return op;
}

/*
 * Copies the newest checkpoints, which a node sends. A leader does not depend on which ones they
 * are.
 */
static void copy_checkpoints(const struct cluster *c, unsigned rank,
			     struct cw_checkpoint ret[CW_SNAP_CHECKPOINTS])
{
	const struct cw_rec_checkpoint *all = c->checkpoints[history_of(c, rank)];
	unsigned n = 0;

	for (unsigned level = 0; level < CW_CHECKPOINT_LEVELS; level++)
		for (uint64_t back = 0; back < 2; back++) {
			uint64_t at = (c->seq >> 3 * (level + 1)) - back;
			const struct cw_rec_checkpoint *p = &all[level * CW_CHECKPOINTS_PER_LEVEL +
								 at % CW_CHECKPOINTS_PER_LEVEL];

			ret[n++] = (struct cw_checkpoint){ p->coll_seq, p->hash };
		}
}

/* Describes a rank that is inside the call that makes its communicator. */
static void fill_newcomer(const struct cluster *c, unsigned rank, struct cw_msg_member *m,
			  struct cw_msg_op *op)
{
	*op = (struct cw_msg_op){ .kind = CW_OP_COMM_INIT,
				  .dtype = CW_DTYPE_NONE,
				  .redop = CW_REDOP_NONE,
				  .root = CW_PEER_NONE,
				  .peer = CW_PEER_NONE,
				  .enter_age_ns = c->now_ns - c->fault_ns };
	*m = (struct cw_msg_member){
		.comm_id = comm_of(c) + 1,
		.name = "world",
		.nranks = c->n_ranks,
		.comm_rank = (int32_t)rank,
		.state = CW_COMM_INIT,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED,
		.progress_age_ns = c->now_ns - c->fault_ns,
		.last_error = "",
		.pending = op,
		.pending_count = 1,
	};
}

/*
 * Describes point-to-point messages: one per step from the rank before the culprit to the culprit.
 * The culprit has not received the last one.
 */
static void fill_messages(const struct cluster *c, unsigned rank, struct cw_msg_member *m)
{
	static struct cw_p2p_peer sender, receiver;

	m->known |= CW_KNOWN_P2P;
	if (rank != c->culprit && rank + 1 != c->culprit)
		return;
	sender = (struct cw_p2p_peer){ .peer = c->culprit, .sends = c->seq };
	receiver = (struct cw_p2p_peer){ .peer = c->culprit - 1, .recvs = c->seq - 1 };
	m->p2p = rank == c->culprit ? &receiver : &sender;
	m->n_p2p = 1;
}

static void fill_member(const struct cluster *c, unsigned rank, struct cw_msg_member *m,
			struct cw_msg_op *op, struct cw_checkpoint *checkpoints)
{
	bool entered = has_entered(c, rank);

	if (c->fault == FAULT_NEVER_CALLED) {
		fill_newcomer(c, rank, m, op);
		return;
	}
	*m = (struct cw_msg_member){
		.comm_id = comm_of(c),
		.name = "world",
		.nranks = c->n_ranks,
		.comm_rank = (int32_t)rank,
		.state = CW_COMM_READY,
		.coll_entered = c->seq + entered,
		.coll_returned = c->seq + entered,
		.coll_reached = c->seq + entered,
		.coll_completed = c->seq,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_REACHED |
			 CW_KNOWN_COMPLETED,
		.op_index = c->seq + entered,
		.progress_age_ns = c->now_ns - (entered ? c->fault_ns : c->step_ns),
		.interval_ns = (uint64_t)c->step_every_ns,
		.last_error = "",
		.checkpoints = checkpoints,
		.n_checkpoints = CW_SNAP_CHECKPOINTS,
	};
	copy_checkpoints(c, rank, checkpoints);
	if (c->fault == FAULT_LEFT_MESSAGE)
		fill_messages(c, rank, m);
	*op = make_op(c, rank, c->seq + entered, entered);
	m->last = op;
	if (entered) {
		m->pending = op;
		m->pending_count = 1;
	}
}

static void fill_rank(const struct cluster *c, unsigned rank, struct cw_msg_rank *r,
		      struct cw_msg_member *member)
{
	bool is_dead = c->fault == FAULT_KILLED && rank == c->culprit;
	bool is_idle = is_stuck(c) && rank == c->culprit;

	*r = (struct cw_msg_rank){
		.rank = (int32_t)rank,
		.world_size = (int32_t)c->n_ranks,
		.local_rank = -1,
		.rank_source = "RANK",
		.pid = pid_of(c, rank),
		.start_ticks = 77 + rank,
		.uid = c->uid,
		.liveness = is_dead ? CW_LIVE_KILLED : CW_LIVE_ALIVE,
		.term_signal = is_dead ? 9 : 0,
		.flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
		.ended_age_ns = is_dead ? c->now_ns - c->fault_ns : 0,
		.host_activity_age_ns = is_idle ? c->now_ns - c->fault_ns : 0,
		.command = "train",
		.host_activity_by = "cpu",
		.cause_command = "",
		.cause_group = "",
		.nonfinite_input = "",
		.members = member,
		.n_members = 1,
	};
	if (is_idle && c->fault == FAULT_NEVER_CALLED) {
		r->flags = 0;
		r->n_members = 0;
	}
	if (c->end)
		c->end(c, rank, r);
}

/*
 * True if the node sees the rank. It sees a rank without a record only after a request to look for
 * it.
 */
static bool is_seen(const struct network_node *n, const struct cluster *c, unsigned rank)
{
	return node_of(c, rank) == n->index &&
	       (c->fault != FAULT_NEVER_CALLED || rank != c->culprit || n->searches);
}

static uint64_t job_hash_of(const struct cluster *c)
{
	return c->uid == CLUSTER_UID ? CLUSTER_JOB_HASH : cw_job_hash(CLUSTER_LABEL, c->uid);
}

static void publish(struct network_node *n, const struct cluster *c)
{
	struct cw_msg_member members[64];
	struct cw_msg_rank ranks[64];
	struct cw_msg_op ops[64];
	struct cw_checkpoint checkpoints[64][CW_SNAP_CHECKPOINTS];
	struct cw_msg_digest d = { .job_hash = job_hash_of(c),
				   .label = CLUSTER_LABEL,
				   .uid = c->uid,
				   .policy = "training",
				   .ranks = ranks };

	for (unsigned r = 0; r < c->n_ranks && !c->is_gone; r++) {
		if (!is_seen(n, c, r))
			continue;
		fill_member(c, r, &members[d.n_ranks], &ops[d.n_ranks], checkpoints[d.n_ranks]);
		fill_rank(c, r, &ranks[d.n_ranks], &members[d.n_ranks]);
		d.n_ranks++;
	}
	if (d.n_ranks == 0)
		return;
	(void)network_publish(n, &d);
}

void cluster_job_publish(struct cluster *c, struct network_node *n)
{
	publish(n, c);
	if (c->guest)
		publish(n, c->guest);
}

void cluster_job_answer_windows(struct cluster *host, struct network_node *n, const char *from,
				const struct cw_msg_window_request *q)
{
	const struct cluster *guest = host->guest;
	const struct cluster *c = guest && guest->uid == q->uid ? guest : host;
	struct cw_msg_window windows[64];
	static struct cw_msg_op ops[64][MAX_WINDOW];
	uint64_t oldest = c->seq > c->ops_recorded ? c->seq - c->ops_recorded + 1 : 1;
	uint64_t first = q->to_seq ? q->from_seq : c->seq > 3 ? c->seq - 2 : 1;
	uint64_t last = q->to_seq ? q->to_seq : c->seq;
	struct cw_message msg = {
		.type = CW_MSG_WINDOW_REPLY,
		.window_reply = { .id = q->id, .job_hash = q->job_hash, .windows = windows }
	};
	unsigned n_windows = 0;

	for (unsigned r = 0; r < c->n_ranks; r++) {
		unsigned k = 0;

		if (node_of(c, r) != n->index)
			continue;
		for (uint64_t seq = first > oldest ? first : oldest;
		     seq <= last && k < q->max_ops && k + 1 < MAX_WINDOW; seq++)
			ops[n_windows][k++] = make_op(c, r, seq, false);
		if (has_entered(c, r))
			ops[n_windows][k++] = make_op(c, r, c->seq + 1, true);
		windows[n_windows] = (struct cw_msg_window){ .comm_id = comm_of(c),
							     .pid = pid_of(c, r),
							     .start_ticks = 77 + r,
							     .comm_rank = (int32_t)r,
							     .ops = ops[n_windows],
							     .n_ops = k };
		n_windows++;
	}
	msg.window_reply.n_windows = n_windows;
	network_answer(n, from, &msg);
}

/* Does the agent's work for a collective that returns. */
static void commit(struct cluster *c, unsigned history, const struct cw_msg_op *op)
{
	int slot = cw_checkpoint_slot(op->coll_seq - 1, op->coll_seq);

	c->hash[history] =
		cw_hash_commit(c->hash[history], cw_signature(op->kind, op->dtype, op->redop,
							      op->root, op->count, op->bytes));
	if (slot >= 0)
		c->checkpoints[history][slot] =
			(struct cw_rec_checkpoint){ .coll_seq = op->coll_seq,
						    .hash = c->hash[history] };
}

void cluster_job_train(struct cluster *c)
{
	while (!is_stuck(c) && c->now_ns - c->step_ns >= c->step_every_ns) {
		struct cw_msg_op usual, odd;

		c->step_ns += c->step_every_ns;
		c->seq++;
		usual = make_op(c, CLUSTER_MAX_RANKS, c->seq, false);
		odd = make_op(c, c->fault_rank, c->seq, false);
		commit(c, 0, &usual);
		commit(c, 1, &odd);
	}
}

void cluster_fault(struct cluster *c, enum cluster_fault fault, unsigned culprit)
{
	c->fault = fault;
	c->culprit = culprit;
	c->fault_ns = c->now_ns;
	if (fault == FAULT_WRONG_REDOP) {
		c->fault_seq = c->seq + 1;
		c->fault_rank = culprit;
	}
}

void cluster_heal(struct cluster *c)
{
	c->fault = FAULT_NONE;
	c->seq++;
	c->step_ns = c->now_ns;
}
