/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "cluster_job.h"
#include "common/cleanup.h"
#include "proto/codec.h"
#include "proto/frame.h"
#include "proto/messages.h"

#define TICK_NS (50 * CW_NS_PER_MS)
#define STEP_NS (100 * CW_NS_PER_MS)

struct cluster_frame {
	struct cluster_frame *next, *prev;
	unsigned from;
	int64_t due_ns;
	size_t len;
	uint8_t bytes[];
};

/* ---- who looks on ---- */

static void observe_message(const struct cluster_node *n, bool is_out, const char *peer,
			    const struct cw_message *msg, const uint8_t *frame, size_t len)
{
	const struct cluster_observer *o = n->cluster->observer;

	if (o && o->on_message)
		o->on_message(o->user, n, is_out, peer, msg, frame, len);
}

static void observe_frame(const struct cluster_node *n, bool is_out, const char *peer,
			  const uint8_t *frame, size_t len)
{
	struct cw_message *m = NULL;

	if (!n->cluster->observer)
		return;
	cr_assert_eq(
		cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m),
		0);
	observe_message(n, is_out, peer, m, frame, len);
	cw_message_free(m);
}

static void observe_event(struct cluster *c, unsigned node, const char *what)
{
	const struct cluster_observer *o = c->observer;

	if (o && o->on_event)
		o->on_event(o->user, &c->nodes[node], what);
}

static void observe_link(struct cluster *c, const char *what, unsigned a, unsigned b)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s %s", what, c->nodes[b].name);
	observe_event(c, a, text);
}

void cluster_answer(struct cluster_node *n, const char *to, const struct cw_message *msg)
{
	if (!strcmp(to, n->name))
		observe_message(n, false, to, msg, NULL, 0);
	(void)cw_transport_send(n->transport, to, msg);
}

/* ---- what nodes answer ---- */

static void answer_evidence(struct cluster_node *n, const char *from,
			    const struct cw_msg_evidence_request *q)
{
	for (uint32_t i = 0; i < q->n_targets; i++)
		*(q->targets[i].what & CW_EVIDENCE_BRIEF ? &n->briefly_asked
							 : &n->evidence_asked) += 1;
	for (uint32_t i = 0; i < q->n_targets && !n->cluster->evidence_mute; i++) {
		struct cw_message msg = {
			.type = CW_MSG_EVIDENCE_REPLY,
			.evidence_reply = { .id = q->id,
					    .pid = q->targets[i].pid,
					    .start_ticks = q->targets[i].start_ticks,
					    .json = "{\"schema\":\"collwatch.evidence/"
						    "1\",\"native\":{"
						    "\"threads\":[{\"name\":\"t\",\"frames\":"
						    "[{\"symbol\":\"wait\"}]}]}}",
					    .remaining = q->n_targets - i - 1 },
		};

		cluster_answer(n, from, &msg);
	}
}

static bool was_told(const struct cluster_node *n, const char *id)
{
	for (unsigned i = 0; i < n->n_told; i++)
		if (!strcmp(n->told[i], id))
			return true;
	return false;
}

static void learn(struct cluster_node *n, const char *id)
{
	if (was_told(n, id))
		return;
	cr_assert_lt(n->n_told, CLUSTER_MAX_ALERTS);
	(void)snprintf(n->told[n->n_told++], CW_INCIDENT_ID_LEN, "%s", id);
}

/* ---- the version before ---- */

/* As its codec leaves a message: what it does not know is gone. */
static void forget_job(struct cw_message *m)
{
	static const struct cw_job_key none;

	switch (m->type) {
	case CW_MSG_DIGEST:
	case CW_MSG_DIGEST_COPY:
		m->digest.job_key = none;
		m->digest.untracked = 0;
		m->digest.sent_ns = 0;
		break;
	case CW_MSG_RANK_SEARCH:
		m->rank_search.job_key = none;
		break;
	case CW_MSG_MEMBERS:
		m->members.job_key = none;
		m->members.label = "";
		m->members.standing = 0;
		break;
	case CW_MSG_WINDOW_REQUEST:
		m->window_request.job_key = none;
		m->window_request.label = "";
		break;
	case CW_MSG_EVIDENCE_REQUEST:
		m->evidence_request.job_key = none;
		m->evidence_request.label = "";
		break;
	case CW_MSG_INCIDENT_ANNOUNCE:
		m->incident_announce.job_key = none;
		m->incident_announce.label = "";
		break;
	default:
		break;
	}
}

/* What it does with the rest: to it, a route is the job. */
static void know_by_route(struct cw_message *m)
{
	if (m->type == CW_MSG_MEMBERS && m->members.route == CLUSTER_ROUTE) {
		m->members.label = CLUSTER_LABEL;
		m->members.uid = CLUSTER_UID;
	} else if (m->type == CW_MSG_WINDOW_REQUEST && m->window_request.route == CLUSTER_ROUTE) {
		m->window_request.label = CLUSTER_LABEL;
		m->window_request.uid = CLUSTER_UID;
	} else if (m->type == CW_MSG_INCIDENT_ANNOUNCE &&
		   m->incident_announce.route == CLUSTER_ROUTE) {
		m->incident_announce.label = CLUSTER_LABEL;
		m->incident_announce.uid = CLUSTER_UID;
	}
}

/* The frame as one of them would have written, or would read it; free(). */
static void make_old(const uint8_t *frame, size_t len, uint8_t **ret, size_t *ret_len)
{
	struct cw_message *m = NULL;

	cr_assert_eq(
		cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m),
		0);
	forget_job(m);
	cr_assert_eq(cw_message_encode(m, ret, ret_len), 0);
	cw_message_free(m);
}

static void answer_windows(struct cluster_node *n, const char *from,
			   const struct cw_msg_window_request *q)
{
	struct cw_job_id job;

	if (cw_job_id_read(&q->job_key, q->uid, q->label, &job) == 0)
		cluster_job_answer_windows(n, from, q);
	else
		n->unnamed_windows++;
}

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct cluster_node *n = user;

	if (!strcmp(from, n->name))
		observe_message(n, false, from, *msg, NULL, 0);
	if (n->is_old)
		know_by_route(*msg);
	if ((*msg)->type == CW_MSG_INCIDENT_DELIVERED)
		learn(n, (*msg)->incident_delivered.id);
	else if ((*msg)->type == CW_MSG_MEMBERS)
		cw_election_answer(n->members, from, &(*msg)->members);
	else if ((*msg)->type == CW_MSG_WINDOW_REQUEST)
		answer_windows(n, from, &(*msg)->window_request);
	else if ((*msg)->type == CW_MSG_EVIDENCE_REQUEST)
		answer_evidence(n, from, &(*msg)->evidence_request);
	else if ((*msg)->type == CW_MSG_RANK_SEARCH)
		n->searches++;
	else
		cr_assert(cw_leader_message(n->leader, from, msg));
}

/* ---- what leaders put out ---- */

static void io_path(void *user, const char *id, char *buf, size_t len)
{
	(void)snprintf(buf, len, "/state/incidents/%s", id);
}

static struct cluster_bundle *bundle_of(struct cluster_node *n, const char *id)
{
	struct cluster_bundle *b =
		(struct cluster_bundle *)cluster_bundle(n->cluster, n->index, id);

	if (b)
		return b;
	cr_assert_lt(n->n_bundles, CLUSTER_MAX_BUNDLES);
	b = &n->bundles[n->n_bundles++];
	(void)snprintf(b->id, sizeof(b->id), "%s", id);
	return b;
}

static int io_put(void *user, const struct cw_bundle *bundle)
{
	struct cluster_node *n = user;
	struct cluster_bundle *b;

	cr_assert(json_is_object(bundle->incident));
	cr_assert(json_is_string(bundle->snapshot));
	cr_assert(json_is_array(bundle->evidence));
	n->puts++;
	if (n->cluster->observer && n->cluster->observer->on_put)
		n->cluster->observer->on_put(n->cluster->observer->user, n, bundle);
	json_decref(n->last_put);
	n->last_put = json_deep_copy(bundle->incident);
	b = bundle_of(n, json_string_value(json_object_get(bundle->incident, "id")));
	b->puts++;
	b->has_stacks = json_is_object(bundle->stacks) &&
			json_integer_value(json_object_get(bundle->stacks, "awaited")) == 0;
	json_decref(b->incident);
	b->incident = json_incref(n->last_put);
	return 0;
}

static bool io_was_sent_here(void *user, const struct cw_incident_due *due)
{
	const struct cluster_node *n = user;

	for (unsigned i = 0; i < n->cluster->n_alerts; i++)
		if (n->cluster->alerts[i].node == n->index &&
		    !strcmp(n->cluster->alerts[i].id, due->id))
			return true;
	return false;
}

static bool io_was_sent(void *user, const struct cw_incident_due *due)
{
	return io_was_sent_here(user, due) || was_told(user, due->id);
}

static int io_alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	struct cluster_node *n = user;
	struct cluster *c = n->cluster;
	const json_t *culprits = json_object_get(doc, "culprits");
	struct cluster_alert *a = &c->alerts[c->n_alerts];
	const struct cw_message delivered = {
		.type = CW_MSG_INCIDENT_DELIVERED,
		.incident_delivered = { .id = due->id, .uid = due->uid, .label = due->job }
	};

	if (c->observer && c->observer->on_alert)
		c->observer->on_alert(c->observer->user, n, due, doc, c->alerts_fail ? -EAGAIN : 0);
	if (c->alerts_fail) {
		c->n_refused_alerts++;
		return -EAGAIN;
	}
	cr_assert_lt(c->n_alerts, CLUSTER_MAX_ALERTS);
	c->n_alerts++;
	a->node = n->index;
	a->at_ns = c->now_ns;
	(void)snprintf(a->id, sizeof(a->id), "%s", due->id);
	(void)snprintf(a->klass, sizeof(a->klass), "%s",
		       json_string_value(json_object_get(doc, "class")));
	a->culprit = -1;
	if (json_array_size(culprits) == 1)
		a->culprit = (int)json_integer_value(
			json_object_get(json_array_get(culprits, 0), "rank"));
	a->doc = json_deep_copy(doc);
	(void)cw_transport_announce(n->transport, &delivered);
	return 0;
}

static json_t *io_before(void *user, const struct cw_incident_due *due, bool *ret_is_whole)
{
	const struct cluster_node *n = user;
	const struct cluster_bundle *b = cluster_bundle(n->cluster, n->index, due->id);

	*ret_is_whole = b && b->has_stacks;
	return b ? json_deep_copy(b->incident) : NULL;
}

static int io_amend(void *user, json_t *incident)
{
	struct cluster_node *n = user;
	struct cluster_bundle *b = bundle_of(n, json_string_value(json_object_get(incident, "id")));

	cr_assert_not_null(b->incident);
	if (n->cluster->observer && n->cluster->observer->on_amend)
		n->cluster->observer->on_amend(n->cluster->observer->user, n, incident);
	b->amends++;
	json_decref(b->incident);
	b->incident = json_deep_copy(incident);
	return 0;
}

static const char *io_withhold(void *user, const struct cw_incident_due *due)
{
	const struct cluster_node *n = user;

	return n->cluster->withhold;
}

static int io_send(void *user, const char *node, const struct cw_message *msg)
{
	return cw_transport_send(((struct cluster_node *)user)->transport, node, msg);
}

static unsigned io_announce(void *user, const struct cw_message *msg)
{
	return cw_transport_announce(((struct cluster_node *)user)->transport, msg);
}

static int io_ask(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
		  cw_leader_answer_fn fn, void *asker)
{
	return cw_transport_request(((struct cluster_node *)user)->transport, node, msg,
				    deadline_ms, fn, asker, NULL);
}

static void io_forget(void *user, const void *asker)
{
	cw_transport_cancel(((struct cluster_node *)user)->transport, asker);
}

static const struct cw_peer *io_peers(void *user, unsigned *ret_n)
{
	return cw_transport_peers(((struct cluster_node *)user)->transport, ret_n);
}

static void log_line(void *user, int level, const char *fmt, va_list ap)
{
	cw_log_v(level, fmt, ap);
}

static void log_event(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields)
{
	cw_log_event(level, message_id, text, fields);
}

static const struct cw_leader_effects effects = {
	.send = io_send,
	.announce = io_announce,
	.ask = io_ask,
	.forget = io_forget,
	.peers = io_peers,
	.path = io_path,
	.put = io_put,
	.was_sent = io_was_sent,
	.was_sent_here = io_was_sent_here,
	.withhold = io_withhold,
	.alert = io_alert,
	.before = io_before,
	.amend = io_amend,
	.log = log_line,
	.event = log_event,
};

/* ---- the network ---- */

static unsigned index_of_peer(const struct cluster_node *n, unsigned peer)
{
	return peer < n->index ? peer : peer + 1;
}

static unsigned peer_of_index(const struct cluster_node *n, unsigned index)
{
	return index < n->index ? index : index - 1;
}

static bool can_talk(const struct cluster *c, unsigned a, unsigned b)
{
	return !c->nodes[a].is_dead && !c->nodes[b].is_dead && !c->cut[a][b];
}

static void put_in_inbox(struct cluster_node *to, unsigned from, const uint8_t *frame, size_t len,
			 int64_t due_ns)
{
	struct cluster_frame *f = malloc(sizeof(*f) + len);

	cr_assert_not_null(f);
	f->from = from;
	f->due_ns = due_ns;
	f->len = len;
	memcpy(f->bytes, frame, len);
	DL_APPEND(to->inbox, f);
}

static bool is_digest(const uint8_t *frame, size_t len)
{
	struct cw_message *m = NULL;
	bool is;

	cr_assert_eq(
		cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m),
		0);
	is = m->type == CW_MSG_DIGEST || m->type == CW_MSG_DIGEST_COPY;
	cw_message_free(m);
	return is;
}

/* Some digests come late, some twice; all else goes straight through. */
static void carry(struct cluster_node *n, struct cluster_node *to, const uint8_t *frame, size_t len)
{
	struct cluster_link *link = &n->cluster->link;
	int64_t due_ns = 0;

	if ((link->late_every || link->twice_every) && is_digest(frame, len)) {
		link->n++;
		if (link->late_every && link->n % link->late_every == 0)
			due_ns = n->cluster->now_ns + link->late_ns;
		if (link->twice_every && link->n % link->twice_every == 0)
			put_in_inbox(to, n->index, frame, len, due_ns);
	}
	put_in_inbox(to, n->index, frame, len, due_ns);
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct cluster_node *n = impl, *to = &n->cluster->nodes[index_of_peer(n, peer)];
	_cleanup_(freep) uint8_t *old = NULL;

	if (!can_talk(n->cluster, n->index, to->index))
		return -ENOTCONN;
	if (n->is_old || to->is_old) {
		make_old(frame, len, &old, &len);
		frame = old;
	}
	observe_frame(n, true, to->name, frame, len);
	carry(n, to, frame, len);
	return 0;
}

static const struct cw_transport_ops ops = { .send = on_send };

static void deliver(struct cluster_node *n)
{
	struct cluster_frame *f, *tmp, *batch = n->inbox;

	if (n->is_frozen)
		return; /* its kernel keeps them */
	n->inbox = NULL;
	DL_FOREACH_SAFE (batch, f, tmp) {
		DL_DELETE(batch, f);
		if (!n->is_dead && f->due_ns > n->cluster->now_ns) {
			DL_APPEND(n->inbox, f);
			continue;
		}
		if (!n->is_dead) {
			observe_frame(n, false, n->cluster->nodes[f->from].name, f->bytes, f->len);
			cw_transport_receive(n->transport, peer_of_index(n, f->from),
					     f->bytes + CW_FRAME_HEADER_BYTES,
					     f->len - CW_FRAME_HEADER_BYTES);
		}
		free(f);
	}
}

static void beat(struct cluster_node *n)
{
	struct cluster *c = n->cluster;

	if (c->now_ns < n->beat_ns)
		return;
	n->beat_ns = c->now_ns + CW_PEER_BEAT_NS;
	for (unsigned i = 0; i < c->n_nodes; i++)
		if (i != n->index && can_talk(c, n->index, i) && !c->nodes[i].is_frozen)
			cw_transport_heard(c->nodes[i].transport,
					   peer_of_index(&c->nodes[i], n->index));
}

/* ---- life ---- */

static int64_t now_ns(void *user)
{
	return ((struct cluster *)user)->now_ns;
}

static int64_t wall_ns(void *user)
{
	return ((struct cluster *)user)->now_ns + INT64_C(1700000000) * CW_NS_PER_S;
}

/* Asked before and after each look, or each part of one. */
static int64_t on_cpu(void *user)
{
	struct cluster *c = user;

	return c->cpu_ns += c->look_cost_ns;
}

/* Of its own, because each may be held up by itself. */
static void start_clock(struct cluster_node *n)
{
#ifdef CW_AWAKE_STEP_NS
	cw_awake_init(&n->awake, &n->cluster->clock);
	n->clock = &n->awake.clock;
#else
	n->clock = &n->cluster->clock;
#endif
}

static void start_leader(struct cluster_node *n)
{
	struct cw_leader_config config = {
		.clock = n->clock,
		.self = n->name,
		.effects = &n->effects,
		.members = n->members,
		.thresholds = cw_thresholds_default(),
		.cpu_ns = on_cpu,
		.cpu_user = n->cluster,
		.turn_members = n->cluster->turn_members,
	};

	config.thresholds.no_headway_ns = 5 * CW_NS_PER_S;
	cr_assert_eq(cw_leader_new(&config, &n->leader), 0);
}

static void start_node(struct cluster *c, unsigned index)
{
	struct cluster_node *n = &c->nodes[index];
	const char *names[CLUSTER_MAX_NODES];
	struct cw_transport_config config = {
		.self = n->name, .names = names, .on_message = on_message, .user = n
	};

	for (unsigned i = 0; i < c->n_nodes; i++)
		if (i != index)
			names[config.n_peers++] = c->nodes[i].name;
	n->cluster = c;
	n->index = index;
	start_clock(n);
	config.clock = n->clock;
	n->epoch = (uint64_t)wall_ns(c);
	n->effects = effects;
	n->effects.user = n;
	cr_assert_eq(cw_transport_new(&config, &n->transport), 0);
	cw_transport_set_backend(n->transport, &ops, n);
	for (unsigned i = 0; i < config.n_peers; i++)
		cw_transport_peer_up(n->transport, i, 1);
	cr_assert_eq(cw_election_new(n->clock, n->name, &n->effects, &n->members), 0);
	start_leader(n);
}

void cluster_init(struct cluster *c, unsigned n_nodes, unsigned n_ranks)
{
	cr_assert_leq(n_nodes, CLUSTER_MAX_NODES);
	cr_assert_leq(n_ranks, CLUSTER_MAX_RANKS);
	*c = (struct cluster){ .n_nodes = n_nodes,
			       .n_ranks = n_ranks,
			       .now_ns = 1000 * CW_NS_PER_S,
			       .uid = CLUSTER_UID,
			       .step_every_ns = STEP_NS,
			       .ops_recorded = 8192 };
	c->step_ns = c->now_ns;
	c->seq = 100;
	c->clock = (struct cw_clock){ .monotonic_ns = now_ns, .wall_ns = wall_ns, .user = c };
	for (unsigned i = 0; i < n_nodes; i++)
		(void)snprintf(c->nodes[i].name, sizeof(c->nodes[i].name), "node-%c", 'a' + (int)i);
	for (unsigned i = 0; i < n_nodes; i++)
		start_node(c, i);
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
	for (unsigned i = 0; i < c->n_nodes; i++) {
		struct cluster_node *n = &c->nodes[i];

		n->is_dead = true;
		n->is_frozen = false;
		deliver(n);
		cw_leader_free(n->leader);
		cw_election_free(n->members);
		cw_transport_free(n->transport);
		json_decref(n->last_put);
		for (unsigned b = 0; b < n->n_bundles; b++)
			json_decref(n->bundles[b].incident);
	}
	for (unsigned i = 0; i < c->n_alerts; i++)
		json_decref(c->alerts[i].doc);
}

static void tick(struct cluster *c)
{
	c->now_ns += TICK_NS;
	cluster_job_train(c);
	if (c->guest) {
		c->guest->now_ns = c->now_ns;
		cluster_job_train(c->guest);
	}
	for (unsigned i = 0; i < c->n_nodes; i++) {
		struct cluster_node *n = &c->nodes[i];

		if (n->is_dead || n->is_frozen)
			continue;
		c->running = n;
		beat(n);
		/* Nodes publish at different moments of the second, as real ones do. */
		if ((c->now_ns / TICK_NS + 7 * i) % 20 == 0)
			cluster_job_publish(n);
		deliver(n);
		cw_transport_run(n->transport);
		if (c->now_ns / TICK_NS % 5 == 0)
			(void)cw_leader_tick(n->leader);
		else
			(void)cw_leader_continue(n->leader);
	}
	c->running = NULL;
}

void cluster_run(struct cluster *c, double seconds)
{
	int64_t end = c->now_ns + (int64_t)(seconds * 1e9);

	while (c->now_ns < end)
		tick(c);
}

bool cluster_run_until_alert(struct cluster *c, double seconds)
{
	int64_t end = c->now_ns + (int64_t)(seconds * 1e9);
	unsigned before = c->n_alerts;

	while (c->now_ns < end && c->n_alerts == before)
		tick(c);
	return c->n_alerts > before;
}

static void part(struct cluster *c, unsigned a, unsigned b)
{
	cw_transport_peer_down(c->nodes[a].transport, peer_of_index(&c->nodes[a], b), false);
}

void cluster_kill(struct cluster *c, unsigned node)
{
	observe_event(c, node, "killed");
	c->nodes[node].is_dead = true;
	c->nodes[node].is_frozen = false;
	deliver(&c->nodes[node]); /* to nobody */
	for (unsigned i = 0; i < c->n_nodes; i++)
		if (i != node)
			part(c, i, node);
}

void cluster_revive(struct cluster *c, unsigned node)
{
	struct cluster_node *n = &c->nodes[node];

	cw_leader_free(n->leader);
	cw_election_free(n->members);
	cw_transport_free(n->transport);
	observe_event(c, node, "started");
	n->is_dead = false;
	n->digests = 0;
	start_node(c, node);
	for (unsigned i = 0; i < c->n_nodes; i++) {
		if (i == node)
			continue;
		if (c->nodes[i].is_dead)
			part(c, node, i);
		else
			cw_transport_peer_up(c->nodes[i].transport,
					     peer_of_index(&c->nodes[i], node), n->epoch);
	}
}

void cluster_upgrade(struct cluster *c, unsigned node)
{
	cluster_kill(c, node);
	c->nodes[node].is_old = false;
	cluster_revive(c, node);
}

void cluster_freeze(struct cluster *c, unsigned node)
{
	observe_event(c, node, "stopped");
	c->nodes[node].is_frozen = true;
}

void cluster_thaw(struct cluster *c, unsigned node)
{
	observe_event(c, node, "continued");
	c->nodes[node].is_frozen = false;
	for (unsigned i = 0; i < c->n_nodes; i++)
		if (i != node && can_talk(c, i, node) && !c->nodes[i].is_frozen)
			cw_transport_heard(c->nodes[node].transport,
					   peer_of_index(&c->nodes[node], i));
}

void cluster_cut(struct cluster *c, unsigned a, unsigned b)
{
	observe_link(c, "cut off from", a, b);
	c->cut[a][b] = c->cut[b][a] = true;
	part(c, a, b);
	part(c, b, a);
}

static void meet(struct cluster *c, unsigned a, unsigned b)
{
	cw_transport_peer_up(c->nodes[a].transport, peer_of_index(&c->nodes[a], b),
			     c->nodes[b].epoch);
}

void cluster_join(struct cluster *c, unsigned a, unsigned b)
{
	observe_link(c, "joined with", a, b);
	c->cut[a][b] = c->cut[b][a] = false;
	meet(c, a, b);
	meet(c, b, a);
}

void cluster_restart(struct cluster *c, unsigned node)
{
	struct cluster_node *n = &c->nodes[node];

	observe_event(c, node, "started its leader anew");
	cw_leader_free(n->leader);
	start_leader(n);
}

const struct cluster_bundle *cluster_bundle(const struct cluster *c, unsigned node, const char *id)
{
	const struct cluster_node *n = &c->nodes[node];

	for (unsigned i = 0; i < n->n_bundles; i++)
		if (!strcmp(n->bundles[i].id, id))
			return &n->bundles[i];
	return NULL;
}

struct found {
	const struct cw_job *job;
};

static void on_job(const struct cw_route *route, const struct cw_job *job, void *user)
{
	((struct found *)user)->job = job;
}

const struct cw_job *cluster_job(const struct cluster *c, unsigned node)
{
	struct found f = { NULL };

	if (!c->nodes[node].is_dead)
		cw_leader_jobs(c->nodes[node].leader, on_job, &f);
	return f.job;
}

const char *cluster_elected(const struct cluster *c, unsigned node)
{
	struct cw_job_id job;

	cr_assert_eq(cw_job_id_make(CLUSTER_UID, CLUSTER_LABEL, &job), 0);
	return cw_election_leader(c->nodes[node].members, &job);
}

int cluster_leader(const struct cluster *c)
{
	int leader = -1;

	for (unsigned i = 0; i < c->n_nodes; i++) {
		if (!cluster_job(c, i) || c->nodes[i].is_frozen)
			continue;
		leader = leader == -1 ? (int)i : -2;
	}
	return leader;
}
