/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's view of a rank: its agent's counters, sampled at one instant (digest/digest.c). */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/or_exit/or_exit.h"
#include "lab/vjob/cluster_state.h"
#include "model/death.h"
#include "model/facts.h"

#define TOGETHER_NS (2 * S)
#define SAMPLE_GRID_NS (250 * MS)

/* ---- a sample ---- */

struct cw_op view_op(struct member *m, uint64_t op_index)
{
	struct cw_op op = *member_op(m, op_index);

	/* All ops of a graph's launch have the launch's number. */
	op.op_index = m->ring[op_index & (RING - 1)].call;
	/* Without progress words we only know that the op's call has returned. */
	if (m->rank->c->s->has_no_progress)
		op.progress = CW_PROGRESS_UNKNOWN;
	return op;
}

/* Returns when the daemon notices a movement. That is its next sample; it takes four per second. */
static int64_t noticed_ns(const struct rank *r, int64_t ns)
{
	int64_t late = (ns - r->c->start_ns - r->sample_phase_ns) % SAMPLE_GRID_NS;

	if (late < 0)
		late += SAMPLE_GRID_NS;
	ns += late ? SAMPLE_GRID_NS - late : 0;
	return ns < r->c->now_ns ? ns : r->c->now_ns;
}

/*
 * Returns when the daemon saw an event. For an event before the daemon's start, this is the start.
 */
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

static void sample_p2p(struct member *m)
{
	struct cw_snap_member *v = &m->view.m;

	v->n_p2p = 0;
	if (!m->peers)
		return;
	if (!v->p2p)
		v->p2p = cw_or_exit(calloc(m->comm->nranks, sizeof(*v->p2p)));
	for (uint32_t i = 0; i < m->comm->nranks; i++)
		if (m->peers[i].sends || m->peers[i].recvs)
			v->p2p[v->n_p2p++] =
				(struct cw_p2p_peer){ .peer = i,
						      .sends = m->peers[i].sends,
						      .recvs = m->peers[i].recvs,
						      .send_hash = m->peers[i].send_hash,
						      .recv_hash = m->peers[i].recv_hash };
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

static void sample_member(struct member *m)
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
		.async_error = m->async_error,
		.last_result = m->last_result,
		.sends = m->sends,
		.recvs = m->recvs,
	};
	checkpoint_view(m, v->m.checkpoints);
	if (m->op_index) {
		v->last = view_op(m, m->op_index);
		v->m.last = &v->last;
	}
	sample_pending(m, v);
	sample_p2p(m);
}

static bool is_active(const struct rank *r)
{
	if (r->is_frozen || r->ended_ns)
		return false;
	if (r->host == HOST_BUSY || r->host == HOST_SYNC)
		return r->busy_by != NULL;
	return r->host == HOST_READY || r->host == HOST_LAUNCH;
}

/*
 * Samples the call that the host is in. A process's record has room for one such call, on any of
 * its devices.
 */
static void sample_host_call(struct rank *r, struct view_rank *v)
{
	uint32_t n;
	struct rank *all = process_ranks(r, &n);

	v->host_call = (struct cw_op){ .kind = CW_OP_NONE };
	for (uint32_t i = 0; i < n; i++) {
		struct member *m = all[i].barrier_member;

		if (all[i].host != HOST_BARRIER || !m)
			continue;
		v->host_call = view_op(m, m->op_index);
		v->host_call_comm_id = m->comm->id;
		return;
	}
}

/* Samples the process: the activity of all its threads, and the wait of the first one. */
static void sample_process(struct rank *r, struct view_rank *v)
{
	const struct rank *newest = r;
	uint32_t n;
	struct rank *all = process_ranks(r, &n);

	for (uint32_t i = 0; i < n; i++) {
		if (is_active(&all[i]))
			all[i].active_ns = r->c->now_ns;
		if (all[i].active_ns > newest->active_ns)
			newest = &all[i];
	}
	v->host_activity_ns = remembered_ns(r, newest->active_ns);
	v->host_activity_by = v->host_activity_ns == newest->active_ns ? newest->busy_by : NULL;
	v->host_wait =
		all[0].host == HOST_BUSY && !all[0].busy_by ? all[0].wait : CW_HOST_WAIT_UNKNOWN;
	if (v->host_wait == CW_HOST_WAIT_STORAGE)
		v->flags |= CW_RANKF_D_STATE;
	for (uint32_t i = 0; i < n; i++)
		if (all[i].host == HOST_BUSY && all[i].busy_by &&
		    strcmp(all[i].busy_by, "child") == 0)
			v->flags |= CW_RANKF_BUSY_CHILD;
}

void view_sample(struct rank *r)
{
	struct view_rank *v = &r->view;
	const struct suite_scenario *s = r->c->s;

	if (r->c->now_ns < r->started_ns)
		return;
	for (uint32_t f = 0; f < s->n_families; f++) {
		struct member *m = r->members[f];

		if (!m || m->state == CW_COMM_FREE)
			continue;
		v->is_seen = true;
		sample_member(m);
	}
	v->liveness = r->liveness;
	v->flags = r->flags | CW_RANKF_HAS_RECORD | (r->is_frozen ? 0 : CW_RANKF_BEATING);
	v->sampled_ns = r->c->now_ns;
	sample_process(r, v);
	sample_host_call(r, v);
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

/* ---- how ranks end ---- */

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

static bool is_asked(const struct rank *r)
{
	return r->liveness == CW_LIVE_KILLED &&
	       (r->term_signal == SIGTERM || r->term_signal == SIGINT);
}

static bool is_own(const struct rank *r)
{
	struct cw_ending end = { .liveness = r->liveness,
				 .exit_code = (int)r->exit_code,
				 .term_signal = (int)r->term_signal };
	uint32_t by = view_end_by(r);

	return cw_ending_is_fault(&end) || by == CW_END_BY_NOBODY || by == CW_END_BY_ITSELF ||
	       by == CW_END_BY_KERNEL;
}

/*
 * True if the rank ended in a shutdown. The rule is that of the daemon's cw_death_is_shutdown(),
 * over the processes of one node.
 */
bool view_is_shutdown(const struct cluster *c, const struct rank *r)
{
	uint32_t together = 0, alive = 0;

	if (!r->ended_ns)
		return false;
	if (is_asked(r))
		return true;
	for (uint32_t i = 0; i < c->s->n_ranks; i++) {
		const struct rank *o = &c->ranks[i];

		/* One rank represents its whole process. */
		if (o->node != r->node || i % c->s->per_process)
			continue;
		alive += !o->ended_ns;
		if (!o->ended_ns || llabs(o->ended_ns - r->ended_ns) > TOGETHER_NS)
			continue;
		if (is_asked(o))
			return true;
		together++;
	}
	return together >= 2 && !alive && !is_own(r);
}

/* ---- visibility ---- */

static bool is_seen(const struct rank *r)
{
	return r->view.is_seen && !r->is_blind;
}

bool cluster_is_over(const struct cluster *c)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (is_seen(&c->ranks[i]) && !cw_liveness_is_dead(c->ranks[i].view.liveness))
			return false;
	return true;
}
