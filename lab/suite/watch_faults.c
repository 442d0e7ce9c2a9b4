/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/suite/watch_faults.h"

void watch_faults_machines(const struct suite_scenario *s, unsigned n_nodes,
			   struct network_time *ret)
{
	for (uint32_t i = 0; i < s->n_machines; i++) {
		const struct suite_machine *m = &s->machines[i];

		for (unsigned node = 0; node < n_nodes; node++) {
			if (!cw_suite_set_has(&m->set, node))
				continue;
			if (m->has_ahead)
				ret[node].ahead_ns = m->ahead_ns;
			if (m->has_drift)
				ret[node].drift_ppm = m->drift_ppm;
		}
	}
}

void watch_faults_init(struct watch_faults *w, const struct suite_scenario *s, struct network *net)
{
	*w = (struct watch_faults){ .s = s, .net = net };
	for (uint32_t i = 0; i < s->n_machines; i++)
		for (unsigned node = 0; node < net->config.n_nodes; node++)
			if (s->machines[i].is_newer && cw_suite_set_has(&s->machines[i].set, node))
				network_set_newer(net, node);
}

/* Sets the links between the nodes of the two sets, each pair once. */
static void set_links(struct network *net, const struct suite_fault *f, enum network_link how)
{
	unsigned n = net->config.n_nodes;

	for (unsigned a = 0; a < n; a++) {
		if (!cw_suite_set_has(&f->set, a))
			continue;
		for (unsigned b = 0; b < n; b++)
			if (b != a && cw_suite_set_has(&f->others, b) &&
			    !(b < a && cw_suite_set_has(&f->set, b) &&
			      cw_suite_set_has(&f->others, a)))
				network_set_link(net, a, b, how);
	}
}

static void set_digests(struct network *net, const struct suite_fault *f, bool begins)
{
	struct network_digests *d = &net->digest_faults;
	unsigned every = begins ? (unsigned)f->value : 0;

	switch (f->field) {
	case SUITE_DIGESTS_LATE:
		d->late_every = every;
		d->late_ns = f->late_ns;
		break;
	case SUITE_DIGESTS_LOST:
		d->lost_every = every;
		break;
	default:
		d->twice_every = every;
		break;
	}
}

static void set_leader(struct network *net, struct cluster *c, const struct suite_fault *f,
		       unsigned leader, bool begins)
{
	switch (f->value) {
	case SUITE_LEADER_KILLED:
		if (begins)
			cluster_quieten(c, leader, CLUSTER_DAEMON_KILLED, f->for_ns);
		break;
	case SUITE_LEADER_SILENT:
		if (begins)
			cluster_quieten(c, leader, CLUSTER_DAEMON_HELD, f->for_ns);
		break;
	case SUITE_LEADER_CUT:
		network_set_links_of(net, leader, begins ? NETWORK_CUT : NETWORK_JOINED);
		break;
	case SUITE_LEADER_STALLED:
		network_set_links_of(net, leader, begins ? NETWORK_STALLED : NETWORK_JOINED);
		break;
	default:
		if (begins)
			network_restart_leader(net, leader);
		break;
	}
}

/* Makes all nodes read their configuration again, although it has not changed. */
static void reload(struct network *net)
{
	for (unsigned i = 0; i < net->config.n_nodes; i++) {
		struct network_node *n = &net->nodes[i];

		if (n->life != NETWORK_RUNS)
			continue;
		cw_leader_retry_alerts(n->leader);
		cw_leader_set_thresholds(n->leader, net->config.thresholds);
	}
}

static void set(struct watch_faults *w, struct cluster *c, uint32_t i, bool begins)
{
	const struct suite_fault *f = &w->s->faults[i];

	switch (f->action) {
	case SUITE_NODE_CUT:
		set_links(w->net, f, begins ? NETWORK_CUT : NETWORK_JOINED);
		break;
	case SUITE_NODE_STALLED:
	case SUITE_NODE_SUSPENDED: /* the node's kernel does not answer */
		set_links(w->net, f, begins ? NETWORK_STALLED : NETWORK_JOINED);
		break;
	case SUITE_DIGESTS:
		set_digests(w->net, f, begins);
		break;
	case SUITE_ALERTS:
		if (f->value == SUITE_ALERTS_MUTED)
			w->are_muted = begins;
		else
			w->are_undelivered = begins;
		break;
	case SUITE_RELOAD:
		if (begins)
			reload(w->net);
		break;
	case SUITE_CROWD:
		w->crowd = begins ? (uint32_t)f->value : 0;
		break;
	default:
		set_leader(w->net, c, f, w->of[i].leader, begins);
		break;
	}
}

static bool begin(struct watch_faults *w, struct cluster *c, uint32_t i)
{
	int leader;

	if (w->s->faults[i].action != SUITE_LEADER)
		return true;
	leader = network_leader(w->net);
	if (leader >= 0)
		w->of[i].leader = (unsigned)leader;
	else if (cluster_is_over(c)) /* an ended job has no leader, so the fault is over */
		w->of[i].is_over = true;
	else
		return false;
	return true;
}

void watch_faults_run(struct watch_faults *w, struct cluster *cluster, int64_t now_ns)
{
	for (uint32_t i = 0; i < w->s->n_faults; i++) {
		const struct suite_fault *f = &w->s->faults[i];

		if ((!suite_fault_is_between_daemons(f) && f->action != SUITE_NODE_SUSPENDED) ||
		    w->of[i].is_over || now_ns < f->at_ns)
			continue;
		if (!w->of[i].has_begun) {
			if (!begin(w, cluster, i))
				continue;
			w->of[i].has_begun = true;
			if (w->of[i].is_over)
				continue;
			w->of[i].until_ns =
				f->for_ns == SUITE_FOREVER ? SUITE_FOREVER : now_ns + f->for_ns;
			set(w, cluster, i, true);
		} else if (now_ns >= w->of[i].until_ns) {
			w->of[i].is_over = true;
			set(w, cluster, i, false);
		}
	}
}

bool watch_faults_have_begun(const struct watch_faults *w)
{
	for (uint32_t i = 0; i < w->s->n_faults; i++)
		if (suite_fault_is_between_daemons(&w->s->faults[i]) && !w->of[i].has_begun)
			return false;
	return true;
}
