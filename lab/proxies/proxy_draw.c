/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/proxies/proxy_draw.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/facts.h"
#include "record/record_layout.h"

#define COMMS 3u
#define ROUND_NS INT64_C(10000000)
/* A daemon reads the connections once in READ_EVERY rounds, and sends a digest once a second. */
#define READ_EVERY 25u
#define DIGEST_EVERY 100u
/* A daemon begins to read when no counter of the communicator has moved for a second. */
#define FIRST_READ 100u
/*
 * If no part has moved in QUIET rounds, the job is stuck. In each round, a part that can move does
 * so with a chance of 0.8.
 */
#define QUIET 60u
#define LONGEST 20000u
#define START_NS (INT64_C(1000) * 1000000000)
#define FIRST_SEQ 40u

static const char *const fault_names[] = {
	[PROXY_FAULT_STALL] = "stall",
	[PROXY_FAULT_ONE_WAY] = "one way",
	[PROXY_FAULT_CUT] = "cut",
	[PROXY_FAULT_SLOW] = "100 times slow",
	[PROXY_FAULT_LATE] = "late",
	[PROXY_FAULT_UNLAUNCHED] = "kernel never launched",
	[PROXY_FAULT_GPU_STOPS] = "GPU stops",
	[PROXY_FAULT_POOL] = "pool exhausted",
	[PROXY_FAULT_NONE] = "none",
	[PROXY_FAULT_STOPPED] = "rank stopped",
	[PROXY_FAULT_ABSENT] = "rank absent",
	[PROXY_FAULT_MISMATCH] = "mismatch",
};

const char *proxy_fault_name(enum proxy_fault fault)
{
	return fault_names[fault];
}

/* The state of one end of a link, as a daemon last read it. */
struct reading {
	bool is_used;
	struct proxy_end end;
	uint32_t held;
};

struct job {
	struct proxy_random random;
	struct proxy_truth *truth;
	uint32_t n_ranks, n_nodes, n_comms;
	uint32_t node[PROXY_MAX_RANKS];
	struct proxy_comm comms[COMMS];
	uint32_t rank[COMMS][PROXY_MAX_RANKS]; /* rank of each member */
	bool is_detailed[COMMS];
	bool is_one_stream, knows_progress, is_unlaunched_reached;
	uint32_t culprit; /* member of comm truth->comm */
	uint32_t bad_op;
	uint32_t read_at[PROXY_MAX_RANKS];
	struct reading readings[COMMS][PROXY_MAX_LINKS][2];
	uint32_t now;
	uint32_t moved; /* round of the last move in the communicator of the fault */
};

/* ---- the job ---- */

static uint32_t between(struct job *j, uint32_t low, uint32_t high)
{
	return low + proxy_below(&j->random, high - low + 1);
}

static void draw_ranks(struct job *j)
{
	uint32_t per_node = 1;

	j->n_ranks = between(j, 4, PROXY_MAX_RANKS);
	if (proxy_chance(&j->random, 0.15)) {
		per_node = 2;
		j->n_ranks &= ~1u;
	}
	j->n_nodes = j->n_ranks / per_node;
	for (uint32_t r = 0; r < j->n_ranks; r++)
		j->node[r] = r / per_node;
}

static void draw_members(struct job *j, uint32_t k)
{
	struct proxy_comm *c = &j->comms[k];
	uint32_t most = j->n_nodes, n = k == 0 || most < 4 ? most : between(j, 3, most);
	uint32_t per_node = j->n_ranks / j->n_nodes, first = proxy_below(&j->random, most);

	c->n = 0;
	/* A communicator has all ranks of its nodes. The members are in the order of the nodes. */
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < per_node; r++) {
			uint32_t rank = (first + i) % most * per_node + r;

			j->rank[k][c->n] = rank;
			c->host[c->n] = j->node[rank];
			c->order[c->n] = c->n;
			c->n++;
		}
}

/*
 * True if we take the snapshots after a fixed time, while the job still moves. With other faults we
 * wait until the job is stuck.
 */
static bool is_moving(enum proxy_fault fault)
{
	return fault == PROXY_FAULT_SLOW || fault == PROXY_FAULT_NONE;
}

static int draw_comm(struct job *j, uint32_t k)
{
	struct proxy_comm *c = &j->comms[k];
	bool has_several = j->n_ranks != j->n_nodes;
	uint32_t longer = is_moving(j->truth->fault) ? 4 : 1;

	draw_members(j, k);
	c->n_channels = between(j, 1, PROXY_MAX_CHANNELS);
	c->n_ops = between(j, 1, PROXY_MAX_OPS);
	/*
	 * On a node with several GPUs, NCCL's trees have edges inside the node. The model has no
	 * such edges, so we draw a ring.
	 */
	c->way = !has_several && proxy_chance(&j->random, 0.4) ? PROXY_TREE : PROXY_RING;
	c->kind = (enum proxy_kind)(c->way == PROXY_TREE ? PROXY_ALL_REDUCE
							 : proxy_below(&j->random, 4));
	c->root = proxy_below(&j->random, c->n);
	if (has_several && c->kind > PROXY_ALL_GATHER)
		c->kind = PROXY_ALL_REDUCE;
	c->is_rdma = proxy_chance(&j->random, 0.5);
	c->depth = proxy_chance(&j->random, 0.7) ? 8 : 4;
	j->is_detailed[k] = proxy_chance(&j->random, 0.85);
	/* A ring may visit the nodes in any order. */
	for (uint32_t i = c->n; c->way == PROXY_RING && !has_several && i > 1; i--) {
		uint32_t o = proxy_below(&j->random, i), kept = c->order[o];

		c->order[o] = c->order[i - 1];
		c->order[i - 1] = kept;
	}
	return proxy_comm_lay(c,
			      longer * (c->way == PROXY_TREE || c->kind > PROXY_ALL_GATHER
						? between(j, 8, 60)
						: between(j, 1, 6)),
			      between(j, 1, 2), proxy_chance(&j->random, 0.5), between(j, 1, 12));
}

/* ---- the fault ---- */

static void note_link(struct job *j, const struct proxy_link *l)
{
	struct proxy_truth *t = j->truth;

	t->links[t->n_links].from = j->rank[t->comm][l->from];
	t->links[t->n_links].to = j->rank[t->comm][l->to];
	t->links[t->n_links++].channel = l->channel;
}

/* Breaks a link: the network itself, or one of the two answers that the sender needs. */
static void break_link(struct job *j, struct proxy_link *l, uint32_t how, uint32_t from)
{
	bool is_rdma = j->comms[j->truth->comm].is_rdma;

	if (how == 0 || (how == 2 && !is_rdma)) {
		l->dead_from = from;
		l->dead_to = j->truth->fault == PROXY_FAULT_LATE ? LONGEST : UINT32_MAX;
	} else if (how == 1) {
		l->deaf_from = from;
	} else {
		l->blind_from = from;
	}
	note_link(j, l);
}

static bool draw_link_fault(struct job *j, uint32_t from)
{
	struct proxy_comm *c = &j->comms[j->truth->comm];
	struct proxy_link *l = &c->links[proxy_below(&j->random, c->n_links)];
	enum proxy_fault fault = j->truth->fault;
	uint32_t how = fault == PROXY_FAULT_STALL ? proxy_below(&j->random, 3) : 0;
	uint32_t a = c->host[l->from], b = c->host[l->to];

	if (l->is_local)
		return false;
	if (fault == PROXY_FAULT_SLOW) {
		l->speed /= 100;
		note_link(j, l);
		return true;
	}
	if (fault == PROXY_FAULT_STALL || fault == PROXY_FAULT_LATE) {
		break_link(j, l, how, from);
		return true;
	}
	for (uint32_t i = 0; i < c->n_links; i++) {
		struct proxy_link *o = &c->links[i];
		bool is_there = c->host[o->from] == a && c->host[o->to] == b;
		bool is_back = c->host[o->from] == b && c->host[o->to] == a;

		if (is_there || (is_back && fault == PROXY_FAULT_CUT))
			break_link(j, o, 0, from);
	}
	return true;
}

/* The call gives some of its parts to the proxy, and blocks before it gives the others. */
static void exhaust_pool(struct job *j)
{
	struct proxy_comm *c = &j->comms[j->truth->comm];
	struct proxy_end *ends[2 * PROXY_MAX_LINKS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->n_links; i++) {
		if (c->links[i].is_local)
			continue;
		if (c->links[i].from == j->culprit)
			ends[n++] = &c->links[i].out;
		if (c->links[i].to == j->culprit)
			ends[n++] = &c->links[i].in;
	}
	for (uint32_t i = n ? proxy_below(&j->random, n) : 0; i < n; i++)
		ends[i]->is_absent = true;
}

static bool draw_fault(struct job *j)
{
	struct proxy_comm *c = &j->comms[j->truth->comm];
	uint32_t from = proxy_below(&j->random, 30);

	j->culprit = proxy_below(&j->random, c->n);
	j->truth->rank = j->rank[j->truth->comm][j->culprit];
	j->bad_op = 0;
	switch (j->truth->fault) {
	case PROXY_FAULT_UNLAUNCHED:
		j->bad_op = proxy_below(&j->random, c->n_ops);
		c->never_launched[j->culprit] = j->bad_op;
		return true;
	case PROXY_FAULT_GPU_STOPS:
		c->gpu_dead_from[j->culprit] = from;
		return true;
	case PROXY_FAULT_POOL:
		exhaust_pool(j);
		c->n_called[j->culprit] = 1;
		return true;
	case PROXY_FAULT_NONE:
		for (uint32_t i = 0; i < c->n_links; i++)
			c->links[i].speed /= 20;
		return true;
	case PROXY_FAULT_STOPPED:
		c->proxy_is_dead[j->culprit] = true;
		return true;
	case PROXY_FAULT_ABSENT:
	case PROXY_FAULT_MISMATCH:
		c->n_called[j->culprit] = 0;
		return true;
	default:
		return draw_link_fault(j, from);
	}
}

/* ---- time ---- */

static void block_streams(struct job *j)
{
	bool is_busy[PROXY_MAX_RANKS] = { false };

	for (uint32_t k = 0; k < j->n_comms; k++) {
		struct proxy_comm *c = &j->comms[k];

		for (uint32_t m = 0; m < c->n; m++) {
			uint32_t rank = j->rank[k][m];

			c->is_blocked[m] = j->is_one_stream && is_busy[rank];
			is_busy[rank] |= proxy_comm_finished(c, m) < c->n_ops;
		}
	}
}

static bool step(struct job *j)
{
	bool moves = false;

	block_streams(j);
	for (uint32_t k = 0; k < j->n_comms; k++) {
		if (!proxy_comm_step(&j->comms[k], &j->random, j->now))
			continue;
		moves = true;
		if (k == j->truth->comm)
			j->moved = j->now;
	}
	j->now++;
	return moves;
}

static bool has_hung(const struct job *j)
{
	const struct proxy_comm *c = &j->comms[j->truth->comm];

	for (uint32_t m = 0; m < c->n; m++)
		if (proxy_comm_finished(c, m) < c->n_ops)
			return true;
	return false;
}

static uint32_t mean_held(const struct proxy_link *l)
{
	return (uint32_t)(l->waited / (l->out.done ? l->out.done : 1));
}

static void read_rank(struct job *j, uint32_t rank)
{
	for (uint32_t k = 0; k < j->n_comms; k++)
		for (uint32_t i = 0; i < j->comms[k].n_links; i++) {
			const struct proxy_link *l = &j->comms[k].links[i];

			if (j->rank[k][l->from] == rank)
				j->readings[k][i][0] = (struct reading){ .is_used = true,
									 .end = l->out,
									 .held = mean_held(l) };
			if (j->rank[k][l->to] == rank)
				j->readings[k][i][1] =
					(struct reading){ .is_used = true, .end = l->in };
		}
}

/* Runs until round `end`. Each daemon reads its rank for the last time in the last second. */
static void run_until(struct job *j, uint32_t end)
{
	for (uint32_t r = 0; r < j->n_ranks; r++) {
		j->read_at[r] = end - 1 - proxy_below(&j->random, DIGEST_EVERY);
		if (j->read_at[r] < j->now)
			j->read_at[r] = j->now;
	}
	while (j->now < end) {
		for (uint32_t r = 0; r < j->n_ranks; r++)
			if (j->read_at[r] == j->now)
				read_rank(j, r);
		(void)step(j);
	}
}

/* Runs until the job is stuck. Returns the round of the last move. */
static uint32_t run_until_quiet(struct job *j)
{
	uint32_t last = j->now;

	while (j->now < LONGEST / 2 && j->now - last < QUIET) {
		uint32_t now = j->now;

		if (step(j))
			last = now;
	}
	return last;
}

/* ---- the snapshot ---- */

static int64_t ns_of(uint32_t round)
{
	return START_NS + round * ROUND_NS;
}

static unsigned kind_of(const struct proxy_comm *c)
{
	switch (c->kind) {
	case PROXY_ALL_GATHER:
		return CW_OP_ALL_GATHER;
	case PROXY_BROADCAST:
		return CW_OP_BROADCAST;
	case PROXY_REDUCE:
		return CW_OP_REDUCE;
	default:
		return CW_OP_ALL_REDUCE;
	}
}

static bool is_culprit(const struct job *j, uint32_t k, uint32_t m)
{
	return k == j->truth->comm && m == j->culprit;
}

static struct cw_op op_of(const struct job *j, uint32_t k, uint32_t m, uint32_t nth)
{
	const struct proxy_comm *c = &j->comms[k];
	bool is_other = is_culprit(j, k, m) && j->truth->fault == PROXY_FAULT_MISMATCH;
	bool is_stuck_inside = is_culprit(j, k, m) && j->truth->fault == PROXY_FAULT_POOL;
	bool has_root = c->kind == PROXY_BROADCAST || c->kind == PROXY_REDUCE;
	struct cw_op op = {
		.kind = (uint8_t)(is_other ? CW_OP_REDUCE_SCATTER : kind_of(c)),
		.dtype = CW_DTYPE_FP32,
		.redop = c->kind == PROXY_ALL_GATHER || c->kind == PROXY_BROADCAST ? CW_REDOP_NONE
										   : CW_REDOP_SUM,
		.flags = is_stuck_inside ? 0 : CW_OPF_RETURNED,
		.root = has_root && !is_other ? (int32_t)c->root : -1,
		.peer = CW_PEER_NONE,
		.count = 1u << 20,
		.bytes = 4u << 20,
		.coll_seq = FIRST_SEQ + nth + 1,
		.op_index = FIRST_SEQ + nth + 1,
		.enter_ns = START_NS - (int64_t)(j->n_comms - k) * ROUND_NS + nth * (ROUND_NS / 4),
	};

	if (!is_stuck_inside)
		op.return_ns = op.enter_ns + 10000;
	return op;
}

static uint32_t add_rows(const struct job *j, uint32_t k, uint32_t m,
			 struct cw_snap_connection *rows)
{
	const struct proxy_comm *c = &j->comms[k];
	uint32_t read_at = j->read_at[j->rank[k][m]], n = 0;

	for (uint32_t i = 0; i < c->n_links; i++)
		for (unsigned side = 0; side < 2; side++) {
			const struct proxy_link *l = &c->links[i];
			const struct reading *got = &j->readings[k][i][side];
			const struct proxy_end *e = &got->end;
			bool sends = side == 0, has_ready = !sends || j->is_detailed[k];
			uint32_t same = read_at;

			if ((sends ? l->from : l->to) != m || l->is_local || !got->is_used ||
			    e->op >= c->n_called[m] || e->is_absent)
				continue;
			while (same >= FIRST_READ + READ_EVERY && same - READ_EVERY >= e->moved)
				same -= READ_EVERY;
			rows[n++] = (struct cw_snap_connection){
				.peer = sends ? l->to : l->from,
				.channel = l->channel,
				.flags = (sends ? CW_CONNECTION_SEND : 0u) |
					 (j->is_detailed[k] ? CW_CONNECTION_DETAILED : 0u),
				.seq = FIRST_SEQ + e->op + 1,
				.open_ops = c->n_ops - e->op,
				.steps = l->n_steps,
				.posted = e->posted,
				.ready = has_ready ? e->second : 0,
				.handed = e->third,
				.done = e->done,
				.moved_ns = ns_of(e->moved),
				.same_since_ns = ns_of(same),
				.held_ns = got->held * ROUND_NS,
			};
		}
	return n;
}

static int add_member(const struct job *j, struct cw_snapshot *snap, uint32_t comm, uint32_t k,
		      uint32_t m)
{
	const struct proxy_comm *c = &j->comms[k];
	struct cw_snap_connection rows[2 * PROXY_MAX_LINKS];
	bool is_other = is_culprit(j, k, m) && j->truth->fault == PROXY_FAULT_MISMATCH;
	uint32_t done = proxy_comm_finished(c, m), called = is_other ? 1 : c->n_called[m];
	bool is_held =
		c->is_blocked[m] || (done >= c->never_launched[m] && !j->is_unlaunched_reached);
	struct cw_op pending, last, window[PROXY_MAX_OPS];
	struct cw_snap_member member = {
		.rank = j->rank[k][m],
		.state = CW_COMM_READY,
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED |
			 (j->knows_progress ? CW_KNOWN_REACHED | CW_KNOWN_COMPLETED : 0u),
		.nranks = c->n,
		.interval_ns = 100000000,
		.connections = rows,
	};

	member.n_connections = add_rows(j, k, m, rows);
	member.coll_entered = FIRST_SEQ + called;
	member.coll_returned = FIRST_SEQ + called;
	member.coll_completed = FIRST_SEQ + done;
	member.coll_reached = FIRST_SEQ + done + (done < called && !is_held);
	member.op_index = member.coll_entered;
	member.pending_count = called - done;
	member.progress_ns = START_NS;
	if (done < called) {
		pending = op_of(j, k, m, done);
		pending.progress = !j->knows_progress ? CW_PROGRESS_UNKNOWN
				   : is_held          ? CW_PROGRESS_ENQUEUED
						      : CW_PROGRESS_REACHED;
		member.pending = &pending;
		if (!(pending.flags & CW_OPF_RETURNED))
			member.coll_returned--;
	}
	if (!j->knows_progress) {
		member.coll_completed = 0;
		member.coll_reached = 0;
		/*
		 * Without progress words, the host shows the hang only if a call does not return.
		 * So the newest call does not return.
		 */
		if (done < called) {
			pending = op_of(j, k, m, called - 1);
			pending.flags = 0;
			pending.return_ns = 0;
			member.coll_returned = FIRST_SEQ + called - 1;
		}
	}
	for (uint32_t i = 0; i < called; i++)
		window[member.n_window++] = op_of(j, k, m, i);
	member.window = window;
	member.window_ns = START_NS + ROUND_NS;
	if (called) {
		last = op_of(j, k, m, called - 1);
		member.last = &last;
	}
	return cw_snapshot_set_member(snap, comm, m, &member);
}

static int make_snapshot(const struct job *j, struct cw_snapshot **ret)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t index;
	int r = snap ? cw_snapshot_set_job(snap, "model", "RANK") : -ENOMEM;

	if (r < 0)
		goto out;
	snap->now_ns = ns_of(j->now);
	snap->ranks_expected = j->n_ranks;
	for (uint32_t i = 0; i < j->n_nodes && r == 0; i++) {
		const char name[] = { 'n', 'o', 'd', 'e', '-', (char)('a' + (int)i), '\0' };

		r = cw_snapshot_add_node(snap, name, &index);
		if (r == 0) {
			snap->nodes[index].state = CW_NODE_REPORTING;
			snap->nodes[index].last_digest_ns = snap->now_ns;
		}
	}
	for (uint32_t i = 0; i < j->n_ranks && r == 0; i++) {
		bool is_stopped = j->truth->fault == PROXY_FAULT_STOPPED && i == j->truth->rank;
		struct cw_snap_rank rank = {
			.rank = (int32_t)i,
			.node = j->node[i],
			.pid = 1000 + (int32_t)i,
			.start_ticks = 5000 + i,
			.liveness = is_stopped ? CW_LIVE_STOPPED : CW_LIVE_ALIVE,
			.flags = CW_RANKF_HAS_RECORD | CW_RANKF_BEATING,
			.sampled_ns = ns_of(j->read_at[i]),
			.host_activity_ns = ns_of(j->read_at[i]),
			.host_activity_by = "cpu",
			.nccl_version = 22907,
		};

		r = cw_snapshot_add_rank(snap, &rank, &index);
	}
	for (uint32_t k = 0; k < j->n_comms && r == 0; k++) {
		struct cw_snap_comm comm = { .id = 77 + k, .nranks = j->comms[k].n, .instance = 1 };

		r = cw_snapshot_add_comm(snap, &comm, &index);
		for (uint32_t m = 0; m < j->comms[k].n && r == 0; m++)
			r = add_member(j, snap, index, k, m);
	}
out:
	if (r < 0) {
		cw_snapshot_free(snap);
		return r;
	}
	*ret = snap;
	return 0;
}

/* ---- a case ---- */

static int draw_job(struct job *j, enum proxy_fault fault)
{
	int r = 0;

	j->truth->fault = fault;
	draw_ranks(j);
	j->knows_progress = proxy_chance(&j->random, 0.75);
	/* Without progress words, the host shows the hang only in the one call that blocks it. */
	j->n_comms = j->knows_progress ? between(j, 1, COMMS) : 1;
	j->is_one_stream = proxy_chance(&j->random, 0.5);
	j->is_unlaunched_reached = proxy_chance(&j->random, 0.5);
	for (uint32_t k = 0; k < j->n_comms && r == 0; k++)
		r = draw_comm(j, k);
	j->truth->comm = proxy_below(&j->random, j->n_comms);
	return r;
}

/* Runs the job into its fault. Returns false if the fault did no harm. */
static int run_case(struct job *j, struct proxy_case *c, bool *ret_hung)
{
	uint32_t last;
	int r = 0;

	*ret_hung = false;
	if (is_moving(j->truth->fault)) {
		run_until(j, 1000 + proxy_below(&j->random, 1500));
		*ret_hung = has_hung(j);
		return *ret_hung ? make_snapshot(j, &c->late) : 0;
	}
	last = run_until_quiet(j);
	if (!has_hung(j))
		return 0;
	*ret_hung = true;
	run_until(j, (last > FIRST_READ ? last : FIRST_READ) + DIGEST_EVERY +
			     proxy_below(&j->random, 90) + 1);
	if (j->now - j->moved < 2 * DIGEST_EVERY)
		r = make_snapshot(j, &c->early);
	if (r == 0) {
		run_until(j, j->now + 350 + proxy_below(&j->random, 400));
		r = make_snapshot(j, &c->late);
	}
	return r;
}

int proxy_case_draw(uint64_t seed, enum proxy_fault fault, struct proxy_case *ret)
{
	struct job *j = calloc(1, sizeof(*j));
	bool has_hung = false;
	int r = j ? 0 : -ENOMEM;

	*ret = (struct proxy_case){ 0 };
	for (uint64_t attempt = 0; r == 0 && !has_hung; attempt++) {
		memset(j, 0, sizeof(*j));
		ret->truth = (struct proxy_truth){ 0 };
		j->truth = &ret->truth;
		j->random.state = seed * 1000003 + attempt * 7919 + fault;
		r = draw_job(j, fault);
		if (r == 0 && draw_fault(j))
			r = run_case(j, ret, &has_hung);
		for (uint32_t k = 0; k < COMMS; k++)
			proxy_comm_fini(&j->comms[k]);
	}
	free(j);
	if (r < 0)
		proxy_case_fini(ret);
	return r;
}

void proxy_case_fini(struct proxy_case *c)
{
	cw_snapshot_free(c->early);
	cw_snapshot_free(c->late);
	*c = (struct proxy_case){ 0 };
}
