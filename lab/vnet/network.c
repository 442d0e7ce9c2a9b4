/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sent frame goes to the end of the inbox of its destination, with the time when it is due. In
 * its part of a step, a node takes those due frames that the links let through. The other frames
 * keep their places.
 */
#include "lab/vnet/network.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/cleanup.h"
#include "lab/vnet/driver.h"
#include "lab/vnet/newer_version.h"
#include "leader/incident/earlier_stacks.h"
#include "proto/codec.h"
#include "proto/frame.h"

#define START_NS (1000 * CW_NS_PER_S)
/* Nodes publish at different moments of the second, like real ones. */
#define DIGEST_PHASE 7u

struct network_frame {
	struct network_frame *next, *prev;
	unsigned from;
	int64_t due_ns;
	size_t len;
	uint8_t bytes[];
};

static void note_error(struct network *net, int r)
{
	if (!net->error)
		net->error = r;
}

/* ---- observers ---- */

static void observe_message(const struct network_node *n, bool is_out, const char *peer,
			    const struct cw_message *msg, const uint8_t *frame, size_t len)
{
	const struct network_observer *o = n->network->observer;

	if (o && o->on_message)
		o->on_message(o->user, n, is_out, peer, msg, frame, len);
}

static void observe_frame(const struct network_node *n, bool is_out, const char *peer,
			  const uint8_t *frame, size_t len)
{
	const struct network_observer *o = n->network->observer;
	struct cw_message *m = NULL;

	if (!o || !o->on_message)
		return;
	if (cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m) < 0)
		return; /* the receiver counts it */
	observe_message(n, is_out, peer, m, frame, len);
	cw_message_free(m);
}

static void observe_event(struct network *net, unsigned node, const char *what)
{
	const struct network_observer *o = net->observer;

	if (o && o->on_event)
		o->on_event(o->user, &net->nodes[node], what);
}

static void observe_iteration(struct network *net, const struct network_node *n, bool is_end)
{
	const struct network_observer *o = net->observer;

	if (o && o->on_iteration)
		o->on_iteration(o->user, n, is_end);
}

/* ---- links ---- */

static uint8_t *link_of(const struct network *net, unsigned a, unsigned b)
{
	return &net->links[(size_t)a * net->config.n_nodes + b];
}

static unsigned index_of_peer(const struct network_node *n, unsigned peer)
{
	return peer < n->index ? peer : peer + 1;
}

static unsigned peer_of_index(const struct network_node *n, unsigned index)
{
	return index < n->index ? index : index - 1;
}

static bool has_daemon(const struct network_node *n)
{
	return n->life != NETWORK_DEAD && !n->is_speaker;
}

static bool is_connected(const struct network *net, unsigned a, unsigned b)
{
	return net->nodes[a].life != NETWORK_DEAD && net->nodes[b].life != NETWORK_DEAD &&
	       *link_of(net, a, b) != NETWORK_CUT;
}

static void put_in_inbox(struct network_node *to, unsigned from, const uint8_t *frame, size_t len,
			 int64_t due_ns)
{
	struct network_frame *f = malloc(sizeof(*f) + len);

	if (!f) {
		note_error(to->network, -ENOMEM);
		return;
	}
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

	if (cw_message_decode(frame + CW_FRAME_HEADER_BYTES, len - CW_FRAME_HEADER_BYTES, &m) < 0)
		return false;
	is = m->type == CW_MSG_DIGEST || m->type == CW_MSG_DIGEST_COPY;
	cw_message_free(m);
	return is;
}

static bool is_nth(unsigned n, unsigned every)
{
	return every && n % every == 0;
}

static void carry(struct network *net, unsigned from, struct network_node *to, const uint8_t *frame,
		  size_t len)
{
	struct network_digests *d = &net->digest_faults;
	int64_t due_ns = net->now_ns + net->config.latency_ns;

	if ((d->late_every || d->lost_every || d->twice_every) && is_digest(frame, len)) {
		/*
		 * We count digests per pair of nodes. With a common counter, the faults might
		 * always strike the same node.
		 */
		unsigned n = ++net->n_digests[(size_t)from * net->config.n_nodes + to->index];

		if (is_nth(n, d->lost_every))
			return;
		if (is_nth(n, d->late_every))
			due_ns += d->late_ns;
		if (is_nth(n, d->twice_every))
			put_in_inbox(to, from, frame, len, due_ns);
	}
	put_in_inbox(to, from, frame, len, due_ns);
}

static int on_send(void *impl, unsigned peer, const uint8_t *frame, size_t len)
{
	struct network_node *n = impl;
	struct network_node *to = &n->network->nodes[index_of_peer(n, peer)];
	_cleanup_(freep) uint8_t *newer = NULL;
	int r = 0;

	/* Until its peers notice that a machine is lost, their kernels accept frames to it. */
	if (*link_of(n->network, n->index, to->index) == NETWORK_CUT)
		return -ENOTCONN;
	if (n->is_newer)
		r = newer_version_frame(frame, len, &newer, &len);
	if (r < 0)
		return r;
	frame = newer ? newer : frame;
	observe_frame(n, true, to->name, frame, len);
	if (has_daemon(to))
		carry(n->network, n->index, to, frame, len);
	return 0;
}

static const struct cw_transport_ops ops = { .send = on_send };

static void drop_inbox(struct network_node *n)
{
	struct network_frame *f, *tmp;

	DL_FOREACH_SAFE (n->inbox, f, tmp) {
		DL_DELETE(n->inbox, f);
		free(f);
	}
}

/* Drops frames of the old connection that have not arrived yet. */
static void drop_frames_from(struct network_node *n, unsigned from)
{
	struct network_frame *f, *tmp;

	DL_FOREACH_SAFE (n->inbox, f, tmp) {
		if (f->from != from)
			continue;
		DL_DELETE(n->inbox, f);
		free(f);
	}
}

static bool is_due(const struct network_node *n, const struct network_frame *f)
{
	return f->due_ns <= n->network->now_ns &&
	       *link_of(n->network, f->from, n->index) != NETWORK_STALLED;
}

static void take_inbox(struct network_node *n)
{
	struct network_frame *f, *tmp, *batch = n->inbox;

	n->inbox = NULL;
	DL_FOREACH_SAFE (batch, f, tmp) {
		DL_DELETE(batch, f);
		if (!is_due(n, f)) {
			DL_APPEND(n->inbox, f);
			continue;
		}
		observe_frame(n, false, n->network->nodes[f->from].name, f->bytes, f->len);
		cw_transport_receive(n->transport, peer_of_index(n, f->from),
				     f->bytes + CW_FRAME_HEADER_BYTES,
				     f->len - CW_FRAME_HEADER_BYTES);
		free(f);
	}
}

static void beat(struct network_node *n)
{
	struct network *net = n->network;

	if (net->now_ns < n->beat_ns)
		return;
	n->beat_ns = net->now_ns + CW_PEER_BEAT_NS;
	for (unsigned i = 0; i < net->config.n_nodes; i++) {
		struct network_node *to = &net->nodes[i];

		if (i != n->index && is_connected(net, n->index, i) && !to->is_speaker &&
		    to->life == NETWORK_RUNS && *link_of(net, n->index, i) == NETWORK_JOINED)
			cw_transport_peer_seen(to->transport, peer_of_index(to, n->index));
	}
}

/* ---- messages for the half that knows ranks ---- */

void network_answer(struct network_node *n, const char *to, const struct cw_message *msg)
{
	if (!strcmp(to, n->name))
		observe_message(n, false, to, msg, NULL, 0);
	/* If this fails, the requester gets no answer until its deadline. */
	(void)cw_transport_send(n->transport, to, msg);
}

static void answer_evidence(struct network_node *n, const char *from,
			    const struct cw_msg_evidence_request *q)
{
	for (uint32_t i = 0; i < q->n_targets; i++) {
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

		network_answer(n, from, &msg);
	}
}

static void on_evidence(struct network_node *n, const char *from,
			const struct cw_msg_evidence_request *q)
{
	const struct network_ranks *ranks = n->network->config.ranks;

	for (uint32_t i = 0; i < q->n_targets; i++) {
		uint32_t what = q->targets[i].what;

		if (what == CW_EVIDENCE_EARLIER) {
			n->early_asked++;
			continue;
		}
		n->evidence_what |= what;
		*(what & CW_EVIDENCE_BRIEF ? &n->briefly_asked : &n->evidence_asked) += 1;
	}
	if (ranks && ranks->evidence)
		ranks->evidence(n->network->config.user, n, from, q);
	else
		answer_evidence(n, from, q);
}

/* Handles a request for windows. */
static void on_windows(struct network_node *n, const char *from,
		       const struct cw_msg_window_request *q)
{
	const struct network_ranks *ranks = n->network->config.ranks;

	if (ranks && ranks->windows)
		ranks->windows(n->network->config.user, n, from, q);
}

static void on_search(struct network_node *n, const struct cw_msg_rank_search *q)
{
	const struct network_ranks *ranks = n->network->config.ranks;

	n->searches++;
	if (ranks && ranks->search)
		ranks->search(n->network->config.user, n, q);
}

/* Handles the news that another node delivered an alert. */
static void on_delivered(struct network_node *n, const char *from,
			 const struct cw_msg_incident_delivered *d)
{
	if (!cw_leader_is_unconfirmed(n->leader, from, d->uid, d->label, d->id) &&
	    fake_store_learn(&n->store, d->id) < 0)
		note_error(n->network, -ENOMEM);
}

/*
 * Passes a node's message to itself to the observer, with all its fields, like messages from other
 * nodes.
 */
static void observe_own(const struct network_node *n, struct cw_message *msg)
{
	const struct network_observer *o = n->network->observer;

	if (o && o->on_message && cw_message_make_whole(msg) == 0)
		observe_message(n, false, n->name, msg, NULL, 0);
}

static void on_message(const char *from, struct cw_message **msg, void *user)
{
	struct network_node *n = user;

	if (!strcmp(from, n->name))
		observe_own(n, *msg);
	if ((*msg)->type == CW_MSG_INCIDENT_DELIVERED)
		on_delivered(n, from, &(*msg)->incident_delivered);
	else if ((*msg)->type == CW_MSG_MEMBERS)
		cw_election_answer(n->election, from, &(*msg)->members);
	else if ((*msg)->type == CW_MSG_WINDOW_REQUEST)
		on_windows(n, from, &(*msg)->window_request);
	else if ((*msg)->type == CW_MSG_EVIDENCE_REQUEST)
		on_evidence(n, from, &(*msg)->evidence_request);
	else if ((*msg)->type == CW_MSG_RANK_SEARCH)
		on_search(n, &(*msg)->rank_search);
	else
		(void)cw_leader_message(n->leader, from, msg);
}

int network_publish(struct network_node *n, struct cw_msg_digest *d)
{
	d->node = n->name;
	d->epoch = n->epoch;
	d->number = ++n->digests;
	return cw_election_publish(n->election, d);
}

int network_say(struct network *net, unsigned from, unsigned to, const struct cw_message *msg)
{
	_cleanup_(freep) uint8_t *frame = NULL;
	size_t len;
	int r;

	if (!has_daemon(&net->nodes[to]) || *link_of(net, from, to) == NETWORK_CUT)
		return -ENOTCONN;
	r = cw_message_encode(msg, &frame, &len);
	if (r < 0)
		return r;
	carry(net, from, &net->nodes[to], frame, len);
	return 0;
}

/* ---- a daemon's life ---- */

/* Returns the virtual time since the beginning, on the machine's clock. */
static int64_t machine_ns(void *user)
{
	const struct network_node *n = user;
	int64_t since_ns = n->network->now_ns - n->network->start_ns;

	return n->network->start_ns + since_ns + since_ns / 1000000 * n->time.drift_ppm +
	       n->time.ahead_ns;
}

static int64_t machine_wall_ns(void *user)
{
	const struct network_node *n = user;

	return NETWORK_WALL_NS + machine_ns(user) + n->time.wall_ahead_ns;
}

static int start_leader(struct network_node *n)
{
	const struct network_config *c = &n->network->config;
	struct cw_leader_config config = {
		.clock = n->clock,
		.self = n->name,
		.effects = &n->effects,
		.members = n->election,
		.thresholds = c->thresholds ? *c->thresholds : cw_thresholds_default(),
		.cpu_ns = c->cpu_ns,
		.cpu_user = c->user,
		.iteration_members = n->network->iteration_members,
	};

	return cw_leader_new(&config, &n->leader);
}

static int start_transport(struct network_node *n)
{
	const struct network *net = n->network;
	_cleanup_(freep) const char **names = calloc(net->config.n_nodes, sizeof(*names));
	struct cw_transport_config config = { .clock = n->clock,
					      .self = n->name,
					      .names = names,
					      .on_message = on_message,
					      .user = n };
	int r;

	if (!names)
		return -ENOMEM;
	for (unsigned i = 0; i < net->config.n_nodes; i++)
		if (i != n->index)
			names[config.n_peers++] = net->nodes[i].name;
	r = cw_transport_new(&config, &n->transport);
	if (r < 0)
		return r;
	cw_transport_set_backend(n->transport, &ops, n);
	for (unsigned i = 0; i < net->config.n_nodes; i++)
		if (i != n->index && is_connected(net, n->index, i))
			cw_transport_peer_up(n->transport, peer_of_index(n, i),
					     net->nodes[i].epoch ? net->nodes[i].epoch : 1);
	return 0;
}

static int start_daemon(struct network_node *n)
{
	const struct network_ranks *ranks = n->network->config.ranks;
	int r;

	cw_awake_init(&n->awake, &n->machine);
	n->clock = &n->awake.clock;
	n->epoch = (uint64_t)cw_clock_wall_ns(n->clock);
	n->digests = 0;
	n->effects = network_driver_effects(n);
	r = start_transport(n);
	if (r == 0)
		r = cw_election_new(n->clock, n->name, &n->effects, &n->election);
	if (r == 0)
		r = start_leader(n);
	if (r == 0 && ranks && ranks->started)
		ranks->started(n->network->config.user, n);
	return r;
}

static void end_daemon(struct network_node *n)
{
	n->leader = cw_leader_free(n->leader);
	n->election = cw_election_free(n->election);
	n->transport = cw_transport_free(n->transport);
}

/* Makes node a notice the loss of its connection to node b. */
static void part(struct network *net, unsigned a, unsigned b, bool said_goodbye)
{
	struct network_node *n = &net->nodes[a];

	if (has_daemon(n))
		cw_transport_peer_down(n->transport, peer_of_index(n, b), said_goodbye);
}

static void meet(struct network *net, unsigned a, unsigned b)
{
	struct network_node *n = &net->nodes[a];

	if (has_daemon(n))
		cw_transport_peer_up(n->transport, peer_of_index(n, b), net->nodes[b].epoch);
}

/* Makes all other nodes notice the loss of their connections to this node. */
static void part_all(struct network *net, unsigned node, bool said_goodbye)
{
	for (unsigned i = 0; i < net->config.n_nodes; i++)
		if (i != node)
			part(net, i, node, said_goodbye);
}

void network_kill(struct network *net, unsigned node, enum network_end how)
{
	static const char *const what[] = { "killed", "stopped in order", "lost" };
	struct network_node *n = &net->nodes[node];

	observe_event(net, node, what[how]);
	n->life = NETWORK_DEAD;
	drop_inbox(n);
	n->lost_ns = how == NETWORK_LOST ? net->now_ns : 0;
	if (how != NETWORK_LOST)
		part_all(net, node, how == NETWORK_GOODBYE);
}

/* Makes the peers notice that the kernel of the lost node does not answer any more. */
static void note_loss(struct network *net, struct network_node *n)
{
	if (!n->lost_ns || net->now_ns - n->lost_ns < NETWORK_UNANSWERED_NS)
		return;
	n->lost_ns = 0;
	part_all(net, n->index, false);
}

void network_start(struct network *net, unsigned node)
{
	struct network_node *n = &net->nodes[node];
	int r;

	if (n->is_speaker)
		return;
	observe_event(net, node, "started");
	end_daemon(n);
	drop_inbox(n);
	n->life = NETWORK_RUNS;
	n->lost_ns = 0;
	r = start_daemon(n);
	if (r < 0) {
		n->life = NETWORK_DEAD;
		note_error(net, r);
		return;
	}
	for (unsigned i = 0; i < net->config.n_nodes; i++) {
		if (i == node)
			continue;
		drop_frames_from(&net->nodes[i], node); /* frames from its previous life */
		if (is_connected(net, node, i))
			meet(net, i, node);
	}
}

void network_hold(struct network *net, unsigned node)
{
	if (net->nodes[node].life != NETWORK_RUNS)
		return;
	observe_event(net, node, "stopped");
	net->nodes[node].life = NETWORK_HELD;
}

void network_go_on(struct network *net, unsigned node)
{
	struct network_node *n = &net->nodes[node];

	if (n->life != NETWORK_HELD)
		return;
	observe_event(net, node, "continued");
	n->life = NETWORK_RUNS;
	/* While the node was stopped, its kernel buffered the heartbeats of its peers. */
	for (unsigned i = 0; i < net->config.n_nodes; i++)
		if (i != node && is_connected(net, i, node) && net->nodes[i].life == NETWORK_RUNS &&
		    *link_of(net, i, node) == NETWORK_JOINED)
			cw_transport_peer_seen(n->transport, peer_of_index(n, i));
}

void network_restart_leader(struct network *net, unsigned node)
{
	struct network_node *n = &net->nodes[node];
	int r;

	observe_event(net, node, "started its leader anew");
	n->leader = cw_leader_free(n->leader);
	r = start_leader(n);
	if (r < 0)
		note_error(net, r);
}

void network_set_newer(struct network *net, unsigned node)
{
	net->nodes[node].is_newer = true;
}

static void cut(struct network *net, unsigned a, unsigned b)
{
	drop_frames_from(&net->nodes[a], b);
	drop_frames_from(&net->nodes[b], a);
	part(net, a, b, false);
	part(net, b, a, false);
}

void network_set_link(struct network *net, unsigned a, unsigned b, enum network_link how)
{
	static const char *const what[] = { "joined with", "cut off from", "hears nothing of" };
	enum network_link before = *link_of(net, a, b);
	char text[64];

	if (a == b)
		return;
	(void)snprintf(text, sizeof(text), "%s %s", what[how], net->nodes[b].name);
	observe_event(net, a, text);
	*link_of(net, a, b) = *link_of(net, b, a) = how;
	if (how == NETWORK_CUT)
		cut(net, a, b);
	if (before != NETWORK_CUT || how == NETWORK_CUT || !is_connected(net, a, b))
		return;
	meet(net, a, b);
	meet(net, b, a);
}

void network_set_links_of(struct network *net, unsigned node, enum network_link how)
{
	for (unsigned i = 0; i < net->config.n_nodes; i++)
		network_set_link(net, node, i, how);
}

/* ---- network ---- */

static int name_nodes(struct network *net)
{
	const struct network_config *c = &net->config;

	for (unsigned i = 0; i < c->n_nodes; i++) {
		struct network_node *n = &net->nodes[i];
		int len;

		n->network = net;
		n->index = i;
		n->is_speaker = c->n_leading && i >= c->n_leading;
		n->machine = (struct cw_clock){ machine_ns, machine_wall_ns, n, NULL };
		if (c->times)
			n->time = c->times[i];
		n->digest_phase = DIGEST_PHASE * i;
		len = c->names ? snprintf(n->name, sizeof(n->name), "%s", c->names[i])
			       : snprintf(n->name, sizeof(n->name), "node-%u", i);
		if (len < 0 || (size_t)len >= sizeof(n->name))
			return -EINVAL;
	}
	return 0;
}

static int fill(struct network *net)
{
	unsigned n_nodes = net->config.n_nodes;
	int r;

	net->nodes = calloc(n_nodes, sizeof(*net->nodes));
	net->links = calloc(n_nodes, n_nodes);
	net->n_digests = calloc((size_t)n_nodes * n_nodes, sizeof(*net->n_digests));
	if (!net->nodes || !net->links || !net->n_digests)
		return -ENOMEM;
	r = name_nodes(net);
	for (unsigned i = 0; r == 0 && i < n_nodes; i++)
		if (!net->nodes[i].is_speaker)
			r = start_daemon(&net->nodes[i]);
	return r;
}

int network_new(const struct network_config *config, struct network **ret)
{
	struct network *net;
	int r;

	if (config->n_nodes == 0 || config->n_nodes > NETWORK_MAX_NODES || config->tick_ns < 0 ||
	    config->tick_ns > NETWORK_LEADER_EVERY_NS)
		return -EINVAL;
	net = calloc(1, sizeof(*net));
	if (!net)
		return -ENOMEM;
	net->config = *config;
	net->observer = config->observer;
	net->iteration_members = config->iteration_members;
	net->tick_ns = config->tick_ns ? config->tick_ns : NETWORK_TICK_NS;
	net->start_ns = net->now_ns = config->start_ns ? config->start_ns : START_NS;
	net->ticks = (uint64_t)(net->now_ns / net->tick_ns);
	r = fill(net);
	if (r < 0) {
		(void)network_free(net); /* always NULL */
		return r;
	}
	*ret = net;
	return 0;
}

struct network *network_free(struct network *net)
{
	if (!net)
		return NULL;
	for (unsigned i = 0; net->nodes && i < net->config.n_nodes; i++) {
		drop_inbox(&net->nodes[i]);
		end_daemon(&net->nodes[i]);
		fake_store_fini(&net->nodes[i].store);
	}
	for (unsigned i = 0; i < net->n_alerts; i++)
		json_decref(net->alerts[i].doc);
	free(net->alerts);
	for (unsigned i = 0; i < net->n_undelivered; i++)
		json_decref(net->undelivered[i].doc);
	free(net->undelivered);
	for (unsigned i = 0; i < net->n_notices; i++)
		json_decref(net->notices[i].doc);
	free(net->notices);
	for (unsigned i = 0; i < net->n_postmortems; i++)
		json_decref(net->postmortems[i].doc);
	free(net->postmortems);
	free(net->nodes);
	free(net->links);
	free(net->n_digests);
	free(net);
	return NULL;
}

/* True if an event with period every_ns and this phase is due in this tick. */
static bool is_in_phase(const struct network *net, int64_t every_ns, unsigned phase)
{
	uint64_t ticks = (uint64_t)(every_ns / net->tick_ns);

	return ticks <= 1 || (net->ticks + phase) % ticks == 0;
}

/* Reports the alerts of the previous step whose delivery failed. */
static void post_undelivered(struct network_node *n)
{
	struct network *net = n->network;
	unsigned kept = 0;

	for (unsigned i = 0; i < net->n_undelivered; i++) {
		struct network_alert *a = &net->undelivered[i];

		if (a->node != n->index) {
			net->undelivered[kept++] = *a;
			continue;
		}
		cw_leader_posted(n->leader, a->uid, a->id, false);
		json_decref(a->doc);
	}
	net->n_undelivered = kept;
}

static void run_iteration(struct network_node *n)
{
	struct network *net = n->network;
	const struct network_ranks *ranks = net->config.ranks;

	observe_iteration(net, n, false);
	beat(n);
	post_undelivered(n);
	if (ranks && ranks->publish && is_in_phase(net, NETWORK_DIGEST_EVERY_NS, n->digest_phase))
		ranks->publish(net->config.user, n);
	take_inbox(n);
	cw_transport_run(n->transport);
	if (is_in_phase(net, NETWORK_LEADER_EVERY_NS, 0))
		(void)cw_leader_tick(n->leader);
	else
		(void)cw_leader_continue(n->leader);
	observe_iteration(net, n, true);
}

static void tick(struct network *net)
{
	const struct network_ranks *ranks = net->config.ranks;

	net->now_ns += net->tick_ns;
	net->ticks++;
	if (ranks && ranks->advance)
		ranks->advance(net->config.user, net->now_ns);
	for (unsigned i = 0; i < net->config.n_nodes; i++) {
		struct network_node *n = &net->nodes[i];

		note_loss(net, n);
		if (n->life != NETWORK_RUNS || n->is_speaker)
			continue;
		net->running = n;
		run_iteration(n);
	}
	net->running = NULL;
}

int network_run_until(struct network *net, int64_t until_ns)
{
	while (net->now_ns < until_ns && !net->error)
		tick(net);
	return net->error;
}

int network_run(struct network *net, int64_t ns)
{
	return network_run_until(net, net->now_ns + ns);
}

int network_run_until_alert(struct network *net, int64_t ns)
{
	int64_t end_ns = net->now_ns + ns;
	unsigned before = net->n_alerts;

	while (net->now_ns < end_ns && net->n_alerts == before && !net->error)
		tick(net);
	return net->error ? net->error : net->n_alerts > before;
}

/* ---- results ---- */

struct found {
	const struct cw_job *job;
};

static void on_job(const struct cw_job_digests *digests, const struct cw_job *job, void *user)
{
	((struct found *)user)->job = job;
}

const struct cw_job *network_job(const struct network *net, unsigned node)
{
	struct found f = { NULL };

	if (has_daemon(&net->nodes[node]))
		cw_leader_jobs(net->nodes[node].leader, on_job, &f);
	return f.job;
}

int network_leader(const struct network *net)
{
	int leader = -1;

	for (unsigned i = 0; i < net->config.n_nodes; i++) {
		if (net->nodes[i].life != NETWORK_RUNS || !network_job(net, i))
			continue;
		leader = leader == -1 ? (int)i : -2;
	}
	return leader;
}

const struct fake_store_bundle *network_bundle(const struct network *net, unsigned node,
					       const char *id)
{
	return fake_store_find(&net->nodes[node].store, id);
}
