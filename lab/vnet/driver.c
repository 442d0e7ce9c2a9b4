/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/vnet/driver.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/bundle.h"

/* ---- other nodes ---- */

static int send_message(void *user, const char *node, const struct cw_message *msg)
{
	return cw_transport_send(((struct network_node *)user)->transport, node, msg);
}

static int send_digest(void *user, const char *leader, const char *next,
		       const struct cw_message *digest, int *ret_copy)
{
	return cw_transport_send_digest(((struct network_node *)user)->transport, leader, next,
					digest, ret_copy);
}

static unsigned announce(void *user, const struct cw_message *msg)
{
	return cw_transport_announce(((struct network_node *)user)->transport, msg);
}

static int ask(void *user, const char *node, struct cw_message *msg, uint32_t deadline_ms,
	       cw_leader_answer_fn fn, void *asker)
{
	return cw_transport_request(((struct network_node *)user)->transport, node, msg,
				    deadline_ms, fn, asker, NULL);
}

static void cancel(void *user, const void *asker)
{
	cw_transport_cancel(((struct network_node *)user)->transport, asker);
}

static const struct cw_peer *peers(void *user, unsigned *ret_n)
{
	return cw_transport_peers(((struct network_node *)user)->transport, ret_n);
}

/* ---- bundles ---- */

static void path(void *user, const char *id, char *buf, size_t len)
{
	(void)snprintf(buf, len, "/state/incidents/%s", id);
}

static int put(void *user, const struct cw_bundle *bundle)
{
	struct network_node *n = user;
	const struct network_observer *o = n->network->observer;

	if (o && o->on_put)
		o->on_put(o->user, n, bundle);
	return fake_store_put(&n->store, bundle);
}

static json_t *load_incident(void *user, const struct cw_incident_due *due, bool *ret_is_whole)
{
	const struct network_node *n = user;
	const struct fake_store_bundle *b = fake_store_find(&n->store, due->id);

	*ret_is_whole = b && b->has_stacks;
	return b ? json_deep_copy(b->incident) : NULL;
}

static int update_incident(void *user, json_t *incident)
{
	struct network_node *n = user;
	const struct network_observer *o = n->network->observer;

	if (o && o->on_update_incident)
		o->on_update_incident(o->user, n, incident);
	return fake_store_update_incident(&n->store, incident);
}

/* ---- alerts ---- */

static bool was_sent_here(void *user, const struct cw_incident_due *due)
{
	const struct network_node *n = user;
	const struct network *net = n->network;

	for (unsigned i = 0; i < net->n_alerts; i++)
		if (net->alerts[i].node == n->index && net->alerts[i].uid == due->uid &&
		    !strcmp(net->alerts[i].id, due->id))
			return true;
	return false;
}

static bool was_sent(void *user, const struct cw_incident_due *due)
{
	return was_sent_here(user, due) ||
	       fake_store_was_delivered(&((struct network_node *)user)->store, due->id);
}

static const char *suppress_reason(void *user, const struct cw_incident_due *due)
{
	struct network_node *n = user;
	const struct network_config *c = &n->network->config;

	return c->ranks && c->ranks->suppress_reason ? c->ranks->suppress_reason(c->user, n, due)
						     : NULL;
}

static int add(struct network_node *n, const struct cw_incident_due *due, const json_t *doc,
	       struct network_alert **list, unsigned *len, unsigned *cap)
{
	struct network_alert *a;

	if (*len == *cap) {
		unsigned more = *cap ? *cap * 2 : 4;

		a = realloc(*list, more * sizeof(*a));
		if (!a)
			return -ENOMEM;
		*list = a;
		*cap = more;
	}
	a = &(*list)[*len];
	*a = (struct network_alert){ .node = n->index,
				     .at_ns = n->network->now_ns,
				     .uid = due->uid,
				     .doc = json_deep_copy(doc) };
	if (!a->doc)
		return -ENOMEM;
	(void)snprintf(a->id, sizeof(a->id), "%s", due->id);
	(*len)++;
	return 0;
}

static bool wants_notices(void *user)
{
	const struct network_node *n = user;

	return !n->network->config.has_no_notices;
}

/* Records a notice once. A new leader repeats the notices of its predecessor. */
static void notice(void *user, const struct cw_incident_due *due, const json_t *doc)
{
	struct network_node *n = user;
	struct network *net = n->network;

	for (unsigned i = 0; i < net->n_notices; i++)
		if (net->notices[i].uid == due->uid && !strcmp(net->notices[i].id, due->id))
			return;
	if (add(n, due, doc, &net->notices, &net->n_notices, &net->cap_notices) < 0)
		net->error = -ENOMEM;
}

/* Sends the other nodes the news that the alert was delivered. */
static void announce_delivered(struct network_node *n, const struct cw_incident_due *due)
{
	struct cw_message msg = { .type = CW_MSG_INCIDENT_DELIVERED,
				  .incident_delivered = {
					  .id = due->id, .uid = due->uid, .label = due->job } };

	(void)cw_transport_announce(n->transport, &msg);
}

static int alert(void *user, const struct cw_incident_due *due, json_t *doc)
{
	struct network_node *n = user;
	struct network *net = n->network;
	const struct network_config *c = &net->config;
	int r = c->ranks && c->ranks->alert ? c->ranks->alert(c->user, n, due, doc) : 0;

	if (net->observer && net->observer->on_alert)
		net->observer->on_alert(net->observer->user, n, due, doc, r);
	if (r < 0) {
		net->n_refused_alerts++;
		return r;
	}
	if (r == NETWORK_NOT_DELIVERED)
		return add(n, due, doc, &net->undelivered, &net->n_undelivered,
			   &net->cap_undelivered);
	r = add(n, due, doc, &net->alerts, &net->n_alerts, &net->cap_alerts);
	if (r < 0)
		return r;
	announce_delivered(n, due);
	return 0;
}

static bool has_postmortem(const struct network_node *n, const char *id)
{
	const struct network *net = n->network;

	for (unsigned i = 0; i < net->n_postmortems; i++)
		if (net->postmortems[i].node == n->index && !strcmp(net->postmortems[i].id, id))
			return true;
	return false;
}

static int put_postmortem(void *user, const struct cw_incident_due *due, json_t *doc,
			  bool may_alert)
{
	struct network_node *n = user;
	struct network *net = n->network;
	struct network_postmortem *e;

	if (has_postmortem(n, due->id))
		return -EEXIST;
	if (net->n_postmortems == net->cap_postmortems) {
		unsigned cap = net->cap_postmortems ? net->cap_postmortems * 2 : 4;

		e = realloc(net->postmortems, cap * sizeof(*e));
		if (!e)
			return -ENOMEM;
		net->postmortems = e;
		net->cap_postmortems = cap;
	}
	e = &net->postmortems[net->n_postmortems];
	*e = (struct network_postmortem){ .node = n->index,
					  .at_ns = net->now_ns,
					  .may_alert = may_alert,
					  .doc = json_deep_copy(doc) };
	if (!e->doc)
		return -ENOMEM;
	(void)snprintf(e->id, sizeof(e->id), "%s", due->id);
	net->n_postmortems++;
	return 0;
}

/* ---- the log ---- */

__attribute__((format(printf, 3, 0))) static void log_line(void *user, int level, const char *fmt,
							   va_list ap)
{
	const struct network_node *n = user;
	const struct network_observer *o = n->network->observer;
	char text[1024];
	va_list again;

	if (o && o->on_log) {
		va_copy(again, ap);
		(void)vsnprintf(text, sizeof(text), fmt, again);
		va_end(again);
		o->on_log(o->user, n, text);
	}
	cw_log_v(level, fmt, ap);
}

static void log_event(void *user, int level, const char *message_id, const char *text,
		      const char *const *fields)
{
	const struct network_node *n = user;
	const struct network_observer *o = n->network->observer;

	if (o && o->on_log)
		o->on_log(o->user, n, text);
	cw_log_event(level, message_id, text, fields);
}

struct cw_leader_effects network_driver_effects(struct network_node *n)
{
	return (struct cw_leader_effects){
		.user = n,
		.send = send_message,
		.send_digest = send_digest,
		.announce = announce,
		.ask = ask,
		.cancel = cancel,
		.peers = peers,
		.path = path,
		.put = put,
		.load_incident = load_incident,
		.update_incident = update_incident,
		.was_sent = was_sent,
		.was_sent_here = was_sent_here,
		.suppress_reason = suppress_reason,
		.alert = alert,
		.wants_notices = wants_notices,
		.notice = notice,
		.put_postmortem = put_postmortem,
		.log = log_line,
		.event = log_event,
	};
}
