/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/alerts/old_deliveries.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json/json_whole.h"
#include "leader/incident/incident_id.h"

#define NODE_NAME_MAX 256
#define ANSWER_MS 5000u
/* The newest incidents of the peer: the same query as a user's list. */
#define QUESTION "{\"max\":256}"

struct waiting {
	char id[CW_INCIDENT_OLD_ID_LEN];
	char from[NODE_NAME_MAX]; /* "" = noted before the start: any node may have it */
	bool is_asked;
};

struct cw_old_deliveries {
	struct cw_old_deliveries_config config;
	int64_t started_ns;
	struct waiting list[CW_OLD_DELIVERIES_MAX];
	unsigned n, in_flight;
	char asked[CW_OLD_DELIVERIES_PEERS][NODE_NAME_MAX]; /* about ids from before the start */
	unsigned n_asked;
	uint64_t lost;
};

static void add(struct cw_old_deliveries *o, const char *from, const char *id)
{
	if (!cw_incident_id_is_old(id) || strlen(from) >= NODE_NAME_MAX)
		return;
	for (unsigned i = 0; i < o->n; i++)
		if (!strcmp(o->list[i].id, id) && !strcmp(o->list[i].from, from))
			return;
	if (o->n == CW_OLD_DELIVERIES_MAX) {
		o->lost++;
		return;
	}
	o->list[o->n] = (struct waiting){ 0 };
	(void)snprintf(o->list[o->n].id, sizeof(o->list[o->n].id), "%s", id);
	(void)snprintf(o->list[o->n].from, sizeof(o->list[o->n].from), "%s", from);
	o->n++;
}

static void on_noted(const char *id, void *user)
{
	add(user, "", id);
}

int cw_old_deliveries_new(const struct cw_old_deliveries_config *config,
			  struct cw_old_deliveries **ret)
{
	struct cw_old_deliveries *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->config = *config;
	o->started_ns = cw_clock_now_ns(config->clock);
	cw_store_each_delivered_by_peer(config->store, on_noted, o);
	*ret = o;
	return 0;
}

struct cw_old_deliveries *cw_old_deliveries_free(struct cw_old_deliveries *o)
{
	if (!o)
		return NULL;
	cw_transport_cancel(o->config.transport, o);
	free(o);
	return NULL;
}

void cw_old_deliveries_add(struct cw_old_deliveries *o, const char *from, const char *id)
{
	add(o, from, id);
}

/* ---- answers ---- */

static void drop(struct cw_old_deliveries *o, unsigned i)
{
	o->list[i] = o->list[--o->n];
}

static void settle(struct cw_old_deliveries *o, const char *node, const json_t *entry)
{
	const json_t *uid = json_object_get(entry, "uid");
	const struct cw_msg_incident_delivered d = {
		.id = json_string_value(json_object_get(entry, "id")),
		.uid = (uint32_t)json_integer_value(uid),
		.label = json_string_value(json_object_get(entry, "job")),
	};

	if (!d.id || !d.label || !json_is_integer(uid) || json_integer_value(uid) < 0 ||
	    json_integer_value(uid) > UINT32_MAX)
		return;
	for (unsigned i = 0; i < o->n;) {
		const struct waiting *w = &o->list[i];

		if (strcmp(w->id, d.id) != 0 || (*w->from && strcmp(w->from, node) != 0)) {
			i++;
			continue;
		}
		if (!o->config.is_unconfirmed ||
		    !o->config.is_unconfirmed(node, &d, o->config.user))
			cw_alerts_learn(o->config.alerts, node, &d);
		drop(o, i);
	}
}

static void on_reply(const char *node, const struct cw_message *reply, void *user)
{
	struct cw_old_deliveries *o = user;
	json_t *doc = reply && reply->node_reply.code == 0
			      ? cw_json_parse_text(reply->node_reply.json, JSON_REJECT_DUPLICATES)
			      : NULL;
	const json_t *entry;
	size_t i;

	o->in_flight--;
	json_array_foreach (json_object_get(doc, "incidents"), i, entry)
		settle(o, node, entry);
	json_decref(doc);
	for (unsigned k = 0; k < o->n;) {
		if (o->list[k].is_asked && !strcmp(o->list[k].from, node))
			drop(o, k); /* the node's list does not settle it */
		else
			k++;
	}
}

/* ---- questions ---- */

static bool ask(struct cw_old_deliveries *o, const char *node)
{
	struct cw_message msg = {
		.type = CW_MSG_NODE_REQUEST,
		.node_request = { .verb = "incidents", .json = QUESTION, .sees_all = 1 },
	};

	if (o->in_flight >= CW_OLD_DELIVERIES_IN_FLIGHT ||
	    cw_transport_request(o->config.transport, node, &msg, ANSWER_MS, on_reply, o, NULL) < 0)
		return false;
	o->in_flight++;
	return true;
}

/* Asks each node once about all ids that it has reported so far. */
static void ask_senders(struct cw_old_deliveries *o)
{
	for (unsigned i = 0; i < o->n; i++) {
		const char *node = o->list[i].from;

		if (!*node || o->list[i].is_asked)
			continue;
		if (!cw_transport_is_alive(o->config.transport, node)) {
			drop(o, i--);
			continue;
		}
		if (!ask(o, node))
			return; /* the next tick tries again */
		for (unsigned k = i; k < o->n; k++)
			if (!strcmp(o->list[k].from, node))
				o->list[k].is_asked = true;
	}
}

static bool was_asked(const struct cw_old_deliveries *o, const char *node)
{
	for (unsigned i = 0; i < o->n_asked; i++)
		if (!strcmp(o->asked[i], node))
			return true;
	return false;
}

static bool has_noted(const struct cw_old_deliveries *o)
{
	for (unsigned i = 0; i < o->n; i++)
		if (!*o->list[i].from)
			return true;
	return false;
}

static void forget_noted(struct cw_old_deliveries *o)
{
	for (unsigned i = 0; i < o->n;) {
		if (*o->list[i].from)
			i++;
		else
			drop(o, i);
	}
}

/* Asks each peer once, in the order of arrival. */
static void ask_peers(struct cw_old_deliveries *o)
{
	const struct cw_peer *peers;
	unsigned n;

	if (cw_clock_now_ns(o->config.clock) - o->started_ns > CW_OLD_DELIVERIES_FOR_NS) {
		forget_noted(o);
		return;
	}
	peers = cw_transport_peers(o->config.transport, &n);
	for (unsigned i = 0; i < n && o->n_asked < CW_OLD_DELIVERIES_PEERS; i++) {
		if (!cw_transport_peer_is_alive(o->config.transport, &peers[i]) ||
		    strlen(peers[i].name) >= NODE_NAME_MAX || was_asked(o, peers[i].name))
			continue;
		if (!ask(o, peers[i].name))
			return;
		(void)snprintf(o->asked[o->n_asked++], NODE_NAME_MAX, "%s", peers[i].name);
	}
}

void cw_old_deliveries_tick(struct cw_old_deliveries *o)
{
	ask_senders(o);
	if (has_noted(o))
		ask_peers(o);
}

uint64_t cw_old_deliveries_lost(const struct cw_old_deliveries *o)
{
	return o->lost;
}
