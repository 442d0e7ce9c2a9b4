/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A leader whose memory runs out, at every allocation from the first digest to an alert and to the
 * end of it. The work of its driver (messages, bundles, alerts) never fails here.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/cluster/cluster.h"
#include "tests/support/memory/no_memory.h"

#define NODES 2u
#define RANKS 4u
#define CULPRIT 2u

static struct cluster c;

/* ---- only in the leader's own code ---- */

static bool is_iterating;
static bool is_walked; /* the part of the run where memory may run out */

static void leave(void)
{
	no_memory_end();
}

static void come_back(void)
{
	if (is_iterating && is_walked)
		no_memory_begin();
}

static struct cw_leader_effects driver;

static int send_message(void *user, const char *node, const struct cw_message *msg)
{
	int r;

	leave();
	r = driver.send(user, node, msg);
	come_back();
	return r;
}

static unsigned announce(void *user, const struct cw_message *msg)
{
	unsigned n;

	leave();
	n = driver.announce(user, msg);
	come_back();
	return n;
}

static int ask(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
	       cw_leader_answer_fn fn, void *asker)
{
	int r;

	leave();
	r = driver.ask(user, node, msg, deadline_ms, fn, asker);
	come_back();
	return r;
}

static int put(void *user, const struct cw_bundle *bundle)
{
	int r;

	leave();
	r = driver.put(user, bundle);
	come_back();
	return r;
}

static json_t *load_incident(void *user, const struct cw_incident_due *due, bool *ret_is_whole)
{
	json_t *doc;

	leave();
	doc = driver.load_incident(user, due, ret_is_whole);
	come_back();
	return doc;
}

static int update_incident(void *user, json_t *incident)
{
	int r;

	leave();
	r = driver.update_incident(user, incident);
	come_back();
	return r;
}

static int alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	int r;

	leave();
	r = driver.alert(user, due, doc);
	come_back();
	return r;
}

static int put_postmortem(void *user, const struct cw_incident_due *due, json_t *doc,
			  bool may_alert)
{
	int r;

	leave();
	r = driver.put_postmortem(user, due, doc, may_alert);
	come_back();
	return r;
}

static void log_line(void *user, int level, const char *fmt, va_list ap)
{
}

static void log_event(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields)
{
}

static struct network_ranks ranks;

static void publish(void *user, struct network_node *n)
{
	leave();
	ranks.publish(user, n);
	come_back();
}

static void windows(void *user, struct network_node *n, const char *from,
		    const struct cw_msg_window_request *q)
{
	leave();
	ranks.windows(user, n, from, q);
	come_back();
}

static void on_iteration(void *user, const struct network_node *n, bool is_end)
{
	is_iterating = !is_end;
	if (is_end)
		leave();
	else
		come_back();
}

static const struct network_observer observer = { .on_iteration = on_iteration };

static void start(void)
{
	cluster_init(&c, NODES, RANKS);
	driver = c.nodes[0].effects; /* but for its user, all nodes' */
	for (unsigned i = 0; i < NODES; i++) {
		struct cw_leader_effects *e = &c.nodes[i].effects;

		e->send = send_message;
		e->announce = announce;
		e->ask = ask;
		e->put = put;
		e->load_incident = load_incident;
		e->update_incident = update_incident;
		e->alert = alert;
		e->put_postmortem = put_postmortem;
		e->log = log_line;
		e->event = log_event;
	}
	ranks = c.ranks;
	c.ranks.publish = publish;
	c.ranks.windows = windows;
	c.net->observer = &observer;
}

/* With memory that may run out, and that the driver has not, either, when it reads a message. */
static void walk_for(double seconds)
{
	int64_t end_ns = c.net->now_ns + (int64_t)(seconds * 1e9);

	is_walked = true;
	while (c.net->now_ns < end_ns) {
		(void)network_run(c.net, NETWORK_TICK_NS);
		c.net->error = 0;
	}
	is_walked = false;
}

static void expect_alert(const char *verdict_class)
{
	const struct fake_store_bundle *bundle;
	double waited_s = 0;

	while (c.n_alerts == 0 && waited_s++ < 60)
		cluster_run(&c, 1);
	cr_assert_eq(c.n_alerts, 1);
	cr_assert_str_eq(c.alerts[0].verdict_class, verdict_class);
	/* It may not have heard of half of the ranks. */
	cr_assert(c.alerts[0].culprit == (int)CULPRIT ||
		  (c.alerts[0].culprit == -1 && no_memory_happened()));
	bundle = cluster_bundle(&c, c.alerts[0].node, c.alerts[0].id);
	cr_assert_not_null(bundle);
	cr_assert_str_eq(json_string_value(json_object_get(bundle->incident, "class")),
			 verdict_class);
}

/* ---- scenarios ---- */

/* A job comes, and is led. */
static void first_digests(void *userdata)
{
	start();
	walk_for(2.5);
	cluster_run(&c, 3);
	cr_assert_geq(cluster_leader(&c), 0);
	cr_assert_eq(cluster_job(&c, (unsigned)cluster_leader(&c))->view.ranks, RANKS);
	cluster_run(&c, 10);
	cr_assert_eq(c.n_alerts, 0);
	cluster_fault(&c, FAULT_MISMATCH, CULPRIT);
	expect_alert("mismatch");
	cluster_fini(&c);
}

Test(leader_no_memory, a_job_is_led_all_the_same)
{
	no_memory_walk("first digests", first_digests, NULL);
}

/* From the fault to the alert: evaluations, windows, evidence, the bundle. */
static void to_the_alert(void *userdata)
{
	start();
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_MISMATCH, CULPRIT);
	walk_for(6);
	expect_alert("mismatch");
	cluster_run(&c, 30);
	cr_assert_eq(c.n_alerts, 1);
	cluster_fini(&c);
}

Test(leader_no_memory, a_hang_is_told_of_once_all_the_same)
{
	no_memory_walk("to the alert", to_the_alert, NULL);
}

/* A rank inside no call: with the last evaluation before the alert, and stacks. */
static void to_the_late_alert(void *userdata)
{
	start();
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_NEVER_ENTERED, CULPRIT);
	while (c.net->now_ns < c.fault_ns + 9 * CW_NS_PER_S)
		cluster_run(&c, 0.1);
	cr_assert_eq(c.n_alerts, 0);
	walk_for(5);
	expect_alert("never_entered");
	cluster_fini(&c);
}

Test(leader_no_memory, so_is_one_of_a_rank_that_never_came)
{
	no_memory_walk("to the late alert", to_the_late_alert, NULL);
}

/* From the alert to its end. */
static void to_the_end(void *userdata)
{
	start();
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_MISMATCH, CULPRIT);
	expect_alert("mismatch");
	cluster_heal(&c);
	walk_for(3);
	cluster_run(&c, 30);
	cr_assert_eq(c.n_alerts, 1);
	for (unsigned i = 0; i < NODES; i++)
		cr_assert(!cw_leader_has_open(c.nodes[i].leader, CLUSTER_UID, c.alerts[0].id));
	cluster_fini(&c);
}

Test(leader_no_memory, what_is_over_is_closed_all_the_same)
{
	no_memory_walk("to the end", to_the_end, NULL);
}

/* All die: a post-mortem, once, whole. */
static void everybody_dies(void *userdata)
{
	start();
	cluster_run(&c, 5);
	cluster_fault(&c, FAULT_KILLED, CULPRIT);
	walk_for(5);
	expect_alert("process_dead");
	cluster_run(&c, 30);
	cr_assert_eq(c.n_alerts, 1);
	cluster_fini(&c);
}

Test(leader_no_memory, a_death_is_told_of_once_all_the_same)
{
	no_memory_walk("a death", everybody_dies, NULL);
}
