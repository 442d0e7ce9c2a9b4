/* SPDX-License-Identifier: Apache-2.0 */
/* The faults of a scenario, and when they happen. */
#include <signal.h>
#include <stdlib.h>

#include "common/or_exit/or_exit.h"
#include "lab/suite/scenario/fault.h"
#include "lab/vjob/cluster_state.h"
#include "model/facts.h"

#define CANCEL_SPREAD_MS 400
#define RESTART_AFTER_NS (8 * S)
#define NCCL_REMOTE_ERROR 6

static bool *done_of(struct cluster *c, uint32_t rank, uint32_t fault)
{
	return &c->fault_done[rank * SUITE_MAX_FAULTS + fault];
}

static void note_hit(struct cluster *c, uint32_t fault)
{
	if (!c->fault_hit[fault]) {
		c->fault_hit[fault] = true;
		c->n_faults_hit++;
	}
	/* A fault between daemons makes no rank wait, so its time does not count. */
	if (suite_fault_is_between_daemons(&c->s->faults[fault]))
		return;
	if (!c->fault_ns)
		c->fault_ns = c->now_ns;
	c->last_fault_ns = c->now_ns;
}

/* True if the fault strikes the rank at any point of its program. */
static bool is_from_outside(const struct suite_fault *f)
{
	if (f->action == SUITE_ERRORS)
		return true;
	return f->family == SUITE_NONE && f->op_kind == CW_OP_NONE &&
	       (f->action == SUITE_KILL || f->action == SUITE_OOM || f->action == SUITE_STOP ||
		f->action == SUITE_TRACE || f->action == SUITE_FREEZE ||
		f->action == SUITE_EXIT_NOW);
}

static bool is_for_ranks(const struct suite_fault *f)
{
	return f->action < SUITE_NODE_LOST;
}

void fault_schedule(struct cluster *c)
{
	c->fault_done = cw_or_exit(calloc((size_t)c->s->n_ranks * SUITE_MAX_FAULTS, sizeof(bool)));
	for (uint32_t i = 0; i < c->s->n_faults; i++) {
		const struct suite_fault *f = &c->s->faults[i];

		/* After a restart the job has no old faults. */
		if (c->start_ns > CLUSTER_ORIGIN_NS + f->at_ns) {
			c->fault_hit[i] = true;
			c->n_faults_hit++;
			for (uint32_t r = 0; r < c->s->n_ranks; r++)
				*done_of(c, r, i) = true;
			continue;
		}
		if (f->action == SUITE_BLIND || !is_for_ranks(f) || is_from_outside(f))
			cluster_at(c, CLUSTER_ORIGIN_NS + f->at_ns, EVENT_FAULT, NULL, NULL, i);
	}
}

/* ---- from outside ---- */

static void freeze_rank(struct rank *r, uint32_t liveness, int64_t for_ns)
{
	r->is_frozen = true;
	r->liveness = liveness;
	if (for_ns != SUITE_FOREVER)
		cluster_at(r->c, r->c->now_ns + for_ns, EVENT_THAW, r, NULL, 0);
}

/* Freezes the rank's whole process. */
static void freeze(struct rank *r, uint32_t liveness, int64_t for_ns)
{
	uint32_t n;
	struct rank *all = process_ranks(r, &n);

	for (uint32_t i = 0; i < n; i++)
		freeze_rank(&all[i], liveness, for_ns);
}

void fault_thaw(struct rank *r)
{
	if (r->ended_ns)
		return;
	r->is_frozen = false;
	r->thawed_ns = r->c->now_ns;
	r->liveness = CW_LIVE_ALIVE;
	r->flags &= ~(uint32_t)CW_RANKF_FROZEN;
	if (r->missed_wake)
		host_wake_at(r, r->c->now_ns);
	r->missed_wake = false;
	if (r->connecting)
		connect_step(r->connecting->comm);
}

/* Records the asynchronous error ncclRemoteError: a connection failed, or had too many retries. */
static void note_async_error(struct rank *r, const struct suite_fault *f)
{
	for (uint32_t i = 0; i < r->c->s->n_families; i++) {
		struct member *m = r->members[i];

		if (!m || m->state != CW_COMM_READY || r->ended_ns ||
		    (f->family != SUITE_NONE && f->family != i))
			continue;
		m->async_error = NCCL_REMOTE_ERROR;
		record_error(m);
	}
}

static void hit_rank(struct rank *r, const struct suite_fault *f)
{
	struct rank *all;
	uint32_t n;

	if (f->action == SUITE_ERRORS) {
		note_async_error(r, f);
		return;
	}
	all = process_ranks(r, &n);
	for (uint32_t i = 0; f->action != SUITE_BLIND && i < n; i++)
		all[i].hit_ns = r->c->now_ns;
	switch (f->action) {
	case SUITE_OOM:
		r->flags |= CW_RANKF_OOM_KILLED;
		host_die(r, CW_LIVE_KILLED, SIGKILL);
		break;
	case SUITE_KILL:
		host_die(r, CW_LIVE_KILLED, (uint32_t)f->value);
		break;
	case SUITE_EXIT_NOW:
		host_die(r, CW_LIVE_EXITED, (uint32_t)f->value);
		break;
	case SUITE_STOP:
		freeze(r, CW_LIVE_STOPPED, f->for_ns);
		break;
	case SUITE_TRACE:
		freeze(r, CW_LIVE_TRACED, f->for_ns);
		break;
	case SUITE_FREEZE:
		/* The kernel shows a process in a frozen control group in its usual state. */
		for (uint32_t i = 0; i < n; i++)
			all[i].flags |= CW_RANKF_FROZEN;
		freeze(r, CW_LIVE_ALIVE, f->for_ns);
		break;
	case SUITE_BLIND:
		for (uint32_t i = 0; i < n; i++)
			all[i].is_blind = true;
		break;
	default:
		break;
	}
}

void cluster_quieten(struct cluster *c, uint32_t node, enum cluster_daemon daemon, int64_t for_ns)
{
	struct node *n = &c->nodes[node];

	n->quiet_from_ns = c->now_ns;
	n->quiet_until_ns = for_ns == SUITE_FOREVER ? SUITE_FOREVER : c->now_ns + for_ns;
	n->daemon = daemon;
	if (for_ns != SUITE_FOREVER &&
	    (daemon == CLUSTER_DAEMON_KILLED || daemon == CLUSTER_DAEMON_GOODBYE))
		cluster_at(c, n->quiet_until_ns, EVENT_DAEMON_ANEW, NULL, NULL, node);
}

void fault_daemon_anew(struct cluster *c, uint32_t node)
{
	if (node_is_quiet(c, &c->nodes[node]))
		return;
	c->nodes[node].since_ns = c->now_ns;
	view_forget_node(c, node);
}

/*
 * Suspends the ranks of a node. Their state is not "stopped", and no daemon runs that could notice
 * their standstill.
 */
static void suspend_ranks(struct cluster *c, uint32_t node, int64_t for_ns)
{
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (c->ranks[i].node == node && !c->ranks[i].ended_ns)
			freeze_rank(&c->ranks[i], CW_LIVE_ALIVE, for_ns);
}

static void quiet_nodes(struct cluster *c, const struct suite_fault *f)
{
	enum cluster_daemon daemon = f->action == SUITE_NODE_LOST        ? CLUSTER_DAEMON_LOST
				     : f->action == SUITE_NODE_SILENT    ? CLUSTER_DAEMON_HELD
				     : f->action == SUITE_NODE_SUSPENDED ? CLUSTER_DAEMON_HELD
				     : f->action == SUITE_NODE_KILLED    ? CLUSTER_DAEMON_KILLED
									 : CLUSTER_DAEMON_GOODBYE;

	for (uint32_t i = 0; i < c->n_nodes; i++) {
		if (!cw_suite_set_has(&f->set, i))
			continue;
		cluster_quieten(c, i, daemon, f->for_ns);
		if (f->action == SUITE_NODE_SUSPENDED)
			suspend_ranks(c, i, f->for_ns);
		if (f->action != SUITE_NODE_LOST)
			continue;
		/* The machine is gone, with all its processes. */
		for (uint32_t r = 0; r < c->s->n_ranks; r++) {
			if (c->ranks[r].node != i)
				continue;
			c->ranks[r].hit_ns = c->now_ns;
			host_die(&c->ranks[r], CW_LIVE_GONE, 0);
		}
	}
}

static void stop_daemons(struct cluster *c, const struct suite_fault *f)
{
	for (uint32_t i = 0; i < c->n_nodes; i++) {
		c->nodes[i].quiet_from_ns = c->now_ns;
		c->nodes[i].quiet_until_ns = c->now_ns + f->for_ns;
	}
	c->daemons_back_ns = c->now_ns + f->for_ns;
	c->are_daemons_new = f->action == SUITE_DAEMONS_RESTART;
	cluster_at(c, c->daemons_back_ns, EVENT_DAEMONS_BACK, NULL, NULL,
		   f->action == SUITE_DAEMONS_RESTART);
}

void fault_daemons_back(struct cluster *c, bool is_new)
{
	c->daemons_back_ns = 0;
	if (!is_new)
		return;
	c->daemons_since_ns = c->now_ns;
	for (uint32_t i = 0; i < c->n_nodes; i++)
		c->nodes[i].quiet_from_ns = 0;
	view_forget(c);
}

void fault_on_event(struct cluster *c, uint32_t fault)
{
	const struct suite_fault *f = &c->s->faults[fault];

	note_hit(c, fault);
	if (f->action == SUITE_CANCEL || f->action == SUITE_RESTART) {
		for (uint32_t i = 0; i < c->s->n_ranks; i++)
			cluster_at(c, c->now_ns + (int64_t)cluster_random(c, CANCEL_SPREAD_MS) * MS,
				   EVENT_DIE, &c->ranks[i], NULL, SIGTERM);
		if (f->action == SUITE_RESTART)
			c->restart_ns = c->now_ns + RESTART_AFTER_NS;
		return;
	}
	if (f->action == SUITE_CLOCK) {
		c->wall_offset_ns += (int64_t)f->value;
		return;
	}
	if (f->action == SUITE_DAEMONS_RESTART || f->action == SUITE_DAEMONS_STOP) {
		stop_daemons(c, f);
		return;
	}
	if (suite_fault_is_between_daemons(f))
		return; /* a fault of the network: lab/suite/watch_faults.c */
	if (!is_for_ranks(f)) {
		quiet_nodes(c, f);
		return;
	}
	for (uint32_t i = 0; i < c->s->n_ranks; i++)
		if (cw_suite_set_has(&f->set, i))
			hit_rank(&c->ranks[i], f);
}

/* ---- before a call ---- */

static enum fault_effect wait_a_while(struct rank *r, const struct suite_fault *f, const char *by)
{
	r->host = HOST_BUSY;
	r->busy_by = by;
	r->wait_end_ns = f->for_ns == SUITE_FOREVER ? 0 : r->c->now_ns + f->for_ns;
	if (r->wait_end_ns)
		host_wake_at(r, r->wait_end_ns);
	return FAULT_WAITS;
}

static enum fault_effect apply(struct rank *r, struct suite_call *call, const struct suite_fault *f)
{
	switch (f->action) {
	case SUITE_BLOCK:
		r->wait = f->wait;
		return wait_a_while(r, f, NULL);
	case SUITE_SPIN:
		return wait_a_while(r, f, "cpu");
	case SUITE_BUSY_IO:
		return wait_a_while(r, f, "io");
	case SUITE_BUSY_CHILD:
		return wait_a_while(r, f, "child");
	case SUITE_SKIP:
		return FAULT_SKIPS;
	case SUITE_ADD:
		return FAULT_TWICE;
	case SUITE_SWAP:
		r->held = *call;
		r->has_held = true;
		return FAULT_SKIPS;
	case SUITE_SLOW:
		r->slow_ns = (int64_t)f->value;
		r->slow_until_ns =
			f->for_ns == SUITE_FOREVER ? SUITE_FOREVER : r->c->now_ns + f->for_ns;
		return FAULT_GOES_ON;
	case SUITE_STUCK:
		if (r->in_graph)
			graph_add_kernel(r, f->for_ns);
		else
			device_kernel(r, call->stream, f->for_ns);
		return FAULT_GOES_ON;
	case SUITE_WEDGE:
		r->is_wedging = f->for_ns == SUITE_FOREVER;
		r->wedge_ns = f->for_ns == SUITE_FOREVER ? 0 : f->for_ns;
		return FAULT_GOES_ON;
	case SUITE_FAILS:
		r->failing = f;
		return FAULT_FAILS;
	case SUITE_CHANGE:
		suite_fault_change(f, call);
		return FAULT_GOES_ON;
	default:
		hit_rank(r, f);
		if (r->is_frozen)
			r->missed_wake = true;
		return FAULT_WAITS;
	}
}

/* True if the fault is due, but some rank has not yet made the call that triggers it. */
bool fault_is_due(const struct cluster *c, uint32_t fault)
{
	return !c->fault_hit[fault] && c->now_ns >= CLUSTER_ORIGIN_NS + c->s->faults[fault].at_ns;
}

enum fault_effect fault_before_call(struct rank *r, struct suite_call *call)
{
	struct cluster *c = r->c;

	if (call->family >= c->s->n_families || !r->members[call->family])
		return FAULT_GOES_ON;
	for (uint32_t i = 0; i < c->s->n_faults; i++) {
		const struct suite_fault *f = &c->s->faults[i];
		enum fault_effect effect;

		if (f->action == SUITE_BLIND || !is_for_ranks(f) || is_from_outside(f) ||
		    c->now_ns - CLUSTER_ORIGIN_NS < f->at_ns || *done_of(c, r->index, i) ||
		    !cw_suite_set_has(&f->set, r->index) || !suite_fault_is_for(f, call))
			continue;
		*done_of(c, r->index, i) = true;
		note_hit(c, i);
		r->hit_ns = c->now_ns;
		effect = apply(r, call, f);
		if (effect != FAULT_GOES_ON)
			return effect;
	}
	return FAULT_GOES_ON;
}
