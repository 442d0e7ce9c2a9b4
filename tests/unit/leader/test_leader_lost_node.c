/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the cluster was taken over: it has the key, and lies. */
#include <criterion/criterion.h>
#include <string.h>

#include "identity/job_id.h"
#include "tests/support/cluster/leader_fixture.h"

TestSuite(leader_lost_node, .init = leader_setup, .fini = leader_teardown);

static unsigned led_by(void)
{
	int leader = cluster_leader(&c);

	cr_assert_geq(leader, 0);
	return (unsigned)leader;
}

static struct cw_job_id job(void)
{
	struct cw_job_id id;

	cr_assert_eq(cw_job_id_make(CLUSTER_UID, CLUSTER_LABEL, &id), 0);
	return id;
}

/* Neither the leader nor who would be. */
static struct network_node *bystander(void)
{
	const struct cw_election *m = c.nodes[led_by()].election;
	struct cw_job_id id = job();

	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != led_by() && !cw_election_is_deputy(m, &id, c.nodes[i].name))
			return &c.nodes[i];
	cr_assert_fail("everybody is a deputy");
	return NULL;
}

static struct network_node *deputy(void)
{
	for (unsigned i = 0; i < c.n_nodes; i++)
		if (i != led_by() && &c.nodes[i] != bystander())
			return &c.nodes[i];
	cr_assert_fail("there is none");
	return NULL;
}

static void object_as_of(struct network_node *from, const char *label)
{
	struct network_node *to = &c.nodes[led_by()];
	const struct cw_job *led = cluster_job(&c, to->index);
	struct cw_message msg = { .type = CW_MSG_INCIDENT_OBJECTION,
				  .incident_objection = {
					  .node = from->name,
					  .reason = "the alert went out from here",
					  .uid = CLUSTER_UID,
					  .label = label,
				  } };

	msg.incident_objection.id = led ? cw_job_incidents_id(&led->incidents) : "";
	if (*msg.incident_objection.id)
		(void)cw_transport_send(from->transport, to->name, &msg);
}

static void object(struct network_node *from)
{
	object_as_of(from, CLUSTER_LABEL);
}

static void object_for(struct network_node *from, unsigned seconds)
{
	for (unsigned i = 0; i < 10 * seconds; i++) {
		object(from);
		cluster_run(&c, 0.1);
	}
}

Test(leader_lost_node, objections_without_end_do_not_silence_an_alert)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	object_for(bystander(), 240);
	cr_assert_eq(c.n_alerts, 1);
	cr_assert_eq(c.alerts[0].culprit, 8);
	cr_assert_eq(json_array_size(json_object_get(c.alerts[0].doc, "objections")), 1);
}

/*
 * Makes a label without a job, such that this node would be its deputy, or would lead it before the
 * leader of the job.
 */
static void make_up_label(const struct network_node *node, bool as_deputy, char *ret, size_t len)
{
	const struct network_node *leader = &c.nodes[led_by()];
	struct cw_job_id id;

	for (unsigned i = 0; i < 10000; i++) {
		uint64_t job_hash;

		(void)snprintf(ret, len, "made-up-%u", i);
		cr_assert_eq(cw_job_id_make(CLUSTER_UID, ret, &id), 0);
		job_hash = cw_job_id_hash(&id);
		if (as_deputy ? cw_election_is_deputy(leader->election, &id, node->name)
			      : cw_election_weight(job_hash, node->name) >
					cw_election_weight(job_hash, leader->name))
			return;
	}
	cr_assert_fail("there is none");
}

Test(leader_lost_node, an_objection_counts_for_the_job_that_it_names)
{
	struct network_node *liar = bystander();
	char label[32];

	make_up_label(liar, true, label, sizeof(label));
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	for (unsigned i = 0; i < 10 * 240; i++) {
		object_as_of(liar, label);
		cluster_run(&c, 0.1);
	}
	cr_assert_eq(c.n_alerts, 1);
}

Test(leader_lost_node, a_delivery_counts_for_the_job_that_it_names)
{
	struct network_node *leader = &c.nodes[led_by()], *liar = bystander();
	char label[32], too_long[400];
	const char *id;

	make_up_label(liar, false, label, sizeof(label));
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 120);
	id = cw_job_incidents_id(&cluster_job(&c, leader->index)->incidents);
	cr_assert_not(
		cw_leader_is_unconfirmed(leader->leader, liar->name, CLUSTER_UID, label, "0"));
	cr_assert(cw_leader_is_unconfirmed(leader->leader, liar->name, CLUSTER_UID, label, id));
	cr_assert_not(cw_leader_is_unconfirmed(leader->leader, deputy()->name, CLUSTER_UID,
					       CLUSTER_LABEL, id));
	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	cr_assert(cw_leader_is_unconfirmed(leader->leader, deputy()->name, CLUSTER_UID, too_long,
					   "0"));
}

/*
 * The node that would lead if this node were lost may have led: hardening.md has the consequences.
 */
Test(leader_lost_node, the_deputy_is_believed)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	object_for(deputy(), 240);
	cr_assert_eq(c.n_alerts, 0);
}

Test(leader_lost_node, deliveries_are_believed_of_who_has_a_part_in_leading)
{
	struct network_node *leader = &c.nodes[led_by()];

	cr_assert(cw_leader_is_unconfirmed(leader->leader, bystander()->name, CLUSTER_UID,
					   CLUSTER_LABEL, "0"));
	cr_assert(cw_leader_is_unconfirmed(leader->leader, "unheard of", CLUSTER_UID, CLUSTER_LABEL,
					   "0"));
	cr_assert_not(cw_leader_is_unconfirmed(leader->leader, deputy()->name, CLUSTER_UID,
					       CLUSTER_LABEL, "0"));
}

/* It may lead later: a delivery that it believes now keeps it from sending that alert then. */
Test(leader_lost_node, who_does_not_lead_believes_deliveries_of_who_has_ranks)
{
	struct network_node *other = deputy();

	cr_assert_not(cw_leader_is_unconfirmed(other->leader, c.nodes[led_by()].name, CLUSTER_UID,
					       CLUSTER_LABEL, "0"));
	cr_assert_not(cw_leader_is_unconfirmed(other->leader, bystander()->name, CLUSTER_UID,
					       CLUSTER_LABEL, "0"));
	cr_assert(cw_leader_is_unconfirmed(other->leader, "unheard of", CLUSTER_UID, CLUSTER_LABEL,
					   "0"));
}

Test(leader_lost_node, of_an_unknown_job_deliveries_are_believed_of_who_would_lead_it_sooner)
{
	struct cw_job_id id;
	unsigned believed = 0;

	cr_assert_eq(cw_job_id_make(CLUSTER_UID, "another", &id), 0);
	for (unsigned i = 0; i < c.n_nodes; i++)
		for (unsigned k = 0; k < c.n_nodes; k++) {
			uint64_t job_hash = cw_job_id_hash(&id);
			bool is_sooner = cw_election_weight(job_hash, c.nodes[k].name) >
					 cw_election_weight(job_hash, c.nodes[i].name);

			believed += is_sooner;
			cr_assert_eq(cw_leader_is_unconfirmed(c.nodes[i].leader, c.nodes[k].name,
							      CLUSTER_UID, "another", "0"),
				     !is_sooner);
		}
	cr_assert_eq(believed, 3);
}

/* It announces before any other node can: the others then object in its name. */
Test(leader_lost_node, announcing_first_does_not_silence_an_alert)
{
	struct network_node *liar = bystander();
	struct cw_job_id id = job();
	struct cw_message msg = { .type = CW_MSG_INCIDENT_ANNOUNCE,
				  .incident_announce = {
					  .id = "0123456789abcdef0123456789abcdef",
					  .job_hash = cw_job_id_hash(&id),
					  .job_key = id.key,
					  .uid = CLUSTER_UID,
					  .label = CLUSTER_LABEL,
					  .node = liar->name,
					  .summary = "mine",
				  } };

	(void)cw_transport_announce(liar->transport, &msg);
	cluster_run(&c, 1);
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	cluster_run(&c, 400);
	cr_assert_eq(c.n_alerts, 1);
	cr_assert_eq(c.alerts[0].culprit, 8);
}

/* ---- a job on more nodes than a leader names, and two nodes without ranks of it ---- */

#define LARGE_NODES 22u
#define LARGE_RANK_NODES 20u

static unsigned n_muted;

static void on_muted(void *user, const char *node, uint32_t uid, const char *label,
		     uint64_t until_wall_ns)
{
	n_muted += uid == CLUSTER_UID && !strcmp(label, CLUSTER_LABEL) && until_wall_ns;
}

static void large_setup(void)
{
	cluster_init(&c, LARGE_NODES, 2 * LARGE_RANK_NODES);
	c.n_rank_nodes = LARGE_RANK_NODES;
	for (unsigned i = 0; i < c.n_nodes; i++)
		c.nodes[i].effects.muted = on_muted;
	cluster_run(&c, 10);
	n_muted = 0;
}

TestSuite(leader_lost_node_large, .init = large_setup, .fini = leader_teardown);

/* Has no ranks, does not lead, and would not lead before most others. */
static struct network_node *stranger(void)
{
	unsigned i = LARGE_RANK_NODES + (led_by() == LARGE_RANK_NODES);
	struct cw_job_id id = job();

	if (cw_election_is_deputy(c.nodes[led_by()].election, &id, c.nodes[i].name))
		i = 2 * LARGE_RANK_NODES + 1 - i;
	return &c.nodes[i];
}

Test(leader_lost_node_large, only_who_has_ranks_of_the_job_or_leads_it_has_a_part_in_it)
{
	const char *leader = c.nodes[led_by()].name;
	struct cw_job_id id = job();

	cr_assert_gt(LARGE_RANK_NODES, CW_ELECTION_MAX_NAMES);
	for (unsigned at = 0; at < c.n_nodes; at++) {
		cr_assert_not(cw_leader_has_part(c.nodes[at].leader, &id, stranger()->name),
			      "at %s", c.nodes[at].name);
		cr_assert(at >= LARGE_RANK_NODES ||
			  cw_leader_has_part(c.nodes[at].leader, &id, leader));
	}
	/* The leader knows all nodes with a part, though it names none. */
	for (unsigned i = 0; i < LARGE_RANK_NODES; i++)
		cr_assert(cw_leader_has_part(c.nodes[led_by()].leader, &id, c.nodes[i].name));
}

Test(leader_lost_node_large, deliveries_are_believed_of_who_may_have_led_it)
{
	struct network_node *liar = stranger();
	struct cw_job_id id = job();

	for (unsigned at = 0; at < LARGE_RANK_NODES; at++) {
		const struct network_node *n = &c.nodes[at];
		bool is_sooner = cw_election_weight(cw_job_id_hash(&id), liar->name) >
				 cw_election_weight(cw_job_id_hash(&id), n->name);

		cr_assert_eq(cw_leader_is_unconfirmed(n->leader, liar->name, CLUSTER_UID,
						      CLUSTER_LABEL, "0"),
			     at == led_by() || !is_sooner, "at %s", n->name);
	}
}

/* Says to have a rank of the job, and that people have muted it. */
static void send_muted(const struct network_node *from, const char *in_the_name_of,
		       const struct cw_job_key *key, uint64_t number)
{
	struct cw_msg_rank rank = { .rank = 0, .pid = 4711 };
	struct cw_job_id id = job();
	struct cw_message msg = { .type = CW_MSG_DIGEST,
				  .digest = {
					  .job_hash = cw_job_id_hash(&id),
					  .job_key = *key,
					  .uid = CLUSTER_UID,
					  .label = CLUSTER_LABEL,
					  .node = in_the_name_of,
					  .policy = "",
					  .epoch = 1,
					  .number = number,
					  .ranks = &rank,
					  .n_ranks = 1,
					  .muted_until_ns = UINT64_MAX,
				  } };

	cr_assert_eq(cw_transport_send(from->transport, c.nodes[led_by()].name, &msg), 0);
	cluster_run(&c, 0.5);
}

static uint64_t refused(void)
{
	struct cw_leader_stats stats;

	cw_leader_stats(c.nodes[led_by()].leader, &stats);
	return stats.refused_digests;
}

/* No node would see it among the job's nodes. */
Test(leader_lost_node_large, a_digest_that_is_refused_mutes_nothing)
{
	struct network_node *liar = stranger();
	struct cw_job_id id = job();
	struct cw_job_key other = id.key;
	uint64_t before = refused();

	other.bytes[0]++;
	send_muted(liar, c.nodes[0].name, &id.key, 1);
	send_muted(liar, liar->name, &other, 1);
	cr_assert_eq(refused(), before + 2);
	cr_assert_eq(n_muted, 0);
	cr_assert_not(cw_leader_has_part(c.nodes[led_by()].leader, &id, liar->name));
}

Test(leader_lost_node_large, a_mute_is_heard_of_a_node_that_is_seen_to_have_ranks)
{
	struct network_node *liar = stranger();
	struct cw_job_id id = job();

	send_muted(liar, liar->name, &id.key, 2);
	cr_assert_eq(n_muted, 1);
	cr_assert(cw_leader_has_part(c.nodes[led_by()].leader, &id, liar->name));
	/* A message that left before it and is read after it is no news. */
	send_muted(liar, liar->name, &id.key, 1);
	cr_assert_eq(n_muted, 1);
}
