/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a rank: its agent's counters, read at one instant, as a daemon samples and a
 * leader joins them (digest/digest.c, leader/snapshot_build.c).
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "model/facts.h"
#include "suite/cluster/cluster_state.h"

#define NODE_SILENT_NS (10 * S)
#define TOGETHER_NS (2 * S)
#define SAMPLE_GRID_NS (250 * MS)
#define WALL_NS (INT64_C(1800000000) * S) /* some day of 2027 */

/* ---- a sample ---- */

/* The daemon notices a movement at its next reading: four times a second. */
static int64_t noticed_ns(const struct rank *r, int64_t ns)
{
	int64_t late = (ns - r->c->start_ns - r->sample_phase_ns) % SAMPLE_GRID_NS;

	if (late < 0)
		late += SAMPLE_GRID_NS;
	ns += late ? SAMPLE_GRID_NS - late : 0;
	return ns < r->c->now_ns ? ns : r->c->now_ns;
}

/* What happened before the daemon began, it saw when it began. */
static int64_t remembered_ns(const struct rank *r, int64_t ns)
{
	int64_t since_ns = r->c->nodes[r->node].since_ns;

	if (since_ns < r->c->daemons_since_ns)
		since_ns = r->c->daemons_since_ns;
	return ns > since_ns ? ns : since_ns;
}

static int64_t median_interval(const struct view_member *v)
{
	int64_t sorted[INTERVALS];
	uint32_t n = v->n_intervals < INTERVALS ? v->n_intervals : INTERVALS;

	if (n == 0)
		return 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i;

		for (; at && sorted[at - 1] > v->intervals[i]; at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = v->intervals[i];
	}
	return sorted[n / 2];
}

static void update_rhythm(struct view_member *v, const struct member *m, int64_t now)
{
	uint64_t done = m->entered ? m->completed : m->first_open - 1;

	if (m->entered && m->rank->c->s->has_no_progress)
		done = m->returned;
	if (done > v->done) {
		if (v->done_ns && now > v->done_ns)
			v->intervals[v->n_intervals++ % INTERVALS] =
				(now - v->done_ns) / (int64_t)(done - v->done);
		v->done_ns = now;
	}
	v->done = done;
}

static int sample_p2p(struct member *m)
{
	struct cw_snap_member *v = &m->view.m;

	v->n_p2p = 0;
	if (!m->peers)
		return 0;
	if (!v->p2p)
		v->p2p = calloc(m->comm->nranks, sizeof(*v->p2p));
	if (!v->p2p)
		return -ENOMEM;
	for (uint32_t i = 0; i < m->comm->nranks; i++)
		if (m->peers[i].sends || m->peers[i].recvs)
			v->p2p[v->n_p2p++] = (struct cw_p2p_peer){ .peer = i,
								   .sends = m->peers[i].sends,
								   .recvs = m->peers[i].recvs };
	return 0;
}

static void sample_pending(struct member *m, struct view_member *v)
{
	bool blind = m->rank->c->s->has_no_progress;
	uint64_t first = blind ? m->op_index : m->first_open;

	v->m.pending_count = 0;
	if (m->op_index == 0 || first > m->op_index)
		return;
	v->pending = view_op(m, first);
	if (blind && (v->pending.flags & CW_OPF_RETURNED))
		return;
	v->m.pending_count = (uint32_t)(m->op_index - first + 1);
	v->m.pending = &v->pending;
}

static int sample_member(struct member *m)
{
	struct view_member *v = &m->view;
	struct rank *r = m->rank;
	bool blind = r->c->s->has_no_progress;
	struct cw_p2p_peer *p2p = v->m.p2p;

	update_rhythm(v, m, r->c->now_ns);
	v->m = (struct cw_snap_member){
		.rank = r->index,
		.state = m->state,
		.nranks = trait_size(m),
		.known = CW_KNOWN_ENTERED | CW_KNOWN_RETURNED | CW_KNOWN_HASH | CW_KNOWN_P2P |
			 (blind ? 0 : CW_KNOWN_REACHED | CW_KNOWN_COMPLETED),
		.coll_entered = m->entered,
		.coll_returned = m->returned,
		.coll_reached = blind ? 0 : m->reached,
		.coll_completed = blind ? 0 : m->completed,
		.op_index = m->calls,
		.hash_seq = m->returned,
		.hash = m->hash,
		.p2p = p2p,
		.progress_ns = remembered_ns(r, noticed_ns(r, m->moved_ns)),
		.interval_ns = median_interval(v),
		.sends = m->sends,
		.recvs = m->recvs,
	};
	checkpoint_view(m, v->m.checkpoints);
	if (m->op_index) {
		v->last = view_op(m, m->op_index);
		v->m.last = &v->last;
	}
	sample_pending(m, v);
	return sample_p2p(m);
}

static bool is_active(const struct rank *r)
{
	if (r->is_frozen || r->ended_ns)
		return false;
	if (r->host == HOST_BUSY || r->host == HOST_SYNC)
		return r->busy_by != NULL;
	return r->host == HOST_READY || r->host == HOST_LAUNCH;
}

static void sample_host_call(struct rank *r, struct view_rank *v)
{
	v->host_call = (struct cw_op){ .kind = CW_OP_NONE };
	if (r->host != HOST_BARRIER || !r->barrier_member)
		return;
	v->host_call = view_op(r->barrier_member, r->barrier_member->op_index);
	v->host_call_comm_id = r->barrier_member->comm->id;
}

void view_sample(struct rank *r)
{
	struct view_rank *v = &r->view;
	const struct suite_scenario *s = r->c->s;

	for (uint32_t f = 0; f < s->n_families; f++) {
		struct member *m = r->members[f];

		if (!m || m->state == CW_COMM_FREE)
			continue;
		v->is_seen = true;
		if (sample_member(m) < 0)
			r->c->error = -ENOMEM;
	}
	if (is_active(r))
		r->active_ns = r->c->now_ns;
	v->liveness = r->liveness;
	v->flags = r->flags | CW_RANKF_HAS_RECORD | (r->is_frozen ? 0 : CW_RANKF_BEATING);
	v->sampled_ns = r->c->now_ns;
	v->headway_ns = remembered_ns(r, r->active_ns);
	v->headway_by = v->headway_ns == r->active_ns ? r->busy_by : NULL;
	v->host_wait = r->host == HOST_BUSY && !r->busy_by ? r->wait : CW_HOST_WAIT_UNKNOWN;
	if (v->host_wait == CW_HOST_WAIT_STORAGE)
		v->flags |= CW_RANKF_D_STATE;
	if (r->host == HOST_BUSY && r->busy_by && strcmp(r->busy_by, "child") == 0)
		v->flags |= CW_RANKF_BUSY_CHILD;
	sample_host_call(r, v);
	if (r->c->nodes[r->node].last_ns < r->c->now_ns)
		r->c->nodes[r->node].last_ns = r->c->now_ns;
}

static void forget_rank(struct rank *r)
{
	r->view.is_seen = false;
	record_forget(r);
	for (uint32_t f = 0; f < r->c->s->n_families; f++) {
		struct view_member *v = r->members[f] ? &r->members[f]->view : NULL;

		if (!v)
			continue;
		v->n_intervals = 0;
		v->done_ns = 0;
		v->m.state = CW_COMM_FREE;
		free(r->members[f]->window);
		r->members[f]->window = NULL;
	}
}

void view_forget(struct cluster *c)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		forget_rank(&c->ranks[i]);
}

void view_forget_node(struct cluster *c, uint32_t node)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (c->ranks[i].node == node)
			forget_rank(&c->ranks[i]);
}

/* ---- the snapshot ---- */

static bool is_asked(const struct rank *r)
{
	return r->liveness == CW_LIVE_KILLED &&
	       (r->term_signal == SIGTERM || r->term_signal == SIGINT);
}

/* As cw_death_is_shutdown() of the daemon, among the ranks of one node. */
bool view_is_shutdown(const struct cluster *c, const struct rank *r)
{
	uint32_t together = 0, alive = 0;

	if (!r->ended_ns)
		return false;
	if (is_asked(r))
		return true;
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		const struct rank *o = &c->ranks[i];

		if (o->node != r->node)
			continue;
		alive += !o->ended_ns;
		if (!o->ended_ns || llabs(o->ended_ns - r->ended_ns) > TOGETHER_NS)
			continue;
		if (is_asked(o))
			return true;
		together++;
	}
	return together >= 2 && !alive;
}

uint32_t view_end_by(const struct rank *r)
{
	if (r->liveness == CW_LIVE_EXITED)
		return CW_END_BY_NOBODY;
	if (r->liveness != CW_LIVE_KILLED)
		return CW_END_BY_UNKNOWN;
	if (r->flags & CW_RANKF_OOM_KILLED)
		return CW_END_BY_KERNEL;
	switch (r->term_signal) {
	case SIGABRT:
		return CW_END_BY_ITSELF;
	case SIGSEGV:
	case SIGBUS:
	case SIGFPE:
	case SIGILL:
		return CW_END_BY_KERNEL;
	default:
		return CW_END_BY_PROCESS;
	}
}

static int add_nodes(struct cluster *c, struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		struct node *n = &c->nodes[i];
		uint32_t index;
		int r = cw_snapshot_add_node(snap, n->name, &index);

		if (r < 0)
			return r;
		n->state = CW_NODE_REPORTING;
		if (n->quiet_from_ns && c->now_ns - n->last_ns >= NODE_SILENT_NS)
			n->state = n->quiet_state;
		snap->nodes[index].state = n->state;
		snap->nodes[index].last_digest_ns = n->last_ns + n->latency_ns;
	}
	return 0;
}

static int add_rank(struct cluster *c, struct rank *r, struct cw_snapshot *snap)
{
	const struct view_rank *v = &r->view;
	int64_t late = c->nodes[r->node].latency_ns;
	bool dead = cw_liveness_is_dead(v->liveness);
	struct cw_snap_rank rank = {
		.rank = (int32_t)r->index,
		.node = r->node,
		.pid = (int32_t)(1000 + r->index),
		.device = (int32_t)(r->index % c->s->per_node),
		.start_ticks = (uint64_t)(c->start_ns / MS) + 7,
		.liveness = v->liveness,
		.flags = v->flags | (dead && view_is_shutdown(c, r) ? CW_RANKF_SHUTDOWN : 0),
		.exit_code = dead ? (int32_t)r->exit_code : 0,
		.term_signal = dead ? (int32_t)r->term_signal : 0,
		.ended_ns = dead ? r->ended_ns + late : 0,
		.sampled_ns = v->sampled_ns + late,
		.headway_ns = v->headway_ns + late,
		.nccl_version = trait_version(c->s, r->index),
		.env_hash = trait_environment(c->s, r->index),
		.headway_by = v->headway_by,
		.host_wait = v->host_wait,
		.job_timeout_ns = c->s->job_timeout_ns,
		.command = "train.py",
		.host_call = v->host_call,
		.host_call_comm_id = v->host_call_comm_id,
	};
	uint32_t index;

	if (rank.host_call.kind != CW_OP_NONE)
		view_to_leader(c, r, &rank.host_call);
	return cw_snapshot_add_rank(snap, &rank, &index);
}

static bool is_seen(const struct rank *r)
{
	return r->view.is_seen && !r->is_blind;
}

static int add_member(struct cluster *c, struct member *m, uint32_t rank_index, uint32_t comm,
		      struct cw_snapshot *snap)
{
	struct cw_snap_member v = m->view.m;
	struct cw_op pending, last;
	int r;

	v.rank = rank_index;
	v.progress_ns += c->nodes[m->rank->node].latency_ns;
	if (v.pending) {
		pending = *v.pending;
		view_to_leader(c, m->rank, &pending);
		v.pending = &pending;
	}
	if (v.last) {
		last = *v.last;
		view_to_leader(c, m->rank, &last);
		v.last = &last;
	}
	r = cw_snapshot_set_member(snap, comm, m->comm_rank, &v);
	if (r < 0 || !window_holds(c, m))
		return r;
	return cw_snapshot_set_window(snap, comm, m->comm_rank, m->window, m->n_window,
				      m->window_lost, m->window_ns);
}

/* As large as anybody was told that it is. */
static uint32_t largest_size(const struct comm *comm)
{
	uint32_t largest = comm->nranks;

	for (uint32_t m = 0; m < comm->nranks; m++) {
		const struct member *member = &comm->members[m];

		if (is_seen(member->rank) && member->view.m.nranks > largest)
			largest = member->view.m.nranks;
	}
	return largest;
}

static int add_comms(struct cluster *c, const uint32_t *rank_index, struct cw_snapshot *snap)
{
	for (uint32_t i = 0; i < c->n_comms; i++) {
		struct comm *comm = &c->comms[i];
		struct cw_snap_comm desc = { .id = comm->id,
					     .nccl_hash = comm->id >> 1,
					     .nranks = largest_size(comm),
					     .name = comm->name };
		uint32_t index = CW_SNAP_NONE;

		for (uint32_t m = 0; m < comm->nranks; m++) {
			struct member *member = &comm->members[m];
			int r = 0;

			if (!is_seen(member->rank) || member->view.m.state == CW_COMM_FREE)
				continue;
			if (index == CW_SNAP_NONE)
				r = cw_snapshot_add_comm(snap, &desc, &index);
			if (r == 0)
				r = add_member(c, member, rank_index[member->rank->index], index,
					       snap);
			if (r < 0)
				return r;
		}
	}
	return 0;
}

int cluster_snapshot(struct cluster *c, struct cw_snapshot **ret)
{
	struct cw_snapshot *snap = cw_snapshot_new();
	uint32_t *rank_index = calloc(c->s->n_ranks, sizeof(*rank_index)), n = 0;
	int r = snap && rank_index ? 0 : -ENOMEM;

	if (r == 0) {
		snap->now_ns = c->now_ns;
		snap->wall_ns = WALL_NS + c->now_ns + c->wall_offset_ns;
		snap->policy = c->s->policy;
		snap->thresholds = cw_thresholds_default();
		snap->ranks_expected = c->s->n_ranks;
		r = cw_snapshot_set_job(snap, "suite", "RANK");
	}
	if (r == 0)
		r = add_nodes(c, snap);
	for (uint32_t i = 0; r == 0 && i < c->s->n_ranks; i++) {
		if (!is_seen(&c->ranks[i]))
			continue;
		rank_index[i] = n++;
		r = add_rank(c, &c->ranks[i], snap);
	}
	if (r == 0)
		r = add_comms(c, rank_index, snap);
	free(rank_index);
	if (r < 0)
		(void)cw_snapshot_free(snap);
	else
		*ret = snap;
	return r;
}

/* ---- what there is to see ---- */

bool cluster_is_over(const struct cluster *c)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (is_seen(&c->ranks[i]) && !cw_liveness_is_dead(c->ranks[i].view.liveness))
			return false;
	return true;
}

bool cluster_is_cut_off(const struct cluster *c)
{
	uint32_t reporting = 0;

	for (uint32_t i = 0; i < c->n_nodes; i++)
		reporting += c->nodes[i].state == CW_NODE_REPORTING;
	return 2 * reporting < c->n_nodes;
}
