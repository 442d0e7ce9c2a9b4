/* SPDX-License-Identifier: Apache-2.0 */
/* A node of the cluster was taken over: it has the key, and lies. */
#include <criterion/criterion.h>
#include <string.h>

#include "identity/job_id.h"
#include "tests/support/leader_fixture.h"

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

static void object(struct network_node *from)
{
	struct network_node *to = &c.nodes[led_by()];
	const struct cw_job *led = cluster_job(&c, to->index);
	struct cw_message msg = { .type = CW_MSG_INCIDENT_OBJECTION,
				  .incident_objection = {
					  .node = from->name,
					  .reason = "the alert went out from here",
					  .uid = CLUSTER_UID,
					  .label = CLUSTER_LABEL,
				  } };

	msg.incident_objection.id = led ? cw_job_incidents_id(&led->incidents) : "";
	if (*msg.incident_objection.id)
		(void)cw_transport_send(from->transport, to->name, &msg);
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

/* Who would lead if this node were lost may have led: hardening.md says what follows. */
Test(leader_lost_node, the_deputy_is_believed)
{
	cluster_fault(&c, FAULT_NEVER_ENTERED, 8);
	object_for(deputy(), 240);
	cr_assert_eq(c.n_alerts, 0);
}

Test(leader_lost_node, deliveries_are_believed_of_who_has_a_part_in_leading)
{
	struct network_node *leader = &c.nodes[led_by()];

	cr_assert(cw_leader_doubts(leader->leader, bystander()->name, CLUSTER_UID, CLUSTER_LABEL));
	cr_assert(cw_leader_doubts(leader->leader, "unheard of", CLUSTER_UID, CLUSTER_LABEL));
	cr_assert_not(cw_leader_doubts(leader->leader, deputy()->name, CLUSTER_UID, CLUSTER_LABEL));
	cr_assert_not(cw_leader_doubts(leader->leader, bystander()->name, CLUSTER_UID, "another"),
		      "of a job that it does not lead");
}

/* It announces before anybody else can: the others then object in its name. */
Test(leader_lost_node, announcing_first_does_not_silence_an_alert)
{
	struct network_node *liar = bystander();
	struct cw_job_id id = job();
	struct cw_message msg = { .type = CW_MSG_INCIDENT_ANNOUNCE,
				  .incident_announce = {
					  .id = "0123456789abcdef0123456789abcdef",
					  .route = cw_job_id_route(&id),
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
