/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stall/stall_rules.h"

#include "analysis/stall/stall.h"
#include "model/signature.h"
#include "record/record_layout.h"

static int64_t max_ns(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* ---- T ---- */

static bool is_first_or_init(const struct cw_snap_member *m)
{
	if (m->state == CW_COMM_INIT)
		return true;
	if (!m->pending)
		return false;
	return cw_op_blocks_host(m->pending->kind) || m->pending->coll_seq == 1 ||
	       m->pending->op_index == 1;
}

/* 4 × bytes over the worst bandwidth; 0 where no bandwidth is given. */
static int64_t transfer_ns(const struct cw_thresholds *t, const struct cw_op *op)
{
	double ns;

	if (!op || !t->bytes_per_s)
		return 0;
	ns = 4e9 * (double)op->bytes / (double)t->bytes_per_s;
	return ns < 1e18 ? (int64_t)ns : INT64_C(1000000000000000000);
}

int64_t cw_stall_limit_ns(const struct cw_snapshot *snap, uint32_t comm, uint32_t member)
{
	const struct cw_thresholds *t = &snap->thresholds;
	const struct cw_snap_comm *c;
	const struct cw_snap_member *m;
	int64_t limit;

	if (comm >= snap->n_comms || member >= snap->comms[comm].nranks)
		return t->stall_max_ns;
	c = &snap->comms[comm];
	m = &c->members[member];
	if (is_first_or_init(m)) {
		limit = t->first_op_ns + t->first_op_per_rank_ns * (int64_t)c->nranks;
	} else {
		/* Divided, not multiplied: the interval is untrusted and may be enormous. */
		limit = t->stall_factor && m->interval_ns > t->stall_max_ns / t->stall_factor
				? t->stall_max_ns
				: m->interval_ns * t->stall_factor;
		limit = max_ns(limit, t->stall_min_ns);
	}
	return max_ns(limit, transfer_ns(t, m->pending));
}

/* T of whoever waits for the culprit directly. */
static int64_t limit_of(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	uint32_t first = CW_SNAP_NONE, waiter = CW_SNAP_NONE;

	if (!v->n_sides || !v->sides[0].n_ranks || v->comm >= snap->n_comms)
		return snap->thresholds.stall_max_ns;
	for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++) {
		const struct cw_snap_member *member = &snap->comms[v->comm].members[m];

		if (member->rank == v->sides[0].ranks[0])
			first = m;
		if (v->coll_seq && member->pending && waiter == CW_SNAP_NONE &&
		    member->pending->coll_seq == v->coll_seq)
			waiter = m;
	}
	/* That one may be through already: whoever is still in the call tells more. */
	if (waiter != CW_SNAP_NONE)
		first = waiter;
	return first == CW_SNAP_NONE ? snap->thresholds.stall_max_ns
				     : cw_stall_limit_ns(snap, v->comm, first);
}

/* ---- headway ---- */

static bool is_traced(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		if (snap->ranks[v->culprits[i].rank].liveness == CW_LIVE_TRACED)
			return true;
	if (v->klass != CW_CLASS_IN_COLLECTIVE)
		return false;
	/* Held inside the collective, it holds up the others. */
	for (uint32_t i = 0; i < v->n_victims; i++)
		if (snap->ranks[v->victims[i]].liveness == CW_LIVE_TRACED)
			return true;
	return false;
}

/* A rank moved on another comm at this time or later. */
static bool moved_elsewhere(const struct cw_snapshot *snap, uint32_t rank, uint32_t comm,
			    int64_t since_ns)
{
	for (uint32_t c = 0; c < snap->n_comms; c++)
		for (uint32_t m = 0; c != comm && m < snap->comms[c].nranks; m++)
			if (snap->comms[c].members[m].rank == rank &&
			    snap->comms[c].members[m].progress_ns >= since_ns)
				return true;
	return false;
}

/*
 * Those who wait in the call have long waited, and all of them still get on with other comms: the
 * call stands on a stream of its own, as a receive does that is posted long before its send. Nobody
 * is held up. Who hangs has at most enqueued some more before the first look.
 */
static bool nobody_is_held_up(const struct cw_snapshot *snap, const struct cw_verdict *v,
			      int64_t limit_ns)
{
	int64_t since = max_ns(v->waiting_since_ns + limit_ns,
			       snap->now_ns - snap->thresholds.no_headway_ns);

	if (!v->waiting_since_ns || since > snap->now_ns || !v->n_sides || !v->sides[0].n_ranks ||
	    !v->sides[0].has_op)
		return false;
	for (uint32_t i = 0; i < v->sides[0].n_ranks; i++)
		if (!moved_elsewhere(snap, v->sides[0].ranks[i], v->comm, since))
			return false;
	return true;
}

/*
 * Some culprit has shown no sign of work for long enough while somebody waited: what it did before,
 * nobody minded. Unknown headway is no such evidence.
 */
static bool stands_still(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++) {
		const struct cw_snap_rank *r = &snap->ranks[v->culprits[i].rank];

		if (r->headway_ns && snap->now_ns - max_ns(r->headway_ns, v->waiting_since_ns) >=
					     snap->thresholds.no_headway_ns)
			return true;
	}
	return false;
}

static void patience_with_ranks(const struct cw_snapshot *snap, const struct cw_verdict *v,
				int64_t longest_recovered_ns, struct stall_rule *rule)
{
	const struct cw_thresholds *t = &snap->thresholds;

	if (stands_still(snap, v)) {
		rule->name = "no headway";
		return;
	}
	rule->name = "it makes headway";
	rule->alert_ns =
		max_ns(rule->alert_ns, max_ns(t->headway_alert_ns, 3 * longest_recovered_ns));
	rule->confidence = CW_CONFIDENCE_LIKELY;
}

/* ---- the table ---- */

static void patience_with_unknown(const struct cw_snapshot *snap, const struct cw_verdict *v,
				  struct stall_rule *rule)
{
	const struct cw_thresholds *t = &snap->thresholds;

	rule->confidence = CW_CONFIDENCE_POSSIBLE;
	if (v->detail == CW_DETAIL_PROGRESS_UNKNOWN) {
		rule->name = "progress unknown";
		rule->alert_ns = max_ns(rule->alert_ns, t->in_collective_ns);
	} else if (v->detail == CW_DETAIL_DAEMON_RESTARTING) {
		/* It said goodbye: it comes back, or its node becomes unreachable. */
		rule->name = "a daemon restarts";
		rule->may_alert = false;
	} else {
		rule->name = "not visible";
		rule->alert_ns = max_ns(rule->alert_ns, t->headway_alert_ns);
	}
}

/*
 * Whoever else has not come, on a node that reports, has been looked at since somebody waited: it
 * may be stopped or dead, and then it is the better answer. A node from which nothing comes for so
 * long that it counts as silent is not waited for.
 */
static bool others_were_looked_at(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	if (snap->now_ns - v->waiting_since_ns >= snap->thresholds.node_silent_ns)
		return true;
	for (uint32_t i = 0; i < v->n_sides; i++)
		for (uint32_t k = 0; !v->sides[i].has_op && k < v->sides[i].n_ranks; k++) {
			const struct cw_snap_rank *r = &snap->ranks[v->sides[i].ranks[k]];

			if (r->node < snap->n_nodes &&
			    snap->nodes[r->node].state == CW_NODE_REPORTING &&
			    r->sampled_ns < v->waiting_since_ns)
				return false;
		}
	return true;
}

static void patience_with_node(const struct cw_snapshot *snap, const struct cw_verdict *v,
			       struct stall_rule *rule)
{
	const struct cw_thresholds *t = &snap->thresholds;
	uint32_t node = v->n_culprits ? snap->ranks[v->culprits[0].rank].node : CW_SNAP_NONE;

	/* The leader has already waited, and tried to reconnect. */
	rule->name = "node unreachable";
	rule->read_after_ns = 0;
	rule->alert_ns = 0;
	rule->confidence = CW_CONFIDENCE_LIKELY;
	rule->may_alert = rule->may_alert && node < snap->n_nodes &&
			  snap->now_ns - snap->nodes[node].last_digest_ns >= t->node_silent_ns &&
			  others_were_looked_at(snap, v);
}

struct stall_rule cw_stall_rule_for(const struct cw_snapshot *snap, const struct cw_verdict *v,
				    int64_t longest_recovered_ns)
{
	const struct cw_thresholds *t = &snap->thresholds;
	int64_t limit = limit_of(snap, v);
	struct stall_rule rule = { .name = "waiting",
				   .read_after_ns = limit / 2,
				   .stall_ns = limit,
				   .alert_ns = limit,
				   .may_alert = snap->policy == CW_POLICY_TRAINING,
				   .confidence = CW_CONFIDENCE_CERTAIN };

	if (is_traced(snap, v)) {
		rule.name = "being debugged";
		rule.may_alert = false;
		return rule;
	}
	if (nobody_is_held_up(snap, v, limit)) {
		rule.name = "those who wait get on";
		rule.may_alert = false;
		return rule;
	}
	switch (v->klass) {
	case CW_CLASS_NODE_UNREACHABLE:
		patience_with_node(snap, v, &rule);
		break;
	case CW_CLASS_NEVER_ENTERED:
	case CW_CLASS_P2P_UNMATCHED:
	case CW_CLASS_DEVICE_STALLED:
		patience_with_ranks(snap, v, longest_recovered_ns, &rule);
		break;
	case CW_CLASS_INIT_STUCK:
		if (v->n_culprits)
			patience_with_ranks(snap, v, longest_recovered_ns, &rule);
		break;
	case CW_CLASS_IN_COLLECTIVE:
		rule.name = "nothing moves";
		rule.alert_ns = max_ns(limit, t->in_collective_ns);
		break;
	case CW_CLASS_SLOW:
		rule.may_alert = false;
		break;
	case CW_CLASS_MISMATCH:
		/* A proof needs no patience. Of what is none, nobody suffers. */
		if (!v->waiting_since_ns) {
			rule.name = "nobody waits";
			rule.may_alert = false;
		} else {
			rule.name = "nothing moves";
			rule.alert_ns = max_ns(limit, t->in_collective_ns);
		}
		break;
	case CW_CLASS_UNKNOWN:
		patience_with_unknown(snap, v, &rule);
		break;
	default:
		break;
	}
	return rule;
}

/* ---- evidence ---- */

static uint64_t hash_progress(uint64_t h, const struct cw_snap_member *m)
{
	h = cw_hash_step(cw_hash_step(h, m->coll_reached), m->coll_completed);
	/* Sends and receives complete without moving those. */
	return cw_hash_step(h, m->pending ? m->pending->op_index : 0);
}

/* By what stays the same from snapshot to snapshot: indices need not. */
static uint64_t hash_rank(uint64_t h, const struct cw_snap_rank *r)
{
	h = cw_hash_step(h, (uint64_t)(uint32_t)r->rank << 32 | (uint32_t)r->pid);
	return cw_hash_step(h, r->start_ticks);
}

/* A lone culprit must not have entered anything in between either. */
static uint64_t hash_culprits(uint64_t h, const struct cw_snapshot *snap,
			      const struct cw_verdict *v)
{
	for (uint32_t i = 0; i < v->n_culprits; i++)
		h = hash_rank(h, &snap->ranks[v->culprits[i].rank]);
	if (v->comm >= snap->n_comms || v->n_culprits != 1)
		return h;
	for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++) {
		const struct cw_snap_member *member = &snap->comms[v->comm].members[m];

		if (member->rank == v->culprits[0].rank)
			h = cw_hash_step(hash_progress(h, member), member->coll_entered);
	}
	return h;
}

uint64_t stall_evidence_hash(const struct cw_snapshot *snap, const struct cw_verdict *v)
{
	uint64_t h = cw_hash_step(CW_HASH_INIT, v->klass);

	h = cw_hash_step(hash_culprits(h, snap, v), v->coll_seq);
	if (v->comm >= snap->n_comms)
		return h;
	h = cw_hash_step(h, snap->comms[v->comm].id);
	if (v->klass == CW_CLASS_IN_COLLECTIVE || v->klass == CW_CLASS_UNKNOWN ||
	    v->klass == CW_CLASS_MISMATCH)
		for (uint32_t m = 0; m < snap->comms[v->comm].nranks; m++)
			h = hash_progress(h, &snap->comms[v->comm].members[m]);
	return h;
}
