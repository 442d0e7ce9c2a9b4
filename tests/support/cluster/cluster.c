/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>

#include "cluster_job.h"

#define STEP_NS (100 * CW_NS_PER_MS)

/* ---- the ranks' half of a daemon ---- */

static void say_nothing(void *user, struct network_node *n, const char *from,
			const struct cw_msg_evidence_request *q)
{
}

static void advance(void *user, int64_t now_ns)
{
	struct cluster *c = user;

	c->now_ns = now_ns;
	c->ranks.evidence = c->evidence_mute ? say_nothing : NULL;
	cluster_job_train(c);
	if (c->guest) {
		c->guest->now_ns = now_ns;
		cluster_job_train(c->guest);
	}
}

static void publish(void *user, struct network_node *n)
{
	cluster_job_publish(user, n);
}

static void answer_windows(void *user, struct network_node *n, const char *from,
			   const struct cw_msg_window_request *q)
{
	cluster_job_answer_windows(user, n, from, q);
}

static int on_alert(void *user, struct network_node *n, const struct cw_incident_due *due,
		    const json_t *doc)
{
	struct cluster *c = user;
	const json_t *culprits = json_object_get(doc, "culprits");
	struct cluster_alert *a = &c->alerts[c->n_alerts];

	if (c->alerts_fail)
		return -EAGAIN;
	cr_assert_lt(c->n_alerts, CLUSTER_MAX_ALERTS);
	c->n_alerts++;
	a->node = n->index;
	a->at_ns = c->now_ns;
	(void)snprintf(a->id, sizeof(a->id), "%s", due->id);
	(void)snprintf(a->verdict_class, sizeof(a->verdict_class), "%s",
		       json_string_value(json_object_get(doc, "class")));
	a->culprit = -1;
	if (json_array_size(culprits) == 1)
		a->culprit = (int)json_integer_value(
			json_object_get(json_array_get(culprits, 0), "rank"));
	a->doc = json_deep_copy(doc);
	return 0;
}

static const char *suppress_reason(void *user, struct network_node *n,
				   const struct cw_incident_due *due)
{
	return ((struct cluster *)user)->suppress_reason;
}

/* Returns the CPU time used. The leader calls it before and after each part of an evaluation. */
static int64_t on_cpu(void *user)
{
	struct cluster *c = user;

	return c->cpu_ns += c->evaluation_cost_ns;
}

/* ---- life ---- */

void cluster_init(struct cluster *c, unsigned n_nodes, unsigned n_ranks)
{
	static const char *const names[CLUSTER_MAX_NODES] = {
		"node-a", "node-b", "node-c", "node-d", "node-e", "node-f", "node-g", "node-h",
		"node-i", "node-j", "node-k", "node-l", "node-m", "node-n", "node-o", "node-p",
		"node-q", "node-r", "node-s", "node-t", "node-u", "node-v", "node-w", "node-x",
	};
	static struct cw_thresholds thresholds;
	struct network_config config = { .n_nodes = n_nodes,
					 .names = names,
					 .thresholds = &thresholds,
					 .has_no_notices = true,
					 .cpu_ns = on_cpu,
					 .ranks = &c->ranks,
					 .user = c };

	cr_assert_leq(n_nodes, CLUSTER_MAX_NODES);
	cr_assert_leq(n_ranks, CLUSTER_MAX_RANKS);
	thresholds = cw_thresholds_default();
	/* A rank that is idle for ten times this long hangs. */
	thresholds.no_progress_after_ns = CW_NS_PER_S;
	*c = (struct cluster){ .n_nodes = n_nodes,
			       .n_ranks = n_ranks,
			       .ranks = { .advance = advance,
					  .publish = publish,
					  .windows = answer_windows,
					  .alert = on_alert,
					  .suppress_reason = suppress_reason },
			       .uid = CLUSTER_UID,
			       .step_every_ns = STEP_NS,
			       .seq = 100,
			       .ops_recorded = 8192 };
	cr_assert_eq(network_new(&config, &c->net), 0);
	c->nodes = c->net->nodes;
	c->now_ns = c->step_ns = c->net->now_ns;
}

void cluster_add_guest(struct cluster *c, struct cluster *guest, uint32_t uid)
{
	*guest = (struct cluster){ .n_nodes = c->n_nodes,
				   .n_ranks = c->n_ranks,
				   .now_ns = c->now_ns,
				   .step_ns = c->now_ns,
				   .step_every_ns = STEP_NS,
				   .ops_recorded = 8192,
				   .seq = 500,
				   .uid = uid };
	c->guest = guest;
}

void cluster_fini(struct cluster *c)
{
	c->net = network_free(c->net);
	for (unsigned i = 0; i < c->n_alerts; i++)
		json_decref(c->alerts[i].doc);
}

void cluster_run(struct cluster *c, double seconds)
{
	cr_assert_eq(network_run(c->net, (int64_t)(seconds * 1e9)), 0);
}

bool cluster_run_until_alert(struct cluster *c, double seconds)
{
	int r = network_run_until_alert(c->net, (int64_t)(seconds * 1e9));

	cr_assert_geq(r, 0);
	return r;
}

void cluster_kill(struct cluster *c, unsigned node)
{
	network_kill(c->net, node, NETWORK_KILLED);
}

void cluster_revive(struct cluster *c, unsigned node)
{
	c->net->iteration_members = c->iteration_members;
	network_start(c->net, node);
}

void cluster_upgrade(struct cluster *c, unsigned node)
{
	cluster_kill(c, node);
	network_set_newer(c->net, node);
	cluster_revive(c, node);
}

void cluster_freeze(struct cluster *c, unsigned node)
{
	network_hold(c->net, node);
}

void cluster_thaw(struct cluster *c, unsigned node)
{
	network_go_on(c->net, node);
}

void cluster_cut(struct cluster *c, unsigned a, unsigned b)
{
	network_set_link(c->net, a, b, NETWORK_CUT);
}

void cluster_join(struct cluster *c, unsigned a, unsigned b)
{
	network_set_link(c->net, a, b, NETWORK_JOINED);
}

void cluster_restart(struct cluster *c, unsigned node)
{
	c->net->iteration_members = c->iteration_members;
	network_restart_leader(c->net, node);
}

const struct fake_store_bundle *cluster_bundle(const struct cluster *c, unsigned node,
					       const char *id)
{
	return network_bundle(c->net, node, id);
}

const struct cw_job *cluster_job(const struct cluster *c, unsigned node)
{
	return network_job(c->net, node);
}

const char *cluster_elected(const struct cluster *c, unsigned node)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(CLUSTER_UID, CLUSTER_LABEL, &job), 0);
	return cw_election_leader(c->nodes[node].election, &job);
}

int cluster_leader(const struct cluster *c)
{
	return network_leader(c->net);
}
